#include "api/http/pending.h"

#include "base/auto.h"
#include "base/memory.h"

struct pending {
    struct http_request *request; /* borrowed; NULL: gone */
};

static void client_gone(struct http_request *request)
{
    struct pending *pending = request->data;

    pending->request = NULL;
}

struct pending *pending_new(struct http_request *request)
{
    struct pending *pending = mem_alloc(sizeof(*pending));

    pending->request = request;
    request->data = pending;
    request->on_gone = client_gone;
    return pending;
}

struct http_request *pending_take(struct pending *pending)
{
    struct http_request *request = pending->request;

    free(pending);
    if (request) {
        request->data = NULL;
        request->on_gone = NULL;
    }
    return request;
}

struct http_request *pending_take_good(struct pending *pending, const struct error *failure)
{
    struct http_request *request = pending_take(pending);

    if (!request || !failure)
        return request;
    http_reply_error(request, failure);
    return NULL;
}

void pending_end(struct pending *pending, const struct error *failure)
{
    struct http_request *request = pending_take_good(pending, failure);

    if (request)
        http_reply(request, 204, NULL, NULL, 0);
}
