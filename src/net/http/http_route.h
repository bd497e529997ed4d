/* Routes: tables that say which handler answers which method and path.
 *
 * Each dialect has one const table and mounts it; tables live side by side in one router, and the
 * OpenAPI document is written from the same rows. Two rows for the same method and path are
 * refused when they are mounted, not discovered in production.
 *
 *     static const struct http_route routes[] = {
 *         { "GET",  "/v1/sandbox/{id}",              get_sandbox,  .summary = "Read one" },
 *         { "PUT",  "/v1/sandbox/{id}/file/{path...}", put_file,   .body_limit = 32 << 20 },
 *     };
 *
 * A pattern is made of literal segments, {name} for one non-empty segment, and {name...} at the end
 * for everything that is left, slashes included (it may be empty). Literals win over {name}, which
 * wins over {name...}. Paths are matched after percent-decoding each segment, so "%2F" inside a
 * segment never splits it. HEAD is answered by GET rows unless it has rows of its own. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/pool.h"
#include "base/text.h"
#include "net/url.h"

struct http_request;

#define HTTP_BODY_DEFAULT   0           /* HTTP_BODY_SMALL bytes are allowed */
#define HTTP_BODY_SMALL     (64 * 1024) /* what a route without a limit of its own takes */
#define HTTP_BODY_UNLIMITED UINT64_MAX

struct http_route {
    const char *method;
    const char *pattern;
    void (*handle)(struct http_request *request);
    const char *summary;        /* one line for the documents */
    uint64_t body_limit;        /* bytes; HTTP_BODY_DEFAULT, HTTP_BODY_UNLIMITED */
    unsigned int access;        /* meaning belongs to the dialect: the scope a caller needs */
    const char *request_schema; /* JSON schema of the body as text, or NULL */
    const char *reply_schema;   /* JSON schema of a good answer, or NULL */
    const char *reply_type;     /* media type of a good answer; NULL: application/json */
    /* For the documents, as JSON text or NULL: parameters beside those of the path (objects with
     * commas between), and the whole object of answers by status in place of what is assumed. */
    const char *parameters;
    const char *replies;
};

/* One dialect: its table, and how it speaks. */
struct http_mount {
    const char *name; /* "native", "bridge", ...: tags the rows in documents and metrics */
    const struct http_route *routes;
    size_t route_count;
    void *context; /* borrowed: the handlers' own, as request->context */
    /* Write the body of an error reply in this dialect's shape. */
    void (*encode_error)(const struct http_request *request, const struct error *error,
                         struct text *body, const char **ret_content_type);
    const char *error_schema; /* JSON schema of that body; NULL: our own shape */
    /* A look at the request before anybody asks who sent it: -1 with the error to answer. May be
     * NULL. */
    int (*check)(const struct http_request *request, struct error *err);
};

struct http_parameter {
    const char *name; /* from the pattern, not terminated by NUL */
    size_t name_length;
    const char *value; /* decoded, in the pool of the request */
};

#define HTTP_PARAMETERS_MAX 8
#define HTTP_SEGMENTS_MAX   64

struct http_match {
    const struct http_mount *mount;
    const struct http_route *route;
    size_t parameter_count;
    struct http_parameter parameters[HTTP_PARAMETERS_MAX];
};

struct http_router;

struct http_router *http_router_new(void);
void http_router_free(struct http_router *router);

AUTO_DEFINE_PTR(http_router, struct http_router, http_router_free);

/* Add a table (borrowed: outlives the router). Returns 0, or -1 with ERR_INVALID for a malformed
 * pattern and ERR_CONFLICT for a row that is already there; the router must then be thrown away. */
int http_router_mount(struct http_router *router, const struct http_mount *mount,
                      struct error *err);

/* Find the row for a raw path. Returns 0 with `*ret_match` filled; -1 with ERR_INVALID for broken
 * escapes, ERR_NOT_FOUND, or ERR_METHOD, and then `*ret_allowed` (in the pool) lists what is
 * allowed. `ret_match->mount` is set on ERR_METHOD too, so that the error speaks the right dialect;
 * NULL when no dialect knows the path. */
int http_router_match(const struct http_router *router, const char *method, struct url_span path,
                      struct pool *pool, struct http_match *ret_match, const char **ret_allowed,
                      struct error *err);

/* The value of a {name}; never NULL for a name that is in the row's pattern. */
const char *http_match_get(const struct http_match *match, const char *name);
