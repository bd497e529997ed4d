/* One request to its upstream and back: asked for, dialled, passed both ways with back-pressure, and
 * metered while it passes. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/auto.h"
#include "base/memory.h"
#include "broker/broker_internal.h"
#include "broker/meter.h"
#include "broker/refusal.h"
#include "broker/relay_head.h"
#include "broker/usage_wish.h"

#define RELAY_PIECE_MAX ((size_t) 4 * LOOP_SCRATCH_SIZE)

struct broker_relay {
    struct broker_outlet *outlet;
    struct http_request *request;   /* NULL: the client is gone, or answered */
    struct broker_passage *passage; /* owned */
    struct dial *dial;
    struct upstream *upstream; /* held */
    struct http_exchange *exchange;
    struct relay_head head;
    struct meter *meter;      /* owned; NULL: nothing is metered */
    struct usage_wish *wish;  /* owned; NULL: the body goes as it is */
    struct text piece;        /* of the body, rewritten */
    bool is_telling, is_over; /* the domain is being told: whoever does it frees us */
    bool has_started;         /* the body is on its way: nothing can be sent again */
};

/* --- the end ---------------------------------------------------------------------------------- */

static void relay_note_usage(struct broker_relay *relay, bool is_whole)
{
    struct broker_record *record = &relay->passage->record;

    if (!relay->meter)
        return;
    if (is_whole)
        meter_finish(relay->meter);
    meter_usage(relay->meter, &record->usage);
    record->is_partial = !is_whole || !meter_is_complete(relay->meter);
}

/* `failure` NULL: it ended as it should. */
static void relay_free(struct broker_relay *relay, const char *failure)
{
    if (relay->dial)
        dial_cancel(relay->dial);
    if (relay->exchange)
        http_exchange_cancel(relay->exchange);
    if (relay->upstream)
        upstream_leave(relay->upstream);
    if (relay->passage) {
        relay_note_usage(relay, !failure);
        passage_end(relay->passage, failure);
    }
    free(relay->meter);
    free(relay->wish);
    text_done(&relay->piece);
    relay->is_over = true;
    if (!relay->is_telling)
        free(relay);
}

/* Answer in the form of the API, or cut what is being answered. */
static void relay_answer(struct broker_relay *relay, const struct error *error, const char *type)
{
    struct http_request *request = TAKE_PTR(relay->request);
    enum broker_format format = relay->passage->grant.format;
    AUTO(text) struct text body = TEXT_INIT(ERROR_MESSAGE_MAX * 8);
    int status = error_http_status(error->code);

    request->on_gone = NULL;
    if (request->state != HTTP_REQUEST_FRESH) {
        http_reply_cut(request);
        return;
    }
    if (error->code == ERR_QUOTA || error->code == ERR_FORBIDDEN) /* asking again changes nothing */
        (void) http_reply_header(request, "X-Should-Retry", "false");
    refusal_write(&body, format, error, type);
    if (!relay->passage->record.status)
        relay->passage->record.status = (unsigned int) status;
    http_reply(request, status, "application/json", text_string(&body), body.length);
}

static void relay_fail(struct broker_relay *relay, const struct error *error)
{
    struct error copy = *error;

    relay->outlet->engine->counters.failures++;
    relay_answer(relay, &copy, NULL);
    relay_free(relay, copy.message);
}

static void relay_gone(struct http_request *request)
{
    struct broker_relay *relay = request->data;

    relay->request = NULL;
    relay_free(relay, "the client left");
}

/* --- metering --------------------------------------------------------------------------------- */

/* The budget is used up: the client is told in the stream, and no more comes. */
static void relay_cut_stream(struct broker_relay *relay)
{
    struct http_request *request = TAKE_PTR(relay->request);
    AUTO(text) struct text event = TEXT_INIT(ERROR_MESSAGE_MAX * 8);
    struct error error;

    (void) error_set(&error, ERR_QUOTA, 0, "the budget of this sandbox is used up");
    relay->outlet->engine->counters.cut++;
    request->on_gone = NULL;
    refusal_write_event(&event, relay->passage->grant.format, &error, "budget_exceeded");
    http_reply_write(request, text_string(&event), event.length);
    if (request->reply_length == HTTP_LENGTH_UNKNOWN)
        http_reply_end(request);
    else
        http_reply_cut(request);
    relay_free(relay, "the budget was used up");
}

/* Whether the stream may go on. False: the relay is gone. */
static bool relay_may_go_on(struct broker_relay *relay)
{
    const struct broker_host *host = &relay->outlet->engine->options.host;
    const struct broker_grant *grant = &relay->passage->grant;
    struct broker_usage usage;
    bool goes_on;

    meter_usage(relay->meter, &usage);
    relay->is_telling = true;
    goes_on = host->used(host->self, grant->number, grant->format, &usage);
    relay->is_telling = false;
    if (relay->is_over) {
        free(relay);
        return false;
    }
    if (goes_on)
        return true;
    relay_cut_stream(relay);
    return false;
}

/* Pass the bytes on as far as they were looked at. False: the relay is gone. */
static bool relay_pass_metered(struct broker_relay *relay, const char *bytes, size_t length)
{
    while (length) {
        bool is_news = false;
        size_t used = meter_feed(relay->meter, bytes, length, &is_news);

        http_reply_write(relay->request, bytes, used);
        bytes += used;
        length -= used;
        if (is_news && !relay_may_go_on(relay))
            return false;
    }
    return true;
}

static void relay_begin_meter(struct broker_relay *relay, const struct http_head *head)
{
    enum broker_format format = relay->passage->grant.format;
    const char *encoding = http_head_get(head, "content-encoding");

    if (format == BROKER_UNMETERED || head->status < 200 || head->status > 299 ||
        (encoding && strcasecmp(encoding, "identity") != 0))
        return;
    relay->meter = mem_alloc(sizeof(*relay->meter));
    meter_init(relay->meter, format, http_head_get(head, "content-type"));
}

/* --- the reply -------------------------------------------------------------------------------- */

static void relay_head_came(struct http_exchange *exchange)
{
    struct broker_relay *relay = http_exchange_data(exchange);
    const struct http_head *head = http_exchange_head(exchange);
    struct broker_record *record = &relay->passage->record;
    struct error error;

    record->status = (unsigned int) head->status;
    record->first_byte_ms = passage_ms(relay->passage);
    if (relay_head_copy(relay->request, head, &relay->passage->grant) < 0) {
        (void) error_set(&error, ERR_UPSTREAM, 0, "the upstream's reply head is too large");
        relay_fail(relay, &error);
        return;
    }
    relay_begin_meter(relay, head);
    http_reply_begin(relay->request, head->status, NULL, head->content_length);
}

static void relay_body_came(struct http_exchange *exchange, const char *bytes, size_t length)
{
    struct broker_relay *relay = http_exchange_data(exchange);

    relay->passage->record.received += length;
    if (!relay->meter)
        http_reply_write(relay->request, bytes, length);
    else if (!relay_pass_metered(relay, bytes, length))
        return;
    if (http_reply_is_full(relay->request))
        http_exchange_pause(exchange);
}

static void relay_drained(struct http_request *request)
{
    struct broker_relay *relay = request->data;

    if (relay->exchange)
        http_exchange_resume(relay->exchange);
}

static void relay_ended(struct http_exchange *exchange)
{
    struct broker_relay *relay = http_exchange_data(exchange);
    struct http_request *request = TAKE_PTR(relay->request);

    relay->exchange = NULL;
    request->on_gone = NULL;
    http_reply_end(request);
    relay_free(relay, NULL);
}

static void relay_dial(struct broker_relay *relay);

static void relay_failed(struct http_exchange *exchange, const struct error *error)
{
    struct broker_relay *relay = http_exchange_data(exchange);
    struct error told = *error;

    relay->exchange = NULL;
    if (upstream_was_stale(error) && !relay->has_started) {
        relay_dial(relay);
        return;
    }
    if (error->system == EPROTO || error->system == -EPROTO)
        (void) error_set(&told, ERR_UPSTREAM, 0,
                         "no TLS with %.128s: nobody trusts its certificate, or it speaks another "
                         "protocol",
                         relay->head.address.host);
    relay_fail(relay, &told);
}

static void relay_upgraded(struct http_exchange *exchange, struct stream *upstream,
                           const char *pending, size_t length)
{
    struct broker_relay *relay = http_exchange_data(exchange);
    struct http_request *request = relay->request;
    AUTO(text) struct text early = TEXT_INIT(SIZE_MAX / 2);
    struct error error = ERROR_INIT;
    struct stream *client = NULL;

    relay->exchange = NULL;
    if (relay_head_copy(request, http_exchange_head(exchange), &relay->passage->grant) == 0)
        client = http_reply_upgrade(request, "websocket", &early, &error);
    else
        (void) error_set(&error, ERR_UPSTREAM, 0, "the upstream's reply head is too large");
    if (!client) {
        stream_close(upstream, stream_free);
        relay_fail(relay, &error);
        return;
    }
    relay->request = NULL;
    relay->passage->record.status = 101;
    tunnel_begin(relay->outlet, TAKE_PTR(relay->passage), client, text_string(&early), early.length,
                 upstream, pending, length, true);
    relay_free(relay, NULL);
}

static void relay_upstream_drained(struct http_exchange *exchange)
{
    struct broker_relay *relay = http_exchange_data(exchange);

    http_request_resume(relay->request);
}

static const struct http_exchange_events relay_events = {
    .on_head = relay_head_came,
    .on_body = relay_body_came,
    .on_end = relay_ended,
    .on_drain = relay_upstream_drained,
    .on_upgrade = relay_upgraded,
    .on_failure = relay_failed,
};

/* --- the request ------------------------------------------------------------------------------ */

static void relay_send_body(struct broker_relay *relay, const char *bytes, size_t length)
{
    http_exchange_write(relay->exchange, bytes, length);
    if (http_exchange_is_full(relay->exchange))
        http_request_pause(relay->request);
}

static void relay_client_body(struct http_request *request, const char *bytes, size_t length)
{
    struct broker_relay *relay = request->data;

    if (!relay->exchange)
        return;
    relay->passage->record.sent += length;
    if (!relay->wish) {
        relay_send_body(relay, bytes, length);
        return;
    }
    text_clear(&relay->piece);
    usage_wish_feed(relay->wish, bytes, length, &relay->piece);
    relay_send_body(relay, text_string(&relay->piece), relay->piece.length);
}

static void relay_client_body_end(struct http_request *request)
{
    struct broker_relay *relay = request->data;

    if (!relay->exchange)
        return;
    if (relay->wish) {
        text_clear(&relay->piece);
        usage_wish_finish(relay->wish, &relay->piece);
        http_exchange_write(relay->exchange, text_string(&relay->piece), relay->piece.length);
    }
    http_exchange_end(relay->exchange);
}

static int64_t relay_body_length(const struct broker_relay *relay)
{
    const struct http_head *head = relay->request->head;

    if (head->chunked)
        return HTTP_LENGTH_UNKNOWN;
    if (head->content_length <= 0)
        return 0;
    return head->content_length + (relay->wish ? (int64_t) USAGE_WISH_ROOM : 0);
}

static void relay_start(struct broker_relay *relay, int fd)
{
    struct http_request *request = relay->request;
    const struct http_exchange_request outgoing = {
        .method = request->head->method,
        .target = relay->head.target,
        .headers = relay->head.headers,
        .header_count = relay->head.header_count,
        .body_length = relay_body_length(relay),
        .send_length = request->head->content_length == 0,
        .upgrade = relay->passage->ask.is_upgrade,
    };

    relay->has_started = outgoing.body_length != 0;
    relay->exchange = upstream_start(relay->upstream, fd, &outgoing, &relay_events, relay);
    http_request_stream(request, relay_client_body, relay_client_body_end);
}

static void relay_dialled(void *context, int fd, const struct error *err)
{
    struct broker_relay *relay = context;

    relay->dial = NULL;
    if (err)
        relay_fail(relay, err);
    else
        relay_start(relay, fd);
}

static void relay_dial(struct broker_relay *relay)
{
    relay->dial = outlet_dial(relay->outlet, relay->head.address.host, relay->head.address.port,
                              &relay->passage->grant, relay_dialled, relay);
}

/* --- granted or not --------------------------------------------------------------------------- */

static void relay_pass(struct broker_relay *relay)
{
    const struct broker_passage *passage = relay->passage;
    struct error error;

    if (passage->ask.is_upgrade && passage->grant.format != BROKER_UNMETERED) {
        (void) error_set(&error, ERR_UPGRADE_REQUIRED, 0,
                         "this API is not passed on as a WebSocket: send plain requests");
        relay_answer(relay, &error, NULL);
        relay_free(relay, "it asked for a WebSocket");
        return;
    }
    if (relay_head_write(relay->request, &passage->ask, &passage->grant, &relay->head, &error) <
        0) {
        relay_fail(relay, &error);
        return;
    }
    if (relay->head.has_wish) {
        relay->wish = mem_alloc(sizeof(*relay->wish));
        usage_wish_init(relay->wish);
    }
    relay->upstream = upstream_get(relay->outlet, &relay->head.address, &passage->grant);
    upstream_hold(relay->upstream);
    relay->outlet->engine->counters.requests++;
    if (upstream_has_idle(relay->upstream))
        relay_start(relay, -EBADF);
    else
        relay_dial(relay);
}

static void relay_answered(void *owner, struct broker_passage *passage,
                           const struct broker_grant *grant)
{
    struct broker_relay *relay = owner;
    struct error error;

    (void) passage;
    if (grant->verdict == BROKER_PASS) {
        relay_pass(relay);
        return;
    }
    if (grant->verdict == BROKER_DENY && grant->refusal)
        error = *grant->refusal;
    else
        (void) error_set(&error, ERR_INTERNAL, 0, "the answer makes no sense for a request");
    relay_answer(relay, &error, grant->refusal_type);
    relay_free(relay, error.message);
}

void relay_begin(struct http_request *request, const struct broker_ask *ask)
{
    struct broker_relay *relay = mem_alloc(sizeof(*relay));

    relay->outlet = request->context;
    relay->request = request;
    relay->piece = (struct text) TEXT_INIT(RELAY_PIECE_MAX);
    request->data = relay;
    request->on_gone = relay_gone;
    request->on_drain = relay_drained;
    relay->passage = passage_ask(relay->outlet, ask, relay_answered, relay);
}
