#include "api/agent/inquiry.h"

#include <stdlib.h>

#include "base/memory.h"

static void inquiry_gone(struct deadline *deadline)
{
    struct inquiry *inquiry = CONTAINER_OF(deadline, struct inquiry, deadline);
    struct agents *agents = inquiry->agents;

    text_done(&inquiry->reply);
    free(inquiry);
    agents_part_closed(agents);
}

/* The one answer, and the end. */
static void inquiry_finish(struct inquiry *inquiry, const struct error *failure)
{
    if (inquiry->is_answered)
        return;
    inquiry->is_answered = true;
    list_remove(&inquiry->link);
    loop_task_cancel(&inquiry->refuse);
    if (inquiry->exchange)
        http_exchange_cancel(TAKE_PTR(inquiry->exchange));
    inquiry->answer(inquiry, failure);
    deadline_close(&inquiry->deadline, inquiry_gone);
}

static void inquiry_refuse_now(struct loop_task *task)
{
    struct inquiry *inquiry = CONTAINER_OF(task, struct inquiry, refuse);

    inquiry_finish(inquiry, &inquiry->failure);
}

static void inquiry_time_is_up(struct deadline *deadline)
{
    struct inquiry *inquiry = CONTAINER_OF(deadline, struct inquiry, deadline);

    (void) error_set(&inquiry->failure, ERR_UPSTREAM_TIMEOUT, 0, "the agent does not answer");
    inquiry_finish(inquiry, &inquiry->failure);
}

void inquiry_got_head(struct http_exchange *exchange)
{
    (void) exchange; /* the status is looked at in the end */
}

void inquiry_got_body(struct http_exchange *exchange, const char *bytes, size_t length)
{
    struct inquiry *inquiry = http_exchange_data(exchange);

    text_append_bytes(&inquiry->reply, bytes, length);
    if (!inquiry->reply.overflowed)
        return;
    (void) error_set(&inquiry->failure, ERR_TOO_LARGE, 0, "the agent's answer is too large");
    inquiry_finish(inquiry, &inquiry->failure);
}

void inquiry_got_end(struct http_exchange *exchange)
{
    struct inquiry *inquiry = http_exchange_data(exchange);

    inquiry->status = http_exchange_head(exchange)->status;
    inquiry->exchange = NULL;
    if (inquiry->status >= 200 && inquiry->status < 300) {
        inquiry_finish(inquiry, NULL);
        return;
    }
    (void) error_set(&inquiry->failure, ERR_UPSTREAM, 0, "the agent answered with status %d",
                     inquiry->status);
    inquiry_finish(inquiry, &inquiry->failure);
}

void inquiry_got_failure(struct http_exchange *exchange, const struct error *error)
{
    struct inquiry *inquiry = http_exchange_data(exchange);

    inquiry->exchange = NULL;
    inquiry->failure = *error;
    inquiry_finish(inquiry, &inquiry->failure);
}

struct inquiry *inquiry_new(struct agents *agents, const struct id *sandbox, uint64_t timeout_ms,
                            struct http_origin **ret_origin)
{
    struct inquiry *inquiry = mem_alloc(sizeof(*inquiry));

    inquiry->agents = agents;
    inquiry->reply = (struct text) TEXT_INIT(INQUIRY_REPLY_MAX);
    agents->open++;
    list_init(&inquiry->link);
    list_append(&agents->inquiries, &inquiry->link);
    loop_task_init(&inquiry->refuse, inquiry_refuse_now);
    deadline_init(agents->loop, &inquiry->deadline, inquiry_time_is_up);
    deadline_set(&inquiry->deadline, timeout_ms);
    *ret_origin = agents_origin(agents, sandbox, &inquiry->failure);
    if (!*ret_origin)
        inquiry_refuse(inquiry);
    return inquiry;
}

void inquiry_refuse(struct inquiry *inquiry)
{
    loop_defer(inquiry->agents->loop, &inquiry->refuse);
}

void inquiries_close(struct agents *agents)
{
    struct error closing;
    struct list *first;

    (void) error_set(&closing, ERR_UNAVAILABLE, 0, "the daemon is shutting down");
    while ((first = list_first(&agents->inquiries)))
        inquiry_finish(CONTAINER_OF(first, struct inquiry, link), &closing);
}
