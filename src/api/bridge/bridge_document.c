/* /v1/openapi*: the bridge's own routes, and no others, as its clients expect. */
#include "api/bridge/bridge.h"
#include "api/bridge/bridge_internal.h"
#include "api/http/openapi.h"
#include "api/http/openapi_page.h"
#include "base/auto.h"

#define TITLE        "Burrow: sandbox bridge"
#define DOCUMENT_MAX ((size_t) 1024 * 1024)

static void answer(struct http_request *request, const char *type, int written,
                   const struct text *document)
{
    if (written < 0)
        api_fail(request, ERR_INTERNAL, "the document does not fit");
    else
        http_reply(request, 200, type, text_string(document), document->length);
}

void bridge_document_json(struct http_request *request)
{
    const struct http_mount *mount = request->match.mount;
    AUTO(text) struct text document = TEXT_INIT(DOCUMENT_MAX);

    answer(request, BRIDGE_JSON, openapi_write(&mount, 1, TITLE, BURROW_VERSION, &document),
           &document);
}

void bridge_document_page(struct http_request *request)
{
    const struct http_mount *mount = request->match.mount;
    AUTO(text) struct text page = TEXT_INIT(DOCUMENT_MAX);
    int written = openapi_page_write(&mount, 1, TITLE, BURROW_VERSION, "/v1/openapi.json", &page);

    (void) http_reply_header(request, "Content-Security-Policy",
                             "default-src 'none'; style-src 'unsafe-inline'");
    answer(request, OPENAPI_PAGE_TYPE, written, &page);
}
