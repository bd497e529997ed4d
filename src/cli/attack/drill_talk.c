#include "cli/attack/drill_talk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/clock.h"
#include "json/json_read.h"

#define ANSWER_MS      60000
#define FIXED_HEADERS  6
#define UPGRADE_HEADER 4
#define NS_PER_MS      1e6
#define FIRST_REFUSAL  400
#define TRIES          3

/* --- the end --------------------------------------------------------------------------------- */

static void talk_over(struct drill_talk *talk, bool is_cut)
{
    if (talk->is_over)
        return;
    talk->is_over = true;
    talk->is_cut = is_cut;
    talk->ended_ns = clock_monotonic_ns(clock_system());
    loop_stop(&talk->client->loop);
    if (talk->on_over)
        talk->on_over(talk);
}

static void talk_tunnel_data(struct stream *stream, const char *bytes, size_t length)
{
    struct drill_talk *talk = stream->owner;

    if (!talk->forgets && talk->body.length < DRILL_BODY_MAX / 2)
        text_append_bytes(&talk->body, bytes, length);
    talk->received += length;
    loop_stop(&talk->client->loop);
}

static void talk_tunnel_closed(struct drill_talk *talk)
{
    stream_close(TAKE_PTR(talk->tunnel), stream_free);
    talk_over(talk, true);
}

static void talk_tunnel_end(struct stream *stream)
{
    talk_tunnel_closed(stream->owner);
}

static void talk_tunnel_failure(struct stream *stream, int error)
{
    (void) error;
    talk_tunnel_closed(stream->owner);
}

static const struct stream_events tunnel_events = {
    .on_data = talk_tunnel_data,
    .on_end = talk_tunnel_end,
    .on_failure = talk_tunnel_failure,
};

/* --- the exchange ---------------------------------------------------------------------------- */

static void talk_take_cookie(struct drill_talk *talk, const struct http_head *head)
{
    const char *value = http_head_get(head, "Set-Cookie");

    (void) snprintf(talk->cookie, sizeof(talk->cookie), "%.*s",
                    value ? (int) strcspn(value, ";") : 0, value ? value : "");
}

static void talk_on_head(struct http_exchange *exchange)
{
    struct drill_talk *talk = http_exchange_data(exchange);

    talk->status = http_exchange_head(exchange)->status;
    talk->forgets = talk->forgets && talk->status < FIRST_REFUSAL;
    talk_take_cookie(talk, http_exchange_head(exchange));
    loop_stop(&talk->client->loop);
}

static void talk_on_body(struct http_exchange *exchange, const char *bytes, size_t length)
{
    struct drill_talk *talk = http_exchange_data(exchange);

    talk->received += length;
    if (!talk->forgets && talk->body.length < DRILL_BODY_MAX / 2)
        text_append_bytes(&talk->body, bytes, length);
    if (talk->stops)
        loop_stop(&talk->client->loop);
}

static void talk_on_end(struct http_exchange *exchange)
{
    struct drill_talk *talk = http_exchange_data(exchange);

    talk->exchange = NULL;
    talk_over(talk, false);
}

static void talk_on_upgrade(struct http_exchange *exchange, struct stream *stream,
                            const char *pending, size_t length)
{
    struct drill_talk *talk = http_exchange_data(exchange);

    talk->exchange = NULL;
    talk->status = http_exchange_head(exchange)->status;
    talk->tunnel = stream;
    stream_set_owner(stream, talk, &tunnel_events);
    talk_tunnel_data(stream, pending, length);
}

static void talk_on_failure(struct http_exchange *exchange, const struct error *error)
{
    struct drill_talk *talk = http_exchange_data(exchange);

    (void) error;
    talk->exchange = NULL;
    talk_over(talk, true);
}

static const struct http_exchange_events talk_events = {
    .on_head = talk_on_head,
    .on_body = talk_on_body,
    .on_end = talk_on_end,
    .on_upgrade = talk_on_upgrade,
    .on_failure = talk_on_failure,
};

static struct http_header talk_header(const char *name, const char *value)
{
    return (struct http_header){
        .name = name,
        .value = value,
        .name_length = (uint32_t) strlen(name),
        .value_length = (uint32_t) strlen(value),
    };
}

static size_t talk_headers(const struct drill_call *call, const struct client *client,
                           const char *authorization, struct http_header *headers)
{
    size_t count = 0;

    headers[count++] = talk_header("Host", call->host ? call->host : client->host);
    headers[count++] = talk_header("User-Agent", "burrow/" BURROW_VERSION);
    if (authorization)
        headers[count++] = talk_header("Authorization", authorization);
    if (call->body || call->body_promised)
        headers[count++] =
            talk_header("Content-Type", call->type ? call->type : "application/json");
    if (call->upgrade) {
        headers[count++] = talk_header("Connection", "Upgrade");
        headers[count++] = talk_header("Upgrade", "websocket");
        headers[count++] = talk_header("Sec-WebSocket-Version", "13");
        headers[count++] = talk_header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
    }
    for (size_t i = 0; i + 1 < DRILL_HEADERS_MAX && call->headers[i]; i += 2)
        headers[count++] = talk_header(call->headers[i], call->headers[i + 1]);
    return count;
}

void drill_talk_start(struct drill_talk *talk, struct client *client)
{
    const struct drill_call *call = talk->call;
    struct http_header headers[FIXED_HEADERS + UPGRADE_HEADER + DRILL_HEADERS_MAX / 2];
    size_t length = call->body && !call->body_length ? strlen(call->body) : call->body_length;
    AUTO(text) struct text bearer = TEXT_INIT(LOOP_SCRATCH_SIZE);
    struct http_exchange_request request = {
        .method = call->method ? call->method : "GET",
        .target = call->path,
        .headers = headers,
        .body_length = (int64_t) (call->body_promised ? call->body_promised : length),
        .send_length = call->method && strcmp(call->method, "GET") != 0,
        .upgrade = call->upgrade,
    };
    const char *authorization = client->authorization;

    if (call->key) {
        text_format(&bearer, "Bearer %s", call->key);
        authorization = *call->key ? text_string(&bearer) : NULL;
    }
    request.header_count = talk_headers(call, client, authorization, headers);
    talk->client = client;
    talk->forgets = call->forgets;
    talk->body = (struct text) TEXT_INIT(DRILL_BODY_MAX);
    talk->status = 0;
    talk->is_over = talk->is_cut = false;
    talk->received = 0;
    talk->started_ns = clock_monotonic_ns(clock_system());
    talk->exchange = http_exchange_start(client->origin, &request, &talk_events, talk);
    if (length)
        http_exchange_write(talk->exchange, call->body, length);
    if (call->body_promised <= length)
        http_exchange_end(talk->exchange);
    talk->call = NULL;
}

/* --- waiting --------------------------------------------------------------------------------- */

struct drill_timer {
    struct deadline deadline;
    struct loop *loop;
    bool is_due, is_closed;
};

static void drill_timer_due(struct deadline *deadline)
{
    struct drill_timer *timer = CONTAINER_OF(deadline, struct drill_timer, deadline);

    timer->is_due = true;
    loop_stop(timer->loop);
}

static void drill_timer_closed(struct deadline *deadline)
{
    struct drill_timer *timer = CONTAINER_OF(deadline, struct drill_timer, deadline);

    timer->is_closed = true;
    loop_stop(timer->loop);
}

static void timer_start(struct drill_timer *timer, struct loop *loop, uint64_t milliseconds)
{
    *timer = (struct drill_timer){.loop = loop};
    deadline_init(loop, &timer->deadline, drill_timer_due);
    uv_update_time(&loop->uv);
    deadline_set(&timer->deadline, milliseconds);
}

static void timer_end(struct drill_timer *timer)
{
    deadline_close(&timer->deadline, drill_timer_closed);
    while (!timer->is_closed)
        loop_run(timer->loop);
}

void drill_turn(struct client *client, uint64_t milliseconds)
{
    struct drill_timer timer;

    timer_start(&timer, &client->loop, milliseconds);
    loop_run(&client->loop);
    timer_end(&timer);
}

void drill_pump(struct client *client, uint64_t milliseconds)
{
    struct drill_timer timer;

    timer_start(&timer, &client->loop, milliseconds);
    while (!timer.is_due)
        loop_run(&client->loop);
    timer_end(&timer);
}

bool drill_talk_wait(struct drill_talk *talk, uint64_t timeout_ms, bool at_head)
{
    struct drill_timer timer;

    talk->stops = at_head;
    timer_start(&timer, &talk->client->loop, timeout_ms);
    while (!timer.is_due && !talk->is_over && !(at_head && talk->status))
        loop_run(&talk->client->loop);
    timer_end(&timer);
    talk->stops = false;
    return talk->is_over || (at_head && talk->status);
}

void drill_talk_end(struct drill_talk *talk)
{
    if (talk->exchange)
        http_exchange_cancel(TAKE_PTR(talk->exchange));
    if (talk->tunnel)
        stream_close(TAKE_PTR(talk->tunnel), stream_free);
    talk->is_over = true;
    text_done(&talk->body);
}

json_t *drill_talk_json(const struct drill_talk *talk)
{
    const struct json_limits limits = {
        .size = DRILL_BODY_MAX, .depth = JSON_DEPTH_MAX, .values = SIZE_MAX};

    return json_read(text_string(&talk->body), talk->body.length, &limits, NULL);
}

bool drill_talk_is_good(const struct drill_talk *talk)
{
    return talk->status >= 200 && talk->status < 300;
}

double drill_talk_ms(const struct drill_talk *talk)
{
    return (double) (talk->ended_ns - talk->started_ns) / NS_PER_MS;
}

/* A kept connection may be closed just when it is used again, as those of a key that was revoked are. */
static bool talk_was_lost(const struct drill_talk *talk)
{
    return talk->is_over && talk->is_cut && talk->status == 0;
}

int drill_ask(struct client *client, const struct drill_call *call, struct drill_talk *ret_talk)
{
    for (int i = 0; i < TRIES; i++) {
        if (i > 0)
            drill_talk_end(ret_talk);
        *ret_talk = (struct drill_talk){.call = call};
        drill_talk_start(ret_talk, client);
        (void) drill_talk_wait(ret_talk, ANSWER_MS, false);
        if (!talk_was_lost(ret_talk))
            break;
    }
    return ret_talk->is_over && !ret_talk->is_cut ? ret_talk->status : 0;
}
