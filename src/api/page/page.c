#include "api/page/page.h"

#include <string.h>

#include "api/access/access.h"
#include "api/http/api.h"
#include "base/auto.h"
#include "net/http/http_request.h"
#include "web/web.h"

#define INDEX      "index.html"
#define POLICY_MAX 1024

/* Scripts and styles are files of ours alone: nothing inline, nothing evaluated, no foreign origin. Pictures
 * may be data (plots) and blobs (files of a sandbox); frames are previews, and results without any rights. */
static void page_add_policy(struct http_request *request)
{
    const struct preview *preview = request->context;
    AUTO(text) struct text policy = TEXT_INIT(POLICY_MAX);

    text_append(&policy,
                "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; "
                "frame-ancestors 'none'; frame-src 'self'");
    if (preview) {
        text_append_char(&policy, ' ');
        preview_source(preview, &policy);
    }
    (void) http_reply_header(request, "Content-Security-Policy", text_string(&policy));
    (void) http_reply_header(request, "X-Frame-Options", "DENY");
}

/* Whether a list of words with commas between has this one; parameters are ignored but "q=0". */
static bool page_takes_gzip(const struct http_request *request)
{
    const char *accepted = http_request_header(request, "Accept-Encoding");
    const char *at = accepted ? strstr(accepted, "gzip") : NULL;

    return at && strncmp(at + strlen("gzip"), ";q=0", 4) != 0;
}

static void page_send(struct http_request *request, const struct web_file *file)
{
    bool is_index = strcmp(file->name, INDEX) == 0;
    const char *known = http_request_header(request, "If-None-Match");

    (void) http_reply_header(request, "ETag", file->etag);
    (void) http_reply_header(request, "Vary", "Accept-Encoding");
    (void) http_reply_header(request, "X-Content-Type-Options", "nosniff");
    (void) http_reply_header(request, "Referrer-Policy", "no-referrer");
    (void) http_reply_header(request, "Cache-Control",
                             is_index ? "no-cache" : "public, max-age=31536000, immutable");
    if (is_index)
        page_add_policy(request);
    if (known && strcmp(known, file->etag) == 0) {
        http_reply(request, 304, NULL, NULL, 0);
        return;
    }
    if (!page_takes_gzip(request)) {
        http_reply(request, 200, file->type, file->plain, file->plain_length);
        return;
    }
    (void) http_reply_header(request, "Content-Encoding", "gzip");
    http_reply(request, 200, file->type, file->packed, file->packed_length);
}

static void page_get_index(struct http_request *request)
{
    page_send(request, web_file_find(INDEX));
}

static void page_get_file(struct http_request *request)
{
    const char *name = http_request_parameter(request, "name");
    const struct web_file *file = web_file_find(name);
    struct error err;

    if (file) {
        page_send(request, file);
        return;
    }
    error_fill(&err, ERR_NOT_FOUND, 0, "the page has no file '%s'; reload it if Burrow was updated",
               name);
    http_reply_error(request, &err);
}

static const struct http_route routes[] = {
    {"GET", "/", page_get_index, "The page", .access = ACCESS_PUBLIC, .reply_type = "text/html"},
    {"GET", "/page/{name}", page_get_file, "What the page is made of", .access = ACCESS_PUBLIC,
     .reply_type = "application/octet-stream"},
};

struct http_mount page_mount(const struct preview *preview)
{
    return (struct http_mount){
        .name = "page",
        .routes = routes,
        .route_count = ARRAY_COUNT(routes),
        .context = (void *) preview,
        .encode_error = error_body_write,
    };
}
