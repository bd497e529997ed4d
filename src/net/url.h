/* URLs: taking them apart, percent-escapes, query parameters, hosts and request targets.
 *
 * Pure functions on borrowed bytes: results are spans into the input, nothing is allocated unless
 * a pool or a text is handed in. Thread-safe.
 *
 * The rules are RFC 3986 made stricter where leniency is known to be abused: no user names or
 * passwords, no escapes in hosts, no "0x7f.1" or "2130706433" for an IPv4 address, no zone ids.
 * In paths and queries the few characters more that browsers send unescaped (WHATWG URL) are
 * taken, and passed on as they are. Errors never quote the URL, it may carry a secret. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/pool.h"
#include "base/text.h"

#define URL_LENGTH_MAX ((size_t) 16 * 1024) /* of a whole URL or request target */
#define URL_HOST_MAX   253                  /* RFC 1035, without the trailing dot */

/* Borrowed bytes, not terminated. `text` is NULL for "not there", which differs from empty. */
struct url_span {
    const char *text;
    size_t length;
};

static inline struct url_span url_span(const char *text, size_t length)
{
    return (struct url_span){.text = text, .length = length};
}

/* Whether the span holds exactly the bytes of `text`. */
bool url_span_equals(struct url_span span, const char *text);

/* The part before the first `mark`; `rest` keeps what follows the mark, or becomes "not there". */
struct url_span url_span_cut(struct url_span *rest, char mark);

enum url_scheme { URL_HTTP, URL_HTTPS, URL_WS, URL_WSS, URL_UNIX, URL_SCHEME_COUNT };

enum url_host_kind { URL_HOST_NONE, URL_HOST_NAME, URL_HOST_IPV4, URL_HOST_IPV6 };

struct url {
    enum url_scheme scheme;
    enum url_host_kind host_kind;
    struct url_span host;  /* as written, without brackets; empty for unix */
    uint16_t port;         /* the scheme's own when none was given; 0 for unix */
    struct url_span path;  /* raw, begins with '/' (a static "/" when there was none) */
    struct url_span query; /* raw, without '?'; not there when there was none */
};

/* Take apart an absolute http, https, ws, wss or unix URL ("unix:/path" or "unix:///path"; its path
 * is the socket's, still escaped). A fragment is dropped. Path escapes are well-formed afterwards;
 * those of the query are checked when a parameter is read, because browsers send stray '%' there.
 * Returns 0, or -1 with ERR_INVALID or ERR_URL_TOO_LONG. */
int url_parse(const char *text, size_t length, struct url *ret_url, struct error *err);

/* Append the URL in one normal form: lower-case scheme and host, no default port, no fragment. */
void url_write(const struct url *url, struct text *out);

/* Whether scheme, host and port agree: the boundary that credentials do not cross. */
bool url_same_origin(const struct url *one, const struct url *other);

/* "http", "https", ... Never NULL. */
const char *url_scheme_text(enum url_scheme scheme);

/* Whether the scheme means TLS. */
bool url_scheme_is_secure(enum url_scheme scheme);

/* A host ready for comparison: lower-case, no trailing dot, IPv6 in its one canonical form without
 * brackets. */
struct url_host {
    enum url_host_kind kind;
    uint16_t port; /* 0: none was given */
    char name[URL_HOST_MAX + 1];
};

/* Read the value of a Host header ("host", "host:port", "[::1]:port"), blanks already removed.
 * Returns 0, or -1 with ERR_INVALID; an empty host is refused. */
int url_host_parse(const char *text, size_t length, struct url_host *ret_host, struct error *err);

/* The same from a parsed URL, with its port filled in. */
void url_host_of(const struct url *url, struct url_host *ret_host);

/* What stands between method and version in a request line. */
enum url_target_form {
    URL_TARGET_ORIGIN,
    URL_TARGET_ABSOLUTE,
    URL_TARGET_ASTERISK,
    URL_TARGET_AUTHORITY, /* of CONNECT: only url_target_connect makes it */
};

struct url_target {
    enum url_target_form form;
    struct url_span path;      /* raw, begins with '/'; "*" for the asterisk form */
    struct url_span query;     /* raw, without '?'; not there when there was none */
    struct url_span authority; /* host[:port] of the absolute form, which then replaces Host */
};

/* Take apart a request target: "/path?query", "http://host/path" or "*". The authority form
 * (CONNECT) and fragments are refused. Returns 0, or -1 with ERR_INVALID or ERR_URL_TOO_LONG. */
int url_target_parse(const char *text, size_t length, struct url_target *ret_target,
                     struct error *err);

/* The target of a CONNECT, "host:port": there is no path. Returns 0, or -1 with ERR_INVALID. */
int url_target_connect(const char *text, size_t length, struct url_target *ret_target,
                       struct error *err);

/* Escapes. In a query '+' means a space, in a path it means itself. */
enum url_decoding { URL_DECODE_PATH, URL_DECODE_QUERY };

/* Whether every '%' is followed by two hex digits. */
bool url_escapes_are_sound(struct url_span raw);

/* Undo the escapes of `raw` into `buffer` and add a NUL. `buffer` may be raw.text itself. Returns
 * the length without the NUL; -EINVAL for a bad escape or a NUL (raw or escaped), so that the
 * result is an honest C string; -ENOBUFS when it does not fit into `size`. A decoded path segment
 * may hold '/' and may be "..": whoever makes a file name of it checks that. */
ssize_t url_decode(struct url_span raw, enum url_decoding decoding, char *buffer, size_t size);

/* The same into a pool. Returns 0 or -EINVAL. */
int url_decode_copy(struct url_span raw, enum url_decoding decoding, struct pool *pool,
                    const char **ret_text);

/* Append with everything but A-Z a-z 0-9 - . _ ~ escaped: right for a path segment, a query name
 * and a query value alike. */
void url_encode(struct text *out, const void *bytes, size_t length);

/* The same, but '/' stays: for a whole path. */
void url_encode_path(struct text *out, const void *bytes, size_t length);

/* Query parameters, in order, still escaped. "a=1&b&&c=" has a="1", b (value not there), c="". */
struct url_parameter {
    struct url_span name;
    struct url_span value; /* not there when there was no '=' */
};

/* Cut the next parameter off the front of `rest`, which starts as the query; false at its end. */
bool url_query_next(struct url_span *rest, struct url_parameter *ret_parameter);

/* The raw value of the first parameter whose unescaped name is `name`; a parameter without '=' has
 * the empty value. Returns 0 or -ENOENT. */
int url_query_find(struct url_span query, const char *name, struct url_span *ret_value);

/* The same unescaped into a pool. Returns 0, -ENOENT, or -EINVAL for a bad escape. */
int url_query_get(struct url_span query, const char *name, struct pool *pool,
                  const char **ret_value);
