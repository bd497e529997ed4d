#include "api/http/json_body.h"

static void json_body_client_left(struct http_request *request)
{
    (void) request; /* everything is in its pool */
}

void json_body_read_bytes(struct http_request *request, const char *bytes, size_t length,
                          json_body_read *read)
{
    const struct json_limits limits = {
        .size = length, .depth = JSON_DEPTH_MAX, .values = JSON_VALUES_MAX};
    struct error err = ERROR_INIT;
    AUTO(json) json_t *body = length ? json_read(bytes, length, &limits, &err) : json_object();
    struct json_place root;

    if (!body || json_root_object(body, &root, &err) < 0 || read(request, &root, &err) < 0)
        http_reply_error(request, &err);
}

static void arrived(struct http_request *request, const char *bytes, size_t length)
{
    json_body_read *const *read = request->data;

    json_body_read_bytes(request, bytes, length, *read);
}

void json_body_take(struct http_request *request, json_body_read *read)
{
    json_body_read **kept = pool_alloc(&request->pool, sizeof(*kept));

    *kept = read;
    request->data = kept;
    request->on_gone = json_body_client_left;
    http_request_collect(request, arrived);
}
