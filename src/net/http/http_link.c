#include "net/http/http_link.h"

#include <errno.h>

#include "base/auto.h"
#include "base/memory.h"

/* 1xx responses a peer may send before the real one. */
#define INTERIM_MAX 8

static const struct stream_events link_events;
static const struct http_parser_events response_events;

/* --- life ----------------------------------------------------------------------------------- */

static void http_link_handle_gone(struct http_link *link)
{
    struct http_origin *origin = link->origin;

    if (--link->handles)
        return;
    pool_done(&link->pool);
    free(link);
    http_origin_link_gone(origin);
}

static void link_stream_gone(struct stream *stream)
{
    struct http_link *link = stream->owner;

    stream_free(stream);
    http_link_handle_gone(link);
}

static void link_deadline_gone(struct deadline *deadline)
{
    http_link_handle_gone(CONTAINER_OF(deadline, struct http_link, deadline));
}

static void leave_idle(struct http_link *link)
{
    if (link->idle)
        link->origin->idle_count--;
    link->idle = false;
    list_remove(&link->link);
}

void http_link_leave(struct http_link *link)
{
    struct http_origin *origin = link->origin;

    if (link->dying)
        return;
    link->dying = true;
    link->exchange = NULL;
    leave_idle(link);
    origin->open--;
    deadline_close(&link->deadline, link_deadline_gone);
    if (link->stream)
        stream_close(link->stream, link_stream_gone);
    else
        http_link_handle_gone(link); /* the stream was handed over */
    http_origin_advance(origin);
}

/* How long the peer may think; 0: as long as it likes. */
static uint64_t answer_limit(const struct http_link *link)
{
    const struct http_origin_options *options = &link->origin->options;

    if (link->exchange->paused)
        return 0; /* it is we who do not read */
    return link->exchange->response ? options->body_timeout_ms : options->head_timeout_ms;
}

void http_link_expect(struct http_link *link)
{
    const struct http_origin_options *options = &link->origin->options;
    uint64_t limit;

    link->awaits_answer = false;
    link->sent_before = link->stream->bytes_sent;
    if (!link->connected) {
        limit = options->connect_timeout_ms;
    } else if (!link->exchange) {
        limit = options->idle_timeout_ms;
    } else if (!link->exchange->body_ended || stream_is_full(link->stream)) {
        limit = options->stall_timeout_ms;
    } else {
        limit = answer_limit(link);
        link->awaits_answer = limit != 0;
        if (!limit && stream_queued(link->stream))
            limit = options->stall_timeout_ms;
    }
    if (limit)
        deadline_set(&link->deadline, limit);
    else
        deadline_clear(&link->deadline);
}

/* While part of the request waits to be taken, a peer is late when it took nothing; after that,
 * when it was its answer that we gave it time for. */
static bool peer_is_late(const struct http_link *link)
{
    if (stream_queued(link->stream))
        return link->stream->bytes_sent == link->sent_before;
    return link->awaits_answer;
}

static void link_time_is_up(struct deadline *deadline)
{
    struct http_link *link = CONTAINER_OF(deadline, struct http_link, deadline);
    struct http_exchange *exchange = link->exchange;
    struct error error;
    HTTP_LINK_TRACE(link);

    if (!exchange) {
        http_link_leave(link); /* idle for long enough */
        return;
    }
    if (link->connected && !peer_is_late(link)) {
        http_link_expect(link);
        return;
    }
    (void) error_set(&error, ERR_UPSTREAM_TIMEOUT, 0, "%s",
                     !link->connected     ? "the peer did not accept the connection in time"
                     : exchange->response ? "the peer stopped in the middle of its response"
                                          : "the peer did not answer in time");
    http_exchange_fail(exchange, &error);
}

int http_link_new(struct http_origin *origin, int fd, bool connecting, struct http_link **ret_link)
{
    struct http_link *link;
    struct tls *session = NULL;
    int r;

    if (origin->options.tls) {
        session = tls_connect(origin->options.tls, origin->options.tls_host);
        if (!session)
            return -ENOMEM;
    }
    link = mem_alloc(sizeof(*link));
    link->stream = mem_alloc(sizeof(*link->stream));
    r = stream_init(link->stream, origin->loop, fd, session, connecting, &link_events);
    if (r < 0) {
        if (session)
            tls_free(session);
        free(link->stream);
        free(link);
        return r;
    }
    link->stream->owner = link;
    link->origin = origin;
    link->connected = !connecting && !session;
    link->handles = 2;
    deadline_init(origin->loop, &link->deadline, link_time_is_up);
    http_parser_init(&link->parser, HTTP_KIND_RESPONSE, &origin->options.limits, &response_events);
    list_init(&link->link);
    list_append(&origin->busy, &link->link);
    origin->open++;
    origin->remains++;
    *ret_link = link;
    return 0;
}

void http_link_attach(struct http_link *link, struct http_exchange *exchange)
{
    exchange->connection = link;
    link->exchange = exchange;
    link->interim = 0;
    leave_idle(link);
    list_append(&link->origin->busy, &link->link);
    stream_write(link->stream, text_string(&exchange->head), exchange->head.length);
    if (!link->reused || !exchange->is_safe)
        text_done(&exchange->head); /* else kept, to be sent again should the link be dead */
    if (exchange->paused)
        stream_pause(link->stream);
    http_link_expect(link);
}

/* A kept connection may have been closed by the peer just as we used it. */
static bool http_link_try_again(struct http_exchange *exchange)
{
    struct http_link *link = exchange->connection;

    if (!link || !link->reused || !exchange->is_safe || exchange->response ||
        !exchange->head.length || http_parser_in_message(&link->parser))
        return false;
    exchange->connection = NULL;
    http_origin_requeue(exchange);
    http_link_leave(link); /* gives the free place to the first in the queue */
    return true;
}

static void link_lost(struct http_link *link, int system)
{
    struct http_exchange *exchange = link->exchange;
    struct error error;

    if (!exchange) {
        http_link_leave(link);
        return;
    }
    if (http_link_try_again(exchange))
        return;
    (void) error_set(&error, system == -ETIMEDOUT ? ERR_UPSTREAM_TIMEOUT : ERR_UPSTREAM, system,
                     "%s",
                     !link->connected     ? "cannot connect to the peer"
                     : exchange->response ? "the peer broke off its response"
                                          : "the peer closed the connection without an answer");
    http_exchange_fail(exchange, &error);
}

/* The response is complete: keep the connection if both sides left it clean. The link is free for
 * the next exchange before on_end is told, which may well start one. */
static void exchange_complete(struct http_link *link, bool clean)
{
    struct http_exchange *exchange = TAKE_PTR(link->exchange);
    struct http_origin *origin = link->origin;

    exchange->connection = NULL;
    if (clean && exchange->body_ended && link->parser.head.keep_alive &&
        !stream_queued(link->stream) && origin->idle_count < origin->options.idle_max &&
        !origin->closing) {
        stream_resume(link->stream);
        list_remove(&link->link);
        list_append(&origin->idle, &link->link);
        origin->idle_count++;
        link->idle = link->reused = true;
        http_link_expect(link);
    } else {
        http_link_leave(link);
    }
    exchange->events->on_end(exchange);
    http_exchange_free(exchange);
    http_origin_advance(origin);
}

static void exchange_upgraded(struct http_link *link, const char *pending, size_t length)
{
    struct http_exchange *exchange = TAKE_PTR(link->exchange);
    struct stream *stream = TAKE_PTR(link->stream);

    exchange->connection = NULL;
    exchange->response = &link->parser.head;
    stream_resume(stream);
    http_link_leave(link); /* first: the receiver may close the origin */
    exchange->events->on_upgrade(exchange, stream, pending, length);
    http_exchange_free(exchange);
}

/* --- parser events -------------------------------------------------------------------------- */

static struct http_link *link_of(struct http_parser *parser)
{
    return CONTAINER_OF(parser, struct http_link, parser);
}

static struct pool *response_begins(struct http_parser *parser)
{
    struct http_link *link = link_of(parser);

    pool_reset(&link->pool);
    return &link->pool;
}

static bool response_head(struct http_parser *parser)
{
    struct http_link *link = link_of(parser);
    struct http_exchange *exchange = link->exchange;

    if (!exchange)
        return false;
    if (parser->head.status < 200)
        return false; /* an interim response; 101 is met when the parser stops */
    exchange->response = &parser->head;
    if (link->origin->options.is_agent)
        TRACE("agent.answered");
    exchange->events->on_head(exchange);
    return link->exchange && exchange->is_head;
}

static void response_body(struct http_parser *parser, const char *bytes, size_t length)
{
    struct http_link *link = link_of(parser);

    if (link->exchange && link->exchange->response)
        link->exchange->events->on_body(link->exchange, bytes, length);
}

static const struct http_parser_events response_events = {
    .on_begin = response_begins,
    .on_head = response_head,
    .on_body = response_body,
};

static void link_refuse(struct http_link *link, enum err_code code, const char *text)
{
    struct error error;

    (void) error_set(&error, code, 0, "%s", text);
    http_exchange_fail(link->exchange, &error);
}

/* A whole message was parsed. Returns whether parsing goes on. */
static bool message_ended(struct http_link *link, const char *rest, size_t length)
{
    struct http_exchange *exchange = link->exchange;
    int status = link->parser.head.status;

    if (status == 101) {
        if (exchange->wants_upgrade)
            exchange_upgraded(link, rest, length);
        else
            link_refuse(link, ERR_UPSTREAM, "the peer switched protocols without being asked");
        return false;
    }
    if (status < 200) {
        if (++link->interim <= INTERIM_MAX)
            return true;
        link_refuse(link, ERR_UPSTREAM, "the peer sends interim responses without end");
        return false;
    }
    exchange_complete(link, length == 0);
    return false;
}

static void feed_response(struct http_link *link, const char *bytes, size_t length)
{
    bool go_on = true;

    while (length && go_on && !link->dying && link->exchange) {
        struct error error = ERROR_INIT;
        size_t used = 0;
        enum http_progress progress = http_parser_feed(&link->parser, bytes, length, &used, &error);

        bytes += used;
        length -= used;
        if (link->dying || !link->exchange)
            return;
        if (progress == HTTP_MESSAGE_READY || progress == HTTP_UPGRADE_READY) {
            go_on = message_ended(link, bytes, length);
        } else if (progress == HTTP_FAILED) {
            (void) error_wrap(&error, "the peer's response");
            error.code = ERR_UPSTREAM;
            http_exchange_fail(link->exchange, &error);
            return;
        }
    }
    if (go_on && !link->dying && link->exchange)
        http_link_expect(link);
}

/* --- stream events -------------------------------------------------------------------------- */

static void link_opened(struct stream *stream)
{
    struct http_link *link = stream->owner;
    HTTP_LINK_TRACE(link);

    link->connected = true;
    http_link_expect(link);
}

static void link_data(struct stream *stream, const char *bytes, size_t length)
{
    struct http_link *link = stream->owner;
    HTTP_LINK_TRACE(link);

    if (link->exchange)
        feed_response(link, bytes, length);
    else
        http_link_leave(link); /* an answer to no question */
}

static void link_end(struct stream *stream)
{
    struct http_link *link = stream->owner;
    HTTP_LINK_TRACE(link);
    struct error error = ERROR_INIT;

    if (link->exchange && http_parser_finish(&link->parser, &error) == HTTP_MESSAGE_READY &&
        link->exchange)
        exchange_complete(link, false);
    else if (!link->dying)
        link_lost(link, 0);
}

static void link_drain(struct stream *stream)
{
    struct http_link *link = stream->owner;
    HTTP_LINK_TRACE(link);

    if (!link->exchange)
        return;
    http_link_expect(link);
    if (!link->exchange->body_ended && link->exchange->events->on_drain)
        link->exchange->events->on_drain(link->exchange);
}

static void link_failed(struct stream *stream, int error)
{
    struct http_link *link = stream->owner;
    HTTP_LINK_TRACE(link);

    link_lost(link, error);
}

static const struct stream_events link_events = {
    .on_open = link_opened,
    .on_data = link_data,
    .on_end = link_end,
    .on_drain = link_drain,
    .on_failure = link_failed,
};
