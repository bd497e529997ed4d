#include "net/websocket/websocket_http.h"

#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "net/http/http_server.h"

struct ws_connection {
    struct websocket ws;
    struct http_guest guest;
    struct websocket_events events; /* the caller's, with our on_released in place of theirs */
    void (*on_released)(struct websocket *ws);
    void *data;
};

static struct ws_connection *connection_of(const struct websocket *ws)
{
    return CONTAINER_OF(ws, struct ws_connection, ws);
}

void *websocket_http_data(const struct websocket *ws)
{
    return connection_of(ws)->data;
}

static void released(struct websocket *ws)
{
    struct ws_connection *connection = connection_of(ws);

    if (connection->on_released)
        connection->on_released(ws);
    if (connection->guest.server)
        http_guest_leave(&connection->guest);
    free(connection);
}

static void shut_down(struct http_guest *guest, enum http_leave how, const char *reason)
{
    struct ws_connection *connection = CONTAINER_OF(guest, struct ws_connection, guest);

    if (how == HTTP_LEAVE_NOW)
        websocket_abort(&connection->ws);
    else
        (void) websocket_close(
            &connection->ws,
            how == HTTP_LEAVE_EXPELLED ? WEBSOCKET_CODE_POLICY : WEBSOCKET_CODE_GOING_AWAY, reason);
}

static struct ws_connection *websocket_http_start(struct stream *stream,
                                                  const struct websocket_options *options,
                                                  const struct websocket_events *events, void *data,
                                                  const char *pending, size_t length)
{
    struct ws_connection *connection = mem_alloc(sizeof(*connection));

    connection->events = *events;
    connection->on_released = events->on_released;
    connection->events.on_released = released;
    connection->data = data;
    websocket_init(&connection->ws, stream, options, &connection->events, pending, length);
    return connection;
}

struct websocket *websocket_accept(struct http_request *request,
                                   const struct websocket_options *options,
                                   const struct websocket_events *events, void *data,
                                   struct error *err)
{
    const struct http_head *head = request->head;
    struct websocket_upgrade asked = {
        .method = head->method,
        .http_major = 1,
        .http_minor = head->minor,
        .upgrade = http_head_join(head, "upgrade", &request->pool),
        .connection = http_head_join(head, "connection", &request->pool),
        .key = http_head_join(head, "sec-websocket-key", &request->pool),
        .version = http_head_join(head, "sec-websocket-version", &request->pool),
    };
    struct http_server *server = http_request_server(request);
    AUTO(text) struct text pending = TEXT_INIT(SIZE_MAX / 2);
    AUTO(free) void *caller = http_guest_caller(request);
    char accept[WEBSOCKET_HANDSHAKE_ACCEPT_SIZE];
    struct ws_connection *connection;
    struct stream *stream;

    if (websocket_upgrade_check(&asked, accept, err) < 0) {
        if (err->code == ERR_UPGRADE_REQUIRED) {
            (void) http_reply_header(request, "Upgrade", "websocket");
            (void) http_reply_header(request, "Sec-WebSocket-Version", WEBSOCKET_VERSION);
        }
        return NULL;
    }
    (void) http_reply_header(request, "Sec-WebSocket-Accept", accept);
    stream = http_reply_upgrade(request, "websocket", &pending, err);
    if (!stream)
        return NULL;
    connection =
        websocket_http_start(stream, options, events, data, text_string(&pending), pending.length);
    http_guest_enter(&connection->guest, server, TAKE_PTR(caller), shut_down);
    return &connection->ws;
}

/* --- client --------------------------------------------------------------------------------- */

struct dialling {
    struct websocket_dial dial;
    char key[WEBSOCKET_HANDSHAKE_KEY_SIZE];
    struct text refusal; /* what the peer said instead */
};

static void dialling_free(struct dialling *dialling)
{
    text_done(&dialling->refusal);
    free(dialling);
}

static void dial_failed(struct dialling *dialling, const struct error *error)
{
    dialling->dial.on_failure(error, dialling->dial.data);
    dialling_free(dialling);
}

static void answered_otherwise(struct http_exchange *exchange)
{
    (void) exchange; /* told in on_end, when the answer is complete */
}

static void answer_body(struct http_exchange *exchange, const char *bytes, size_t length)
{
    struct dialling *dialling = http_exchange_data(exchange);
    size_t room = WEBSOCKET_REFUSAL_MAX - dialling->refusal.length;

    if (dialling->dial.on_refused)
        text_append_bytes(&dialling->refusal, bytes, length < room ? length : room);
}

static void answer_end(struct http_exchange *exchange)
{
    struct dialling *dialling = http_exchange_data(exchange);
    int status = http_exchange_head(exchange)->status;
    struct error error;

    if (dialling->dial.on_refused)
        dialling->dial.on_refused(status, text_string(&dialling->refusal), dialling->refusal.length,
                                  dialling->dial.data);
    (void) error_set(&error, ERR_UPSTREAM, 0, "the peer answered the upgrade with status %d",
                     status);
    dial_failed(dialling, &error);
}

static void answer_failed(struct http_exchange *exchange, const struct error *error)
{
    dial_failed(http_exchange_data(exchange), error);
}

static void answer_upgraded(struct http_exchange *exchange, struct stream *stream,
                            const char *pending, size_t length)
{
    struct dialling *dialling = http_exchange_data(exchange);
    const struct http_head *head = http_exchange_head(exchange);
    AUTO(pool) struct pool pool = POOL_INIT;
    struct websocket_answer answer = {
        .status = head->status,
        .upgrade = http_head_join(head, "upgrade", &pool),
        .connection = http_head_join(head, "connection", &pool),
        .accept = http_head_join(head, "sec-websocket-accept", &pool),
        .extensions = http_head_join(head, "sec-websocket-extensions", &pool),
        .protocol = http_head_join(head, "sec-websocket-protocol", &pool),
    };
    struct ws_connection *connection;
    struct error error = ERROR_INIT;

    if (websocket_answer_check(&answer, dialling->key, &error) < 0) {
        stream_close(stream, stream_free);
        dial_failed(dialling, &error);
        return;
    }
    connection = websocket_http_start(stream, &dialling->dial.options, dialling->dial.events,
                                      dialling->dial.data, pending, length);
    dialling->dial.on_open(&connection->ws, dialling->dial.data);
    dialling_free(dialling);
}

static const struct http_exchange_events dial_events = {
    .on_head = answered_otherwise,
    .on_body = answer_body,
    .on_end = answer_end,
    .on_upgrade = answer_upgraded,
    .on_failure = answer_failed,
};

static void websocket_http_add_header(struct http_header *headers, size_t *count, const char *name,
                                      const char *value)
{
    headers[(*count)++] = http_header_of(name, value);
}

void websocket_connect(struct http_origin *origin, const struct websocket_dial *dial)
{
    struct dialling *dialling = mem_alloc(sizeof(*dialling));
    AUTO(pool) struct pool pool = POOL_INIT;
    struct http_header *headers = pool_alloc(&pool, (dial->header_count + 5) * sizeof(*headers));
    struct http_exchange_request request = {
        .method = "GET", .target = dial->target, .headers = headers, .upgrade = true};
    size_t count = 0;

    dialling->dial = *dial;
    dialling->refusal = (struct text) TEXT_INIT(WEBSOCKET_REFUSAL_MAX);
    dialling->dial.options.role = WEBSOCKET_CLIENT;
    websocket_handshake_key(dialling->key);
    websocket_http_add_header(headers, &count, "Host", dial->host);
    websocket_http_add_header(headers, &count, "Upgrade", "websocket");
    websocket_http_add_header(headers, &count, "Connection", "Upgrade");
    websocket_http_add_header(headers, &count, "Sec-WebSocket-Version", WEBSOCKET_VERSION);
    websocket_http_add_header(headers, &count, "Sec-WebSocket-Key", dialling->key);
    for (size_t i = 0; i < dial->header_count; i++)
        headers[count++] = dial->headers[i];
    request.header_count = count;
    (void) http_exchange_start(origin, &request, &dial_events, dialling);
}
