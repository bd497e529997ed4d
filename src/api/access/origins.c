#include "api/access/origins.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "net/url.h"

/* What pages may send and see beyond what the standard allows everybody. */
#define ALLOWED_HEADERS                                                                            \
    "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Range, Session-Id, X-Request-Id"
#define EXPOSED_HEADERS                                                                            \
    "Content-Range, Location, Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining, "             \
    "X-RateLimit-Reset, X-Request-Id, set-auth-token"
#define ALLOWED_METHODS "GET, HEAD, POST, PUT, PATCH, DELETE"
#define PREFLIGHT_AGE_S "600"

/* One text per origin; -1 for what is none. */
static int normalize(const char *text, size_t length, struct text *out)
{
    struct url url;
    struct url_host host;

    if (url_parse(text, length, &url, NULL) < 0 ||
        (url.scheme != URL_HTTP && url.scheme != URL_HTTPS) || url.query.text ||
        !url_span_equals(url.path, "/") || (length && text[length - 1] == '/'))
        return -1;
    url_host_of(&url, &host);
    text_format(out, "%s://%s:%u", url_scheme_text(url.scheme), host.name, host.port);
    return out->overflowed ? -1 : 0;
}

int origins_read(struct origins *origins, const char *text, struct error *err)
{
    *origins = (struct origins){.count = 0};
    while (*text) {
        size_t length = strcspn(text, ",");
        AUTO(text) struct text item = TEXT_INIT(URL_HOST_MAX + 32);

        if (length == 1 && *text == '*')
            origins->is_any = true;
        else if (origins->count == ORIGINS_MAX)
            return error_set(err, ERR_INVALID, 0, "more than %d origins", ORIGINS_MAX);
        else if (normalize(text, length, &item) < 0)
            return error_set(err, ERR_INVALID, 0,
                             "'%.*s' is not an origin such as https://app.example", (int) length,
                             text);
        else
            origins->items[origins->count++] = text_take(&item);
        text += length + (text[length] == ',');
    }
    return 0;
}

void origins_done(struct origins *origins)
{
    for (size_t i = 0; i < origins->count; i++)
        free(origins->items[i]);
    origins->count = 0;
}

bool origins_has(const struct origins *origins, const char *origin)
{
    AUTO(text) struct text item = TEXT_INIT(URL_HOST_MAX + 32);

    if (!origins->count || normalize(origin, strlen(origin), &item) < 0)
        return false;
    for (size_t i = 0; i < origins->count; i++) {
        if (strcmp(origins->items[i], text_string(&item)) == 0)
            return true;
    }
    return false;
}

/* The headers that let a page of this origin in; false when nothing does. */
static bool let_in(const struct origins *origins, struct http_request *request)
{
    const char *origin = http_request_header(request, "origin");

    if (!origin || (!origins->count && !origins->is_any))
        return false;
    (void) http_reply_header(request, "Vary", "Origin");
    if (origins_has(origins, origin)) {
        (void) http_reply_header(request, "Access-Control-Allow-Origin", origin);
        (void) http_reply_header(request, "Access-Control-Allow-Credentials", "true");
        return true;
    }
    if (origins->is_any)
        (void) http_reply_header(request, "Access-Control-Allow-Origin", "*");
    return origins->is_any;
}

void origins_add_headers(const struct origins *origins, struct http_request *request)
{
    if (let_in(origins, request))
        (void) http_reply_header(request, "Access-Control-Expose-Headers", EXPOSED_HEADERS);
}

bool origins_is_preflight(const struct http_request *request)
{
    return strcmp(request->head->method, "OPTIONS") == 0 &&
           http_request_header(request, "origin") &&
           http_request_header(request, "access-control-request-method");
}

void origins_answer_preflight(const struct origins *origins, struct http_request *request)
{
    /* A page that may not is told nothing: the browser then sends no request. */
    if (let_in(origins, request)) {
        (void) http_reply_header(request, "Access-Control-Allow-Methods", ALLOWED_METHODS);
        (void) http_reply_header(request, "Access-Control-Allow-Headers", ALLOWED_HEADERS);
        (void) http_reply_header(request, "Access-Control-Max-Age", PREFLIGHT_AGE_S);
    }
    http_reply(request, 204, NULL, NULL, 0);
}
