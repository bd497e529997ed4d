#include "net/http/http_connection.h"

#include <string.h>

#include "base/auto.h"
#include "base/memory.h"

/* Bytes a client may send ahead of being asked (pipelining, bodies not yet wanted) before its
 * socket is left to fill up. */
#define EARLY_HIGH ((size_t) 64 * 1024)
#define EARLY_MAX  (EARLY_HIGH + LOOP_SCRATCH_SIZE)
/* How long a client gets to read the end of a reply and close its side. */
#define LINGER_MS 2000

static const struct stream_events stream_events;
static const struct http_parser_events parser_events;

static struct http_connection *connection_of(struct http_parser *parser)
{
    return CONTAINER_OF(parser, struct http_connection, parser);
}

/* --- waiting -------------------------------------------------------------------------------- */

static enum http_wait current_wait(const struct http_connection *connection)
{
    const struct http_request *request = connection->request;

    if (connection->wait == HTTP_WAIT_CLOSE)
        return HTTP_WAIT_CLOSE;
    if (!request)
        return HTTP_WAIT_IDLE;
    if (!connection->dispatched)
        return HTTP_WAIT_HEAD;
    if (!request->body_done && !request->body_paused &&
        (request->body_wanted || request->state == HTTP_REQUEST_REPLIED))
        return HTTP_WAIT_BODY;
    return HTTP_WAIT_REPLY;
}

static uint64_t wait_limit(const struct http_connection *connection, enum http_wait wait)
{
    const struct http_server_options *options = &connection->server->options;

    switch (wait) {
    case HTTP_WAIT_IDLE:
        return options->idle_timeout_ms;
    case HTTP_WAIT_HEAD:
        return options->head_timeout_ms;
    case HTTP_WAIT_BODY:
        return options->body_timeout_ms;
    case HTTP_WAIT_REPLY:
        return options->stall_timeout_ms;
    case HTTP_WAIT_CLOSE:
        break;
    }
    return LINGER_MS;
}

void http_connection_settle(struct http_connection *connection)
{
    const struct http_request *request = connection->request;
    enum http_wait wait = current_wait(connection);

    if (connection->dying || !connection->stream)
        return;
    if ((request && request->body_paused) || connection->early.length > EARLY_HIGH)
        stream_pause(connection->stream);
    else
        stream_resume(connection->stream);
    /* A head has one deadline as a whole: a byte now and then must not extend it (slowloris). */
    if (wait == connection->wait && (wait == HTTP_WAIT_HEAD || wait == HTTP_WAIT_CLOSE))
        return;
    connection->wait = wait;
    connection->sent_before = connection->stream->bytes_sent;
    deadline_set(&connection->deadline, wait_limit(connection, wait));
}

/* A client that is slow to read the end of its last reply is not an idle one. */
static bool still_takes_bytes(struct http_connection *connection)
{
    if (!stream_queued(connection->stream) ||
        connection->stream->bytes_sent == connection->sent_before)
        return false;
    connection->sent_before = connection->stream->bytes_sent;
    deadline_set(&connection->deadline, connection->server->options.stall_timeout_ms);
    return true;
}

static void time_is_up(struct deadline *deadline)
{
    struct http_connection *connection = CONTAINER_OF(deadline, struct http_connection, deadline);
    struct error error;
    HTTP_TRACE(connection);

    switch (connection->wait) {
    case HTTP_WAIT_HEAD:
    case HTTP_WAIT_BODY:
        connection->server->counters.timeouts++;
        (void) error_set(&error, ERR_REQUEST_TIMEOUT, 0, "the request did not arrive in time");
        http_connection_refuse(connection, &error);
        return;
    case HTTP_WAIT_REPLY:
        if (!stream_queued(connection->stream) ||
            connection->stream->bytes_sent != connection->sent_before) {
            http_connection_settle(connection); /* the handler takes its time, the client is fine */
            return;
        }
        connection->server->counters.timeouts++;
        break;
    case HTTP_WAIT_IDLE:
    case HTTP_WAIT_CLOSE:
        if (still_takes_bytes(connection))
            return;
        break;
    }
    http_connection_cut(connection);
}

/* --- the end -------------------------------------------------------------------------------- */

static void http_connection_handle_gone(struct http_connection *connection)
{
    if (--connection->handles)
        return;
    text_done(&connection->early);
    free(connection);
}

static void stream_gone(struct stream *stream)
{
    struct http_connection *connection = stream->owner;

    stream_free(stream);
    http_connection_handle_gone(connection);
}

static void http_connection_deadline_gone(struct deadline *deadline)
{
    http_connection_handle_gone(CONTAINER_OF(deadline, struct http_connection, deadline));
}

static void leave_server(struct http_connection *connection)
{
    connection->dying = true;
    loop_task_cancel(&connection->advance);
    list_remove(&connection->link);
    deadline_close(&connection->deadline, http_connection_deadline_gone);
    http_server_connection_gone(connection->server, connection->session);
}

/* The handler of an unanswered request learns that its client is gone. */
static void abandon_request(struct http_connection *connection)
{
    struct http_request *request = TAKE_PTR(connection->request);

    if (!request)
        return;
    if (connection->dispatched && request->state != HTTP_REQUEST_REPLIED) {
        request->state = HTTP_REQUEST_REPLIED;
        if (!request->status)
            request->status = error_http_status(ERR_CANCELLED);
        if (request->on_gone)
            request->on_gone(request);
        http_server_log(connection->server, request);
    }
    http_server_give_request(connection->server, request);
}

void http_connection_cut(struct http_connection *connection)
{
    if (connection->dying)
        return;
    leave_server(connection);
    abandon_request(connection);
    stream_close(connection->stream, stream_gone);
}

/* Say that we send no more and let the client finish reading: closing at once while it still sends
 * would reset the connection and may destroy the reply on its way. */
static void close_gently(struct http_connection *connection)
{
    if (connection->wait == HTTP_WAIT_CLOSE || connection->dying)
        return;
    connection->wait = HTTP_WAIT_CLOSE;
    text_done(&connection->early);
    stream_resume(connection->stream);
    stream_shut_write(connection->stream);
    connection->sent_before = connection->stream->bytes_sent;
    deadline_set(&connection->deadline, connection->server->options.stall_timeout_ms);
}

struct stream *http_connection_hand_over(struct http_connection *connection,
                                         struct text *ret_pending)
{
    struct stream *stream = TAKE_PTR(connection->stream);
    struct http_request *request = TAKE_PTR(connection->request);

    stream_resume(stream); /* too much may have come early */
    text_append_bytes(ret_pending, connection->feed_at, connection->feed_left);
    text_append_bytes(ret_pending, text_string(&connection->early), connection->early.length);
    connection->feed_left = 0;
    http_server_log(connection->server, request);
    http_server_give_request(connection->server, request);
    leave_server(connection);
    connection->handles--; /* the stream is not ours to wait for any more */
    return stream;
}

void http_connection_drain(struct http_connection *connection)
{
    if (connection->request)
        connection->close_after_reply = true;
    else
        close_gently(connection);
}

/* --- requests ------------------------------------------------------------------------------- */

static void finish_request(struct http_connection *connection)
{
    http_server_give_request(connection->server, TAKE_PTR(connection->request));
    connection->dispatched = false;
    if (connection->close_after_reply || connection->server->draining) {
        close_gently(connection);
        return;
    }
    if (connection->parser_upgraded) {
        connection->parser_upgraded = false;
        http_parser_refuse_upgrade(&connection->parser);
    }
    if (connection->peer_ended && !connection->early.length && !connection->feed_left)
        close_gently(connection);
    else if (connection->early.length && !connection->feeding)
        loop_defer(connection->server->loop, &connection->advance);
}

void http_connection_reply_done(struct http_connection *connection)
{
    struct http_request *request = connection->request;

    if (request->state != HTTP_REQUEST_REPLIED) /* else this is the end of a body thrown away */
        http_server_log(connection->server, request);
    request->state = HTTP_REQUEST_REPLIED;
    request->body_paused = false; /* whoever paused it has no use for the rest */
    if (request->body_done) {
        finish_request(connection);
    } else if (request->continue_owed || connection->close_after_reply) {
        connection->close_after_reply = true; /* the body may never come: nothing to wait for */
        request->body_done = true;
        finish_request(connection);
    } else if (connection->early.length && !connection->feeding) {
        loop_defer(connection->server->loop, &connection->advance); /* throw the rest away */
    }
    if (!connection->feeding)
        http_connection_settle(connection);
}

void http_connection_give_up_body(struct http_connection *connection)
{
    connection->close_after_reply = true;
    connection->request->body_done = true;
    finish_request(connection);
}

void http_connection_refuse(struct http_connection *connection, const struct error *error)
{
    struct http_request *request = connection->request;

    connection->close_after_reply = true;
    if (request && request->state == HTTP_REQUEST_REPLIED) {
        http_connection_give_up_body(connection); /* its reply may still be in our queue */
        return;
    }
    if (!request || request->state != HTTP_REQUEST_FRESH) {
        http_connection_cut(connection); /* nobody to answer, or too late to */
        return;
    }
    if (connection->dispatched && request->on_gone) {
        void (*on_gone)(struct http_request *) = TAKE_PTR(request->on_gone);

        on_gone(request);
    }
    connection->dispatched = true;
    request->body_done = true;
    http_reply_error_now(request, error);
}

/* --- parser events -------------------------------------------------------------------------- */

static struct pool *message_begins(struct http_parser *parser)
{
    struct http_connection *connection = connection_of(parser);
    struct http_request *request = http_server_take_request(connection->server);

    connection->request = request;
    connection->dispatched = false;
    request->connection = connection;
    request->head = &parser->head;
    request->peer = connection->peer;
    request->is_local = connection->is_unix;
    request->is_secure = connection->is_tls;
    return &request->pool;
}

static bool head_arrived(struct http_parser *parser)
{
    (void) parser; /* dispatched once the parser has returned: handlers never run inside it */
    return false;
}

static void http_connection_body_arrived(struct http_parser *parser, const char *bytes,
                                         size_t length)
{
    struct http_connection *connection = connection_of(parser);

    if (connection->request && connection->wait != HTTP_WAIT_CLOSE)
        http_body_piece(connection->request, bytes, length);
}

static const struct http_parser_events parser_events = {
    .on_begin = message_begins,
    .on_head = head_arrived,
    .on_body = http_connection_body_arrived,
};

/* --- feeding -------------------------------------------------------------------------------- */

/* Whether bytes can be used now: between requests, in a head, or in a body somebody wants or that
 * is being thrown away. */
static bool can_use_bytes(const struct http_connection *connection)
{
    const struct http_request *request = connection->request;

    if (connection->dying || connection->wait == HTTP_WAIT_CLOSE)
        return false;
    if (!request && stream_is_full(connection->stream))
        return false; /* the replies before are not taken: on_drain goes on */
    if (!request || !connection->dispatched)
        return true;
    if (request->body_done || request->body_paused)
        return false;
    return request->body_wanted || request->state == HTTP_REQUEST_REPLIED;
}

static void message_ended(struct http_connection *connection, bool upgrade)
{
    struct http_request *request = connection->request;

    connection->parser_upgraded = upgrade;
    if (!request)
        return;
    request->is_upgrade = upgrade;
    if (!connection->dispatched) {
        request->body_done = true;
        http_dispatch(connection);
    } else {
        http_body_end(request);
    }
}

static void malformed(struct http_connection *connection, const struct error *error)
{
    connection->server->counters.refused_heads++;
    connection->feed_left = 0;
    if (!connection->request)
        (void) message_begins(&connection->parser); /* an answer needs a request to belong to */
    http_connection_refuse(connection, error);
}

static void feed(struct http_connection *connection, const char *bytes, size_t length)
{
    connection->feeding = true;
    connection->feed_at = bytes;
    connection->feed_left = length;
    while (connection->feed_left && can_use_bytes(connection)) {
        struct error error = ERROR_INIT;
        size_t used = 0;
        HTTP_TRACE(connection); /* of the request whose head an earlier turn brought */
        enum http_progress progress = http_parser_feed(&connection->parser, connection->feed_at,
                                                       connection->feed_left, &used, &error);

        connection->feed_at += used;
        connection->feed_left -= used;
        if (connection->dying)
            break;
        if (progress == HTTP_HEAD_READY)
            http_dispatch(connection);
        else if (progress == HTTP_MESSAGE_READY || progress == HTTP_UPGRADE_READY)
            message_ended(connection, progress == HTTP_UPGRADE_READY);
        else if (progress == HTTP_FAILED)
            malformed(connection, &error);
    }
    connection->feeding = false;
    if (connection->dying)
        return;
    if (connection->feed_left && connection->wait != HTTP_WAIT_CLOSE)
        text_append_bytes(&connection->early, connection->feed_at, connection->feed_left);
    connection->feed_left = 0;
    http_connection_settle(connection);
}

/* Use what came early, now that the request before it is done or its body is wanted. */
static void http_connection_advance(struct loop_task *task)
{
    struct http_connection *connection = CONTAINER_OF(task, struct http_connection, advance);
    AUTO(text) struct text bytes = TEXT_INIT(EARLY_MAX);

    if (connection->dying || !can_use_bytes(connection))
        return;
    bytes = connection->early;
    connection->early = (struct text) TEXT_INIT(EARLY_MAX);
    feed(connection, text_string(&bytes), bytes.length);
    if (connection->dying)
        return;
    if (connection->peer_ended && !connection->request && !connection->early.length)
        close_gently(connection);
}

/* --- stream events -------------------------------------------------------------------------- */

static void data_arrived(struct stream *stream, const char *bytes, size_t length)
{
    struct http_connection *connection = stream->owner;

    if (connection->wait == HTTP_WAIT_CLOSE)
        return; /* we are done with this client: read on only so that it sees our last words */
    if (!connection->early.length && can_use_bytes(connection)) {
        feed(connection, bytes, length);
        return;
    }
    text_append_bytes(&connection->early, bytes, length);
    if (connection->early.overflowed) /* cannot happen: reading stops at EARLY_HIGH */
        http_connection_cut(connection);
    else
        http_connection_settle(connection);
}

static void peer_ended(struct stream *stream)
{
    struct http_connection *connection = stream->owner;
    HTTP_TRACE(connection);

    connection->peer_ended = true;
    if (connection->wait == HTTP_WAIT_CLOSE) {
        if (stream->shut_done)
            http_connection_cut(connection);
    } else if (!connection->request && !connection->early.length) {
        close_gently(connection);
    } else if (connection->request && !connection->early.length) {
        /* In the middle of a request, or waiting for its answer: that client is gone. */
        http_connection_cut(connection);
    }
}

static void our_end_sent(struct stream *stream)
{
    struct http_connection *connection = stream->owner;

    if (connection->peer_ended)
        http_connection_cut(connection);
    else
        deadline_set(&connection->deadline, LINGER_MS);
}

static void drained(struct stream *stream)
{
    struct http_connection *connection = stream->owner;
    struct http_request *request = connection->request;
    HTTP_TRACE(connection);

    if (request && request->state == HTTP_REQUEST_REPLYING && request->on_drain)
        request->on_drain(request);
    else if (!request && connection->early.length)
        loop_defer(connection->server->loop, &connection->advance);
}

static void stream_failed(struct stream *stream, int error)
{
    struct http_connection *connection = stream->owner;
    HTTP_TRACE(connection);

    LOG_DEBUG(connection->server->options.log, "connection failed",
              log_text("peer", connection->peer), log_text("reason", strerrorname_np(-error)));
    http_connection_cut(connection);
}

/* TLS is established: from now on the client may be idle. */
static void http_connection_opened(struct stream *stream)
{
    http_connection_settle(stream->owner);
}

static const struct stream_events stream_events = {
    .on_open = http_connection_opened,
    .on_data = data_arrived,
    .on_end = peer_ended,
    .on_drain = drained,
    .on_shut = our_end_sent,
    .on_failure = stream_failed,
};

static struct http_connection *connection_on(struct http_server *server, struct stream *stream,
                                             const char *peer)
{
    struct http_connection *connection = mem_alloc(sizeof(*connection));

    stream_set_owner(stream, connection, &stream_events);
    connection->server = server;
    connection->stream = stream;
    connection->handles = 2;
    connection->early = (struct text) TEXT_INIT(EARLY_MAX);
    (void) snprintf(connection->peer, sizeof(connection->peer), "%s", peer);
    deadline_init(server->loop, &connection->deadline, time_is_up);
    deadline_set(&connection->deadline, server->options.idle_timeout_ms);
    loop_task_init(&connection->advance, http_connection_advance);
    http_parser_init(&connection->parser, HTTP_KIND_REQUEST, &server->options.limits,
                     &parser_events);
    list_append(&server->connections, &connection->link);
    server->connection_count++;
    server->counters.connections++;
    return connection;
}

void http_connection_adopt(struct http_server *server, struct stream *stream,
                           const struct http_adoption *adoption)
{
    struct http_connection *connection = connection_on(server, stream, adoption->peer);

    connection->is_tls = adoption->is_tls;
    connection->session = adoption->session;
    connection->peer_ended = stream->ended; /* what happened before does not happen again */
    text_append_bytes(&connection->early, adoption->pending, adoption->pending_length);
    loop_defer(server->loop, &connection->advance);
    stream_resume(stream);
}

int http_connection_new(struct http_server *server, int fd, struct tls_context *tls, bool is_unix,
                        const char *peer)
{
    struct http_connection *connection;
    struct stream *stream;
    struct tls *session = NULL;
    int r;

    if (tls) {
        session = tls_accept(tls);
        if (!session)
            return -ENOMEM;
    }
    stream = mem_alloc(sizeof(*stream));
    r = stream_init(stream, server->loop, fd, session, false, &stream_events);
    if (r < 0) {
        if (session)
            tls_free(session);
        free(stream);
        return r;
    }
    connection = connection_on(server, stream, peer);
    connection->is_tls = tls;
    connection->is_unix = is_unix;
    /* A handshake is a head that is not there yet. */
    if (tls)
        deadline_set(&connection->deadline, server->options.head_timeout_ms);
    return 0;
}
