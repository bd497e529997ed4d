/* One error type for the whole project, kept in the caller's storage: no allocation, nothing to
 * leak.
 *
 * `code` is the contract: clients and tests depend on it, its name never changes. `message` is
 * for people and says what failed, why, and where possible what to do. `system` is the errno
 * behind it, or 0. The table in error.c is the only place where a code becomes an HTTP status.
 *
 *     if (fd < 0)
 *         return error_set(err, ERR_NOT_FOUND, errno, "open workspace '%s'", path);
 *     ...
 *     if (workspace_open(path, &fd, err) < 0)
 *         return error_wrap(err, "create sandbox %s", id);
 *
 * base/ and sys/ return -errno and know nothing of this type. */
#pragma once

#include <stddef.h>

/* name, stable text, HTTP status */
#define ERROR_CODES(X)                                                                             \
    X(ERR_NONE, "ok", 200)                                                                         \
    X(ERR_INVALID, "invalid_request", 400)                                                         \
    X(ERR_UNAUTHENTICATED, "unauthenticated", 401)                                                 \
    X(ERR_FORBIDDEN, "forbidden", 403)                                                             \
    X(ERR_NOT_FOUND, "not_found", 404)                                                             \
    X(ERR_METHOD, "method_not_allowed", 405)                                                       \
    X(ERR_REQUEST_TIMEOUT, "request_timeout", 408)                                                 \
    X(ERR_CONFLICT, "conflict", 409)                                                               \
    X(ERR_GONE, "gone", 410)                                                                       \
    X(ERR_TOO_LARGE, "payload_too_large", 413)                                                     \
    X(ERR_URL_TOO_LONG, "url_too_long", 414)                                                       \
    X(ERR_MEDIA_TYPE, "unsupported_media_type", 415)                                               \
    X(ERR_RANGE, "range_not_satisfiable", 416)                                                     \
    X(ERR_EXPECTATION, "expectation_failed", 417)                                                  \
    X(ERR_MISDIRECTED, "misdirected_request", 421)                                                 \
    X(ERR_UPGRADE_REQUIRED, "upgrade_required", 426)                                               \
    X(ERR_BACKUP_NOT_FOUND, "backup_not_found", 404)                                               \
    X(ERR_BACKUP_EXPIRED, "backup_expired", 400)                                                   \
    X(ERR_BACKUP_INVALID, "invalid_backup_config", 400)                                            \
    X(ERR_RATE_LIMITED, "rate_limited", 429)                                                       \
    X(ERR_QUOTA, "quota_exceeded", 429)                                                            \
    X(ERR_QUEUE_FULL, "queue_full", 429)                                                           \
    X(ERR_HEADERS_TOO_LARGE, "headers_too_large", 431)                                             \
    X(ERR_CANCELLED, "cancelled", 499)                                                             \
    X(ERR_INTERNAL, "internal_error", 500)                                                         \
    X(ERR_NOT_IMPLEMENTED, "not_implemented", 501)                                                 \
    X(ERR_UPSTREAM, "upstream_failed", 502)                                                        \
    X(ERR_AGENT_LOST, "agent_lost", 502)                                                           \
    X(ERR_UNAVAILABLE, "unavailable", 503)                                                         \
    X(ERR_UPSTREAM_TIMEOUT, "upstream_timeout", 504)                                               \
    X(ERR_AGENT_NOT_READY, "agent_not_ready", 504)                                                 \
    X(ERR_HTTP_VERSION, "http_version_not_supported", 505)                                         \
    X(ERR_NO_SPACE, "no_space", 507)

enum err_code {
#define X(name, text, status) name,
    ERROR_CODES(X)
#undef X
        ERR_CODE_COUNT
};

#define ERROR_MESSAGE_MAX 384

struct error {
    enum err_code code;
    int system; /* errno behind the failure, or 0 */
    char message[ERROR_MESSAGE_MAX];
};

#define ERROR_INIT                                                                                 \
    {                                                                                              \
        .code = ERR_NONE                                                                           \
    }

/* Fill `err` (may be NULL: the caller does not want the text) and return -1, so that a failure is
 * one line. `system` is appended to the message in words when it is not 0; a negative one counts
 * like its positive. Messages that do not fit are cut and end in "...". */
#define error_set(err, code, system, ...) (error_fill((err), (code), (system), __VA_ARGS__), -1)

/* Put "context: " before the message, going up the stack. Keeps code and errno. Returns -1. */
#define error_wrap(err, ...) (error_prefix((err), __VA_ARGS__), -1)

/* Behind the two above, which are macros so that compilers and analyzers see the -1. */
void error_fill(struct error *err, enum err_code code, int system, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void error_prefix(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Back to "no error", for storage that is used again. */
void error_clear(struct error *err);

/* The stable text of a code ("not_found"). Never NULL. */
const char *error_code_text(enum err_code code);

/* The code with that stable text, or ERR_CODE_COUNT for none: what a peer may send us. */
enum err_code error_code_from_text(const char *text);

/* The HTTP status of a code: the only such table in the project. */
int error_http_status(enum err_code code);

/* The code a plain errno stands for when a caller has nothing better to say. */
enum err_code error_code_from_errno(int system);
