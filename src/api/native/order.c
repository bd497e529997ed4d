#include "api/native/order.h"

#include <stdlib.h>

#include "api/http/api.h"
#include "api/http/idempotency.h"
#include "api/http/pending.h"
#include "base/auto.h"
#include "base/memory.h"

struct order {
    struct pending *pending;
    struct idempotency_entry *entry; /* may be NULL */
    struct caller caller;
};

struct order *order_new(struct http_request *request)
{
    struct order *order = mem_alloc(sizeof(*order));

    order->caller = *request_caller(request);
    order->entry = idempotency_adopt(request);
    order->pending = pending_new(request);
    return order;
}

const struct caller *order_caller(const struct order *order)
{
    return &order->caller;
}

void order_end(struct order *order, const struct error *failure, int status,
               const struct text *body)
{
    AUTO(free) struct order *mine = order;
    struct http_request *request = pending_take(mine->pending);

    if (!request && failure)
        idempotency_drop(mine->entry);
    else if (!request)
        idempotency_keep(mine->entry, status, text_string(body), body->length);
    else if (failure)
        http_reply_error(request, failure);
    else
        http_reply(request, status, "application/json", text_string(body), body->length);
}
