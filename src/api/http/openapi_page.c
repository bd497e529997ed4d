#include "api/http/openapi_page.h"

#include <errno.h>

#include "api/access/access.h"
#include "api/http/api.h"
#include "api/http/kept_documents.h"
#include "base/auto.h"

static const char head[] =
    "<style>\n"
    "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;"
    "color:#1b1b1b;background:#fff}\n"
    "h2{margin-top:2.5rem;text-transform:capitalize}\n"
    "article{border-top:1px solid #ddd;padding:.6rem 0}\n"
    "code,pre{font-family:ui-monospace,monospace;font-size:.9em}\n"
    "pre{background:#f4f4f4;overflow-x:auto;padding:.6rem;white-space:pre-wrap}\n"
    "b{display:inline-block;min-width:4.5rem}\n"
    "p{margin:.2rem 0 .2rem 4.9rem}\n"
    "details{margin-left:4.9rem}\n"
    "@media (prefers-color-scheme:dark){body{background:#161616;color:#eee}"
    "article{border-color:#444}pre{background:#242424}a{color:#8ab4f8}}\n"
    "</style>\n";

static void openapi_page_add_escaped(struct text *out, const char *text)
{
    static const struct {
        char byte;
        const char *escape;
    } escapes[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}};

    for (; *text; text++) {
        size_t i = 0;

        while (i < ARRAY_COUNT(escapes) && escapes[i].byte != *text)
            i++;
        if (i < ARRAY_COUNT(escapes))
            text_append(out, escapes[i].escape);
        else
            text_append_char(out, *text);
    }
}

static void add_details(struct text *out, const char *name, const char *json)
{
    if (!json)
        return;
    text_format(out, "<details><summary>%s</summary><pre>", name);
    openapi_page_add_escaped(out, json);
    text_append(out, "</pre></details>\n");
}

static void add_route(struct text *out, const struct http_route *route)
{
    text_append(out, "<article><b>");
    openapi_page_add_escaped(out, route->method);
    text_append(out, "</b> <code>");
    openapi_page_add_escaped(out, route->pattern);
    text_append(out, "</code>\n<p>");
    openapi_page_add_escaped(out, route->summary ? route->summary : "");
    text_append(out, route->access == ACCESS_PUBLIC ? " (needs no key)</p>\n" : "</p>\n");
    add_details(out, "Parameters", route->parameters);
    add_details(out, "Request", route->request_schema);
    add_details(out, "Answer", route->replies ? route->replies : route->reply_schema);
    text_append(out, "</article>\n");
}

static void add_mount(struct text *out, const struct http_mount *mount)
{
    text_append(out, "<section><h2>");
    openapi_page_add_escaped(out, mount->name);
    text_append(out, "</h2>\n");
    for (size_t i = 0; i < mount->route_count; i++)
        add_route(out, &mount->routes[i]);
    text_append(out, "</section>\n");
}

int openapi_page_write(const struct http_mount *mounts, size_t count, const char *title,
                       const char *version, const char *document, struct text *out)
{
    text_append(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                     "<meta name=\"viewport\" content=\"width=device-width\">\n<title>");
    openapi_page_add_escaped(out, title);
    text_append(out, "</title>\n");
    text_append(out, head);
    text_append(out, "</head><body><h1>");
    openapi_page_add_escaped(out, title);
    text_append(out, "</h1>\n<p style=\"margin:0\">Version ");
    openapi_page_add_escaped(out, version);
    text_append(out, ". The same for programs: <a href=\"");
    openapi_page_add_escaped(out, document);
    text_append(out, "\">");
    openapi_page_add_escaped(out, document);
    text_append(out, "</a></p>\n");
    for (size_t i = 0; i < count; i++)
        add_mount(out, &mounts[i]);
    text_append(out, "</body></html>\n");
    return out->overflowed ? -EOVERFLOW : 0;
}

/* Whole in itself: nothing but its own style is allowed. */
#define PAGE_MAX    ((size_t) 4 * 1024 * 1024)
#define PAGE_POLICY "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"

static void page_reply(struct http_request *request, const struct text *page)
{
    (void) http_reply_header(request, "Content-Security-Policy", PAGE_POLICY);
    http_reply(request, 200, OPENAPI_PAGE_TYPE, text_string(page), page->length);
}

void openapi_page_answer(struct http_request *request, const struct http_mount *mounts,
                         size_t count, const char *title, const char *document)
{
    struct kept_documents *documents = api_of(request)->documents;
    const struct text *kept = kept_document(documents, mounts, OPENAPI_PAGE_TYPE);
    AUTO(text) struct text page = TEXT_INIT(PAGE_MAX);

    if (kept) {
        page_reply(request, kept);
        return;
    }
    if (openapi_page_write(mounts, count, title, BURROW_VERSION, document, &page) < 0) {
        api_fail(request, ERR_INTERNAL, "the page does not fit");
        return;
    }
    kept_document_add(documents, mounts, OPENAPI_PAGE_TYPE, &page);
    page_reply(request, &page);
}
