#include "net/outbound/outbound.h"

#include <stdlib.h>

#include "base/list.h"
#include "base/memory.h"
#include "net/outbound/curl_loop.h"

struct outbound {
    struct loop *loop; /* borrowed: outlives us */
    struct curl_loop curl;
    struct address_rules rules; /* never changes: connections that are kept were made under it */
    unsigned int active_max;
    unsigned int active;
    struct list running; /* of outbound_exchange */
    struct loop_task closer;
    bool is_closing;
    void (*on_closed)(void *context);
    void *context;
};

/* One exchange under way, with a copy of all that it needs. */
struct outbound_exchange {
    struct list link;
    struct outbound *outbound; /* borrowed: outlives us */
    struct curl_exchange exchange;
    struct outbound_request request;
    struct outbound_answer answer;
    struct outbound_body body;
    struct pool pool; /* of the texts */
    struct url url;
    CURL *easy; /* owned */
    void (*on_done)(void *context, const struct outbound_answer *answer, const struct error *err);
    void *context;
};

static void outbound_exchange_free(struct outbound_exchange *one)
{
    curl_easy_cleanup(one->easy);
    outbound_answer_done(&one->answer);
    pool_done(&one->pool);
    free(one);
}

AUTO_DEFINE_PTR(outbound_exchange, struct outbound_exchange, outbound_exchange_free);

/* Take it out of everything and tell its end. What was asked of whom goes into the error, but
 * nothing that may be secret. */
static void outbound_exchange_end(struct outbound_exchange *one, struct error *err)
{
    (void) curl_multi_remove_handle(one->outbound->curl.multi, one->easy);
    list_remove(&one->link);
    one->outbound->active--;
    if (err)
        (void) outbound_name_peer(one->request.method, &one->url, err);
    one->on_done(one->context, &one->answer, err);
    outbound_exchange_free(one);
}

static void transfer_finished(struct curl_loop *curl, CURL *easy, CURLcode result)
{
    struct outbound_exchange *one = NULL;
    struct error err = ERROR_INIT;
    int ended;

    (void) curl;
    (void) curl_easy_getinfo(easy, CURLINFO_PRIVATE, &one);
    ended = curl_exchange_end(&one->exchange, result, &err);
    outbound_exchange_end(one, ended < 0 ? &err : NULL);
}

static void curl_closed(struct curl_loop *curl)
{
    struct outbound *outbound = CONTAINER_OF(curl, struct outbound, curl);
    void (*on_closed)(void *context) = outbound->on_closed;
    void *context = outbound->context;

    free(outbound);
    if (on_closed)
        on_closed(context);
}

static void close_now(struct loop_task *task)
{
    struct outbound *outbound = CONTAINER_OF(task, struct outbound, closer);
    struct list *link;

    while ((link = list_first(&outbound->running))) {
        struct outbound_exchange *one = CONTAINER_OF(link, struct outbound_exchange, link);
        struct error err = ERROR_INIT;

        (void) curl_multi_remove_handle(outbound->curl.multi, one->easy);
        (void) curl_exchange_end(&one->exchange, CURLE_ABORTED_BY_CALLBACK, &err);
        (void) error_set(&err, ERR_CANCELLED, 0, "the client is shutting down");
        outbound_exchange_end(one, &err);
    }
    curl_loop_close(&outbound->curl, curl_closed);
}

struct outbound *outbound_new(struct loop *loop, const struct address_rules *rules,
                              unsigned int active_max)
{
    struct outbound *outbound = mem_alloc(sizeof(*outbound));

    outbound->loop = loop;
    outbound->rules = *rules;
    outbound->active_max = active_max;
    list_init(&outbound->running);
    loop_task_init(&outbound->closer, close_now);
    curl_loop_init(&outbound->curl, loop, active_max, transfer_finished);
    return outbound;
}

void outbound_close(struct outbound *outbound, void (*on_closed)(void *context), void *context)
{
    if (!outbound || outbound->is_closing)
        return;
    outbound->is_closing = true;
    outbound->on_closed = on_closed;
    outbound->context = context;
    loop_defer(outbound->loop, &outbound->closer);
}

/* What the caller lent goes away when outbound_start returns. Headers are copied by curl, which
 * keeps them as lines of its own. */
static int outbound_exchange_copy(struct outbound_exchange *one, const struct outbound_call *call,
                                  struct error *err)
{
    struct outbound_request *request = &one->request;

    request->method = pool_copy_text(&one->pool, call->method ? call->method : "GET");
    if (outbound_url_read(call->url, &one->pool, &request->url, &one->url, err) < 0)
        return -1;
    if (call->body) {
        one->body = (struct outbound_body){
            .bytes = pool_copy_bytes(&one->pool, call->body, call->body_length),
            .length = call->body_length};
        request->body = &one->body;
    }
    request->headers = call->headers;
    request->header_count = call->header_count;
    request->rules = &one->outbound->rules;
    request->connect_ms = call->connect_ms;
    request->total_ms = call->total_ms;
    one->answer.body.maximum = call->answer_max;
    one->on_done = call->on_done;
    one->context = call->context;
    return 0;
}

int outbound_start(struct outbound *outbound, const struct outbound_call *call, struct error *err)
{
    AUTO(outbound_exchange) struct outbound_exchange *one = NULL;

    if (outbound->is_closing)
        return error_set(err, ERR_UNAVAILABLE, 0, "the client is shutting down");
    if (outbound->active >= outbound->active_max)
        return error_set(err, ERR_UNAVAILABLE, 0,
                         "%u outgoing requests are running: try again later", outbound->active);
    one = mem_alloc(sizeof(*one));
    one->outbound = outbound;
    one->easy = curl_easy_init();
    if (!one->easy)
        abort(); /* out of memory */
    if (outbound_exchange_copy(one, call, err) < 0 ||
        curl_exchange_begin(&one->exchange, one->easy, &one->request, &one->answer, err) < 0)
        return -1;
    one->request.headers = NULL;
    if (curl_easy_setopt(one->easy, CURLOPT_PRIVATE, one) ||
        curl_multi_add_handle(outbound->curl.multi, one->easy) != CURLM_OK) {
        (void) curl_exchange_end(&one->exchange, CURLE_FAILED_INIT, err);
        return error_set(err, ERR_INTERNAL, 0, "libcurl refused a request");
    }
    list_append(&outbound->running, &one->link);
    outbound->active++;
    one = NULL; /* the loop's now */
    return 0;
}
