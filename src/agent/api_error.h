/* Errors as Cloudflare's clients know them: a code that becomes a class, its HTTP status, and a
 * body of one shape.
 *
 *     {"code":"...","message":"...","context":{...},"operation":"...","httpStatus":404,
 *      "timestamp":"...","suggestion":"..."}
 *
 * The table below is the only place where a code becomes a status. 503 is what clients retry, for
 * two minutes: only for what passes. */
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "net/http/http_request.h"

#define API_CODES(X)                                                                               \
    X(FILE_NOT_FOUND, 404)                                                                         \
    X(COMMAND_NOT_FOUND, 404)                                                                      \
    X(PROCESS_NOT_FOUND, 404)                                                                      \
    X(PORT_NOT_EXPOSED, 404)                                                                       \
    X(GIT_REPOSITORY_NOT_FOUND, 404)                                                               \
    X(GIT_BRANCH_NOT_FOUND, 404)                                                                   \
    X(CONTEXT_NOT_FOUND, 404)                                                                      \
    X(WATCH_NOT_FOUND, 404)                                                                        \
    X(BACKUP_NOT_FOUND, 404)                                                                       \
    X(IS_DIRECTORY, 400)                                                                           \
    X(NOT_DIRECTORY, 400)                                                                          \
    X(INVALID_COMMAND, 400)                                                                        \
    X(INVALID_PORT_NUMBER, 400)                                                                    \
    X(INVALID_PORT, 400)                                                                           \
    X(INVALID_GIT_URL, 400)                                                                        \
    X(CUSTOM_DOMAIN_REQUIRED, 400)                                                                 \
    X(INVALID_JSON_RESPONSE, 400)                                                                  \
    X(NAME_TOO_LONG, 400)                                                                          \
    X(VALIDATION_FAILED, 400)                                                                      \
    X(MISSING_CREDENTIALS, 400)                                                                    \
    X(INVALID_MOUNT_CONFIG, 400)                                                                   \
    X(BACKUP_EXPIRED, 400)                                                                         \
    X(INVALID_BACKUP_CONFIG, 400)                                                                  \
    X(GIT_AUTH_FAILED, 401)                                                                        \
    X(PERMISSION_DENIED, 403)                                                                      \
    X(COMMAND_PERMISSION_DENIED, 403)                                                              \
    X(PROCESS_PERMISSION_DENIED, 403)                                                              \
    X(READ_ONLY, 403)                                                                              \
    X(PROCESS_READY_TIMEOUT, 408)                                                                  \
    X(FILE_EXISTS, 409)                                                                            \
    X(PORT_ALREADY_EXPOSED, 409)                                                                   \
    X(PORT_IN_USE, 409)                                                                            \
    X(RESOURCE_BUSY, 409)                                                                          \
    X(SESSION_ALREADY_EXISTS, 409)                                                                 \
    X(OPERATION_INTERRUPTED, 409)                                                                  \
    X(SESSION_DESTROYED, 410)                                                                      \
    X(SESSION_TERMINATED, 410)                                                                     \
    X(FILE_TOO_LARGE, 413)                                                                         \
    X(NO_SPACE, 500)                                                                               \
    X(TOO_MANY_FILES, 500)                                                                         \
    X(TOO_MANY_LINKS, 500)                                                                         \
    X(FILESYSTEM_ERROR, 500)                                                                       \
    X(COMMAND_EXECUTION_ERROR, 500)                                                                \
    X(STREAM_START_ERROR, 500)                                                                     \
    X(PROCESS_ERROR, 500)                                                                          \
    X(PROCESS_EXITED_BEFORE_READY, 500)                                                            \
    X(PORT_OPERATION_ERROR, 500)                                                                   \
    X(GIT_CLONE_FAILED, 500)                                                                       \
    X(GIT_CHECKOUT_FAILED, 500)                                                                    \
    X(GIT_OPERATION_FAILED, 500)                                                                   \
    X(CODE_EXECUTION_ERROR, 500)                                                                   \
    X(BUCKET_MOUNT_ERROR, 500)                                                                     \
    X(BUCKET_UNMOUNT_ERROR, 500)                                                                   \
    X(S3FS_MOUNT_ERROR, 500)                                                                       \
    X(WATCH_START_ERROR, 500)                                                                      \
    X(WATCH_STOP_ERROR, 500)                                                                       \
    X(BACKUP_CREATE_FAILED, 500)                                                                   \
    X(BACKUP_RESTORE_FAILED, 500)                                                                  \
    X(UNKNOWN_ERROR, 500)                                                                          \
    X(INTERNAL_ERROR, 500)                                                                         \
    X(PYTHON_NOT_AVAILABLE, 501)                                                                   \
    X(JAVASCRIPT_NOT_AVAILABLE, 501)                                                               \
    X(SERVICE_NOT_RESPONDING, 502)                                                                 \
    X(GIT_NETWORK_ERROR, 502)                                                                      \
    X(INTERPRETER_NOT_READY, 503)                                                                  \
    X(OPENCODE_STARTUP_FAILED, 503)                                                                \
    X(RPC_TRANSPORT_ERROR, 503)                                                                    \
    X(CONTAINER_UNAVAILABLE, 503)

enum api_code {
#define X(name, status) API_##name,
    API_CODES(X)
#undef X
        API_CODE_COUNT
};

#define API_MESSAGE_MAX 512

struct api_error {
    enum api_code code;
    const char *operation;  /* "command.execute"; NULL: left out */
    const char *suggestion; /* NULL: left out */
    int status;             /* 0: the code's own */
    bool plain;             /* {"error","code","details"} instead, as the code interpreter's are */
    char message[API_MESSAGE_MAX];
    struct text context; /* a JSON object; empty: {} */
};

#define API_CONTEXT_MAX ((size_t) 2 * 1024 * 1024)

#define API_ERROR_INIT                                                                             \
    {                                                                                              \
        .context = TEXT_INIT(API_CONTEXT_MAX)                                                      \
    }

void api_error_done(struct api_error *error);

AUTO_DEFINE(api_error, struct api_error, api_error_done);

/* Fill in code and message. Returns -1, so that a failure is one line. */
#define api_error_set(error, code, ...) (api_error_fill((error), (code), __VA_ARGS__), -1)

void api_error_fill(struct api_error *error, enum api_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* VALIDATION_FAILED for one field, with the context clients expect. Returns -1. */
int api_error_field(struct api_error *error, const char *field, const char *message);

const char *api_code_text(enum api_code code);
int api_code_status(enum api_code code);

/* The status of an error's reply. */
int api_error_status(const struct api_error *error);

/* Append the body. */
void api_error_write(const struct api_error *error, const struct clock *clock, struct text *body);

/* Answer the request with it. Ends the request. */
void api_error_reply(struct http_request *request, const struct api_error *error);

/* An error of the server itself (no such route, a body that is too large) in our terms. */
void api_error_from(struct api_error *error, const struct error *from);

/* For http_mount and http_server_options: errors of the server itself (no such route, a body that
 * is too large) in the same shape. */
void api_error_encode(const struct http_request *request, const struct error *error,
                      struct text *body, const char **ret_content_type);
