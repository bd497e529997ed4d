#include "harness/query.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"

static void query_gone(struct deadline *deadline)
{
    struct query *query = CONTAINER_OF(deadline, struct query, deadline);
    struct roll *roll = query->roll;

    text_done(&query->reply);
    free(query->target);
    free(query->body);
    free(query);
    roll_leave(roll);
}

/* Nothing of it is under way any more. */
static void query_end(struct query *query)
{
    query->is_over = true;
    list_remove(&query->link);
    loop_task_cancel(&query->refuse);
    if (query->exchange)
        http_exchange_cancel(TAKE_PTR(query->exchange));
    deadline_close(&query->deadline, query_gone);
}

static void query_finish(struct query *query, const struct error *failure,
                         const struct query_reply *reply)
{
    if (query->is_over)
        return;
    query_end(query); /* first: whoever is told may ask the next, or close everything */
    query->done(query->context, failure, reply);
}

static void query_refused(struct loop_task *task)
{
    struct query *query = CONTAINER_OF(task, struct query, refuse);

    query_finish(query, &query->failure, NULL);
}

static void query_late(struct deadline *deadline)
{
    struct query *query = CONTAINER_OF(deadline, struct query, deadline);

    (void) error_set(&query->failure, ERR_UPSTREAM_TIMEOUT, 0, "%s %.100s was not answered",
                     query->request.method, query->target);
    query_finish(query, &query->failure, NULL);
}

/* --- the exchange ---------------------------------------------------------------------------- */

static bool query_is_good(const struct http_exchange *exchange)
{
    int status = http_exchange_head(exchange)->status;

    return status >= 200 && status < 300;
}

static void query_fail(struct query *query, enum err_code code, const char *what)
{
    (void) error_set(&query->failure, code, 0, "the answer to %s %.100s %s", query->request.method,
                     query->target, what);
    query_finish(query, &query->failure, NULL);
}

static void query_got_head(struct http_exchange *exchange)
{
    struct query *query = http_exchange_data(exchange);
    const char *encoding = http_head_get(http_exchange_head(exchange), "content-encoding");

    if (encoding && strcasecmp(encoding, "identity") != 0) {
        query_fail(query, ERR_UPSTREAM, "is compressed, which was not asked for");
        return;
    }
    if (!query->request.on_bytes || !query_is_good(exchange))
        return;
    deadline_clear(&query->deadline);
    if (query->request.on_open)
        query->request.on_open(query->context);
}

static void query_got_body(struct http_exchange *exchange, const char *bytes, size_t length)
{
    struct query *query = http_exchange_data(exchange);

    if (query->request.on_bytes && query_is_good(exchange)) {
        query->request.on_bytes(query->context, bytes, length);
        return;
    }
    text_append_bytes(&query->reply, bytes, length);
    if (query->reply.overflowed)
        query_fail(query, ERR_TOO_LARGE, "is too large");
}

static void query_got_end(struct http_exchange *exchange)
{
    struct query *query = http_exchange_data(exchange);
    AUTO(text) struct text kept = query->reply;
    struct query_reply reply = {.status = http_exchange_head(exchange)->status,
                                .bytes = text_string(&kept),
                                .length = kept.length};

    query->reply = (struct text) TEXT_INIT(0);
    query->exchange = NULL;
    query_finish(query, NULL, &reply);
}

static void query_got_failure(struct http_exchange *exchange, const struct error *error)
{
    struct query *query = http_exchange_data(exchange);

    query->exchange = NULL;
    query->failure = *error;
    query_finish(query, &query->failure, NULL);
}

static const struct http_exchange_events events = {
    .on_head = query_got_head,
    .on_body = query_got_body,
    .on_end = query_got_end,
    .on_failure = query_got_failure,
};

/* --- asking ---------------------------------------------------------------------------------- */

struct query *query_new(struct loop *loop, struct roll *roll, const struct query_request *request,
                        query_done *done, void *context)
{
    struct query *query = mem_alloc(sizeof(*query));

    *query = (struct query){
        .loop = loop,
        .roll = roll,
        .request = *request,
        .reply = TEXT_INIT(request->reply_max ? request->reply_max : QUERY_REPLY_MAX),
        .target = mem_copy_text(request->target),
        .body = request->body ? mem_copy_text(request->body) : NULL,
        .done = done,
        .context = context,
    };
    list_init(&query->link);
    loop_task_init(&query->refuse, query_refused);
    deadline_init(loop, &query->deadline, query_late);
    deadline_set(&query->deadline, request->timeout_ms);
    roll_enter(roll);
    return query;
}

void query_send(struct query *query, struct http_origin *origin)
{
    static const struct http_header headers[] = {
        HTTP_HEADER("Host", "127.0.0.1"),
        HTTP_HEADER("Accept-Encoding", "identity"),
        HTTP_HEADER("Content-Type", "application/json"),
    };
    size_t length = query->body ? strlen(query->body) : 0;
    struct http_exchange_request request = {.method = query->request.method,
                                            .target = query->target,
                                            .headers = headers,
                                            .header_count = ARRAY_COUNT(headers),
                                            .body_length = (int64_t) length,
                                            .send_length = query->body != NULL};

    if (!query->body)
        request.header_count--;
    query->exchange = http_exchange_start(origin, &request, &events, query);
    if (length)
        http_exchange_write(query->exchange, query->body, length);
    http_exchange_end(query->exchange);
}

void query_refuse(struct query *query, const struct error *failure)
{
    query->failure = *failure;
    loop_defer(query->loop, &query->refuse);
}

void query_cancel(struct query *query)
{
    if (query && !query->is_over)
        query_end(query);
}
