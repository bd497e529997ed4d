#include "net/outbound/outbound.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>

#include "base/auto.h"
#include "base/memory.h"
#include "net/outbound/outbound_internal.h"

int outbound_global_init(struct error *err)
{
    CURLcode result = curl_global_init(CURL_GLOBAL_DEFAULT);

    if (result != CURLE_OK)
        return error_set(err, ERR_INTERNAL, 0, "start libcurl: %s", curl_easy_strerror(result));
    return 0;
}

void outbound_global_done(void)
{
    curl_global_cleanup();
}

static void release_piece(struct outbound *outbound)
{
    void (*on_closed)(void *context) = outbound->on_closed;
    void *context = outbound->context;

    if (--outbound->pieces)
        return;
    free(outbound->ca_file);
    free(outbound);
    if (on_closed)
        on_closed(context);
}

static void request_closed(struct deadline *deadline)
{
    struct outbound_request *request = CONTAINER_OF(deadline, struct outbound_request, deadline);
    struct outbound *outbound = request->outbound;

    outbound_request_free(request);
    release_piece(outbound);
}

/* Take the request out of everything and, unless its owner cancelled, tell the end. */
static void finish(struct outbound_request *request, struct error *err)
{
    struct outbound *outbound = request->outbound;

    outbound_transfer_end(request);
    if (request->state == OUTBOUND_RUNNING)
        outbound->active--;
    else
        outbound->waiting--;
    request->state = OUTBOUND_FINISHED;
    list_remove(&request->link);
    list_remove(&request->attention);
    if (!request->cancelled)
        request->events->on_done(request, request->context, err);
    deadline_close(&request->deadline, request_closed);
    if (!outbound->closing && !list_is_empty(&outbound->queued))
        loop_defer(outbound->loop, &outbound->pump);
}

/* The end with an error, told with what was asked of whom, but nothing that may be secret. */
static void finish_failed(struct outbound_request *request, struct error *err)
{
    struct url_host host;

    url_host_of(&request->url, &host);
    (void) error_wrap(err, host.kind == URL_HOST_IPV6 ? "%s %s://[%s]:%u" : "%s %s://%s:%u",
                      request->method, url_scheme_text(request->url.scheme), host.name,
                      (unsigned int) host.port);
    finish(request, err);
}

static void need_attention(struct outbound_request *request)
{
    struct outbound *outbound = request->outbound;

    if (list_is_empty(&request->attention))
        list_append(&outbound->attention, &request->attention);
    loop_defer(outbound->loop, &outbound->pump);
}

/* `time` plus `milliseconds`, where OUTBOUND_NO_LIMIT stays what it is. */
static uint64_t later(uint64_t time, uint64_t milliseconds)
{
    uint64_t sum;

    return __builtin_add_overflow(time, milliseconds, &sum) ? OUTBOUND_NO_LIMIT : sum;
}

/* When the next limit of time is reached: a loop_now() value or OUTBOUND_NO_LIMIT. */
static uint64_t next_due(const struct outbound_request *request)
{
    uint64_t idle_due = later(request->active_at, request->limits.idle_ms);

    if (request->state == OUTBOUND_QUEUED || idle_due > request->total_due)
        return request->total_due;
    return idle_due;
}

static void arm_deadline(struct outbound_request *request)
{
    uint64_t due = next_due(request), now = loop_now(request->outbound->loop);

    if (due != OUTBOUND_NO_LIMIT)
        deadline_set(&request->deadline, due > now ? due - now : 0);
}

static void deadline_due(struct deadline *deadline)
{
    struct outbound_request *request = CONTAINER_OF(deadline, struct outbound_request, deadline);
    uint64_t now = loop_now(request->outbound->loop);
    struct error err = ERROR_INIT;

    if (request->cancelled)
        return;
    /* Silence that we ordered is not the peer's. */
    if (request->paused || request->held_send)
        request->active_at = now;
    if (next_due(request) > now) {
        arm_deadline(request);
        return;
    }
    if (now >= request->total_due)
        (void) error_set(&err, ERR_UPSTREAM_TIMEOUT, 0, "not done after %llu ms",
                         (unsigned long long) request->limits.total_ms);
    else
        (void) error_set(&err, ERR_UPSTREAM_TIMEOUT, 0, "silent for %llu ms",
                         (unsigned long long) request->limits.idle_ms);
    finish_failed(request, &err);
}

static void begin_hop(struct outbound_request *request)
{
    struct error err = ERROR_INIT;

    if (outbound_transfer_begin(request, &err) < 0)
        finish_failed(request, &err);
    else
        arm_deadline(request);
}

static void transfer_finished(struct curl_loop *curl, CURL *easy, CURLcode result)
{
    struct outbound_request *request = NULL;
    struct error err = ERROR_INIT;

    (void) curl;
    (void) curl_easy_getinfo(easy, CURLINFO_PRIVATE, &request);
    /* curl 7.88 calls a response whose head was cut off a success. */
    if (result == CURLE_OK && !request->received.head_done)
        result = CURLE_PARTIAL_FILE;
    if (request->cancelled || (result == CURLE_OK && request->failure.code == ERR_NONE &&
                               !request->received.redirecting)) {
        finish(request, NULL);
    } else if (request->received.redirecting && request->failure.code == ERR_NONE) {
        /* `result` does not matter: a long body was cut short on purpose. */
        outbound_transfer_end(request);
        if (outbound_redirect_follow(request, &err) < 0)
            finish_failed(request, &err);
        else
            begin_hop(request);
    } else {
        (void) outbound_transfer_error(request, result, &err);
        finish_failed(request, &err);
    }
}

/* What was asked for since: the end, or another state of holding. */
static void attend_one(struct outbound_request *request)
{
    struct error err = ERROR_INIT;
    CURLcode result;

    if (request->cancelled) {
        finish(request, NULL);
        return;
    }
    if (!request->easy)
        return;
    result = outbound_transfer_hold(request);
    /* curl delivers held bytes inside that call. When that fails, nobody else hears of it. */
    if (result != CURLE_OK && !request->cancelled) {
        (void) outbound_transfer_error(request, result, &err);
        finish_failed(request, &err);
    }
}

static void attend(struct outbound *outbound)
{
    struct list batch, *link;

    /* Requests that want attention again meanwhile get it next turn. */
    list_init(&batch);
    while ((link = list_first(&outbound->attention))) {
        list_remove(link);
        list_append(&batch, link);
    }
    while ((link = list_first(&batch))) {
        list_remove(link);
        attend_one(CONTAINER_OF(link, struct outbound_request, attention));
    }
}

static void start_queued(struct outbound *outbound)
{
    struct list *link;

    while (outbound->active < outbound->active_max && (link = list_first(&outbound->queued))) {
        struct outbound_request *request = CONTAINER_OF(link, struct outbound_request, link);

        list_remove(link);
        list_append(&outbound->running, link);
        request->state = OUTBOUND_RUNNING;
        outbound->waiting--;
        outbound->active++;
        begin_hop(request);
    }
}

static void curl_closed(struct curl_loop *curl)
{
    release_piece(CONTAINER_OF(curl, struct outbound, curl));
}

static void end_all(struct outbound *outbound)
{
    struct list *link;

    while ((link = list_first(&outbound->running)) || (link = list_first(&outbound->queued))) {
        struct error err = ERROR_INIT;

        (void) error_set(&err, ERR_CANCELLED, 0, "the client is shutting down");
        finish_failed(CONTAINER_OF(link, struct outbound_request, link), &err);
    }
    loop_task_cancel(&outbound->pump);
    while (outbound->spare_count)
        curl_easy_cleanup(outbound->spare[--outbound->spare_count]);
    curl_loop_close(&outbound->curl, curl_closed);
}

static void pump(struct loop_task *task)
{
    struct outbound *outbound = CONTAINER_OF(task, struct outbound, pump);

    attend(outbound);
    if (outbound->closing)
        end_all(outbound);
    else
        start_queued(outbound);
}

/* A CA file that cannot be used is told at start and not at the first request. */
static int check_ca_file(const char *path, struct error *err)
{
    SSL_CTX *tls = SSL_CTX_new(TLS_client_method());
    int loaded;

    if (!tls)
        abort(); /* out of memory */
    loaded = SSL_CTX_load_verify_file(tls, path);
    SSL_CTX_free(tls);
    ERR_clear_error();
    if (loaded != 1)
        return error_set(err, ERR_INVALID, 0, "'%s' holds no readable CA certificate", path);
    return 0;
}

static unsigned int count_or(unsigned int wanted, unsigned int usual)
{
    if (!wanted)
        return usual;
    return wanted > OUTBOUND_COUNT_LIMIT ? OUTBOUND_COUNT_LIMIT : wanted;
}

int outbound_new(struct loop *loop, const struct outbound_settings *settings,
                 struct outbound **ret_outbound, struct error *err)
{
    struct outbound *outbound;

    if (settings->ca_file && check_ca_file(settings->ca_file, err) < 0)
        return -1;
    outbound = mem_alloc(sizeof(*outbound));
    outbound->loop = loop;
    outbound->rules = settings->rules;
    outbound->ca_file = settings->ca_file ? mem_copy_text(settings->ca_file) : NULL;
    outbound->active_max = count_or(settings->active_max, OUTBOUND_ACTIVE_MAX);
    outbound->queue_max = count_or(settings->queue_max, OUTBOUND_QUEUE_MAX);
    outbound->pieces = 1;
    list_init(&outbound->queued);
    list_init(&outbound->running);
    list_init(&outbound->attention);
    loop_task_init(&outbound->pump, pump);
    curl_loop_init(&outbound->curl, loop, outbound->active_max, transfer_finished);
    *ret_outbound = outbound;
    return 0;
}

void outbound_close(struct outbound *outbound, void (*on_closed)(void *context), void *context)
{
    if (!outbound || outbound->closing)
        return;
    outbound->closing = true;
    outbound->on_closed = on_closed;
    outbound->context = context;
    loop_defer(outbound->loop, &outbound->pump);
}

int outbound_start(struct outbound *outbound, const struct outbound_call *call,
                   struct outbound_request **ret_request, struct error *err)
{
    struct outbound_request *request;

    if (outbound->closing)
        return error_set(err, ERR_UNAVAILABLE, 0, "the client is shutting down");
    if (outbound->active + outbound->waiting >= outbound->active_max + outbound->queue_max)
        return error_set(err, ERR_UNAVAILABLE, 0,
                         "%u outgoing requests are running and %u waiting: try again later",
                         outbound->active, outbound->waiting);
    if (outbound_request_new(outbound, call, &request, err) < 0)
        return -1;
    outbound->pieces++;
    outbound->waiting++;
    list_append(&outbound->queued, &request->link);
    deadline_init(outbound->loop, &request->deadline, deadline_due);
    request->total_due = later(loop_now(outbound->loop), request->limits.total_ms);
    arm_deadline(request);
    loop_defer(outbound->loop, &outbound->pump);
    if (ret_request)
        *ret_request = request;
    return 0;
}

void outbound_cancel(struct outbound_request *request)
{
    if (request->cancelled || request->state == OUTBOUND_FINISHED)
        return;
    request->cancelled = true;
    if (request->state == OUTBOUND_QUEUED)
        finish(request, NULL); /* curl does not know it yet */
    else
        need_attention(request);
}

void outbound_pause(struct outbound_request *request)
{
    request->paused = true; /* curl hears of it with its next bytes */
}

void outbound_resume(struct outbound_request *request)
{
    request->paused = false;
    outbound_alive(request); /* the silence until now was ours */
    if (request->held_receive)
        need_attention(request);
}

void outbound_resume_send(struct outbound_request *request)
{
    request->send_woken = true;
    need_attention(request);
}
