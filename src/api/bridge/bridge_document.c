/* /v1/openapi*: the bridge's own routes, and no others, as its clients expect. */
#include "api/bridge/bridge.h"
#include "api/bridge/bridge_internal.h"
#include "api/http/openapi.h"
#include "api/http/openapi_page.h"

#define TITLE "Burrow: sandbox bridge"

void bridge_document_json(struct http_request *request)
{
    openapi_answer(request, request->match.mount, 1, TITLE, BRIDGE_JSON);
}

void bridge_document_page(struct http_request *request)
{
    openapi_page_answer(request, request->match.mount, 1, TITLE, "/v1/openapi.json");
}
