/* The version, and the documents about every dialect. */
#include "api/http/api.h"
#include "api/http/openapi.h"
#include "api/http/openapi_page.h"
#include "api/native/handlers.h"

void native_get_version(struct http_request *request)
{
    http_reply_text(request, 200, "application/json", "{\"version\":\"" BURROW_VERSION "\"}");
}

void native_get_openapi(struct http_request *request)
{
    const struct api *api = api_of(request);

    openapi_answer(request, api->mounts, api->mount_count, "Burrow", "application/json");
}

void native_get_docs(struct http_request *request)
{
    const struct api *api = api_of(request);

    openapi_page_answer(request, api->mounts, api->mount_count, "Burrow",
                        "/burrow/v1/openapi.json");
}
