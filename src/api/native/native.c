#include "api/native/native.h"

#include "api/access/access.h"
#include "api/http/error_body.h"
#include "api/http/openapi.h"
#include "api/http/openapi_page.h"
#include "base/auto.h"
#include "net/http/http_request.h"

#define OPENAPI_MAX ((size_t) 4 * 1024 * 1024)

static void get_version(struct http_request *request)
{
    http_reply_text(request, 200, "application/json", "{\"version\":\"" BURROW_VERSION "\"}");
}

static void get_openapi(struct http_request *request)
{
    const struct native *native = request->context;
    AUTO(text) struct text document = TEXT_INIT(OPENAPI_MAX);
    struct error error;

    if (openapi_write(native->mounts, native->mount_count, "Burrow", BURROW_VERSION, &document) <
        0) {
        (void) error_set(&error, ERR_INTERNAL, 0, "the OpenAPI document does not fit");
        http_reply_error(request, &error);
        return;
    }
    http_reply(request, 200, "application/json", text_string(&document), document.length);
}

/* Whole in itself: nothing but its own style is allowed. */
#define PAGE_POLICY "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"

static void get_docs(struct http_request *request)
{
    const struct native *native = request->context;
    AUTO(text) struct text page = TEXT_INIT(OPENAPI_MAX);
    struct error error;

    if (openapi_page_write(native->mounts, native->mount_count, "Burrow", BURROW_VERSION,
                           "/burrow/v1/openapi.json", &page) < 0) {
        (void) error_set(&error, ERR_INTERNAL, 0, "the page does not fit");
        http_reply_error(request, &error);
        return;
    }
    (void) http_reply_header(request, "Content-Security-Policy", PAGE_POLICY);
    http_reply(request, 200, OPENAPI_PAGE_TYPE, text_string(&page), page.length);
}

static const struct http_route routes[] = {
    {"GET", "/burrow/v1/version", get_version, "The version of this daemon",
     .access = ACCESS_PUBLIC,
     .reply_schema = "{\"type\":\"object\",\"properties\":{\"version\":{\"type\":\"string\"}}}"},
    {"GET", "/burrow/v1/openapi.json", get_openapi, "This document", .access = ACCESS_PUBLIC},
    {"GET", "/burrow/v1/docs", get_docs, "The same for people", .access = ACCESS_PUBLIC,
     .reply_type = "text/html"},
};

struct http_mount native_mount(struct native *native)
{
    return (struct http_mount){
        .name = "native",
        .routes = routes,
        .route_count = ARRAY_COUNT(routes),
        .context = native,
        .encode_error = error_body_write,
    };
}
