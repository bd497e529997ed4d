/* The body of a request on its way to the handler: limits, collecting, streaming, throwing away. */
#include "base/auto.h"
#include "net/http/http_connection.h"

/* A body nobody wants is read and dropped up to this size, because that keeps the connection; past
 * it closing is cheaper. */
#define DISCARD_MAX ((uint64_t) 512 * 1024)

static int too_large(struct error *err, uint64_t limit)
{
    return error_set(err, ERR_TOO_LARGE, 0, "the body is larger than the %llu bytes allowed here",
                     (unsigned long long) limit);
}

int http_body_check(struct http_request *request, struct error *err)
{
    int64_t length = request->head->content_length;

    if (length > 0 && (uint64_t) length > request->body_limit)
        return too_large(err, request->body_limit);
    return 0;
}

static void discard(struct http_request *request)
{
    if (request->body_received > DISCARD_MAX)
        http_connection_give_up_body(request->connection);
}

void http_body_piece(struct http_request *request, const char *bytes, size_t length)
{
    struct error error;

    request->body_received += length;
    request->connection->server->counters.bytes_received += length;
    if (request->state == HTTP_REQUEST_REPLIED) {
        discard(request);
        return;
    }
    if (request->body_received > request->body_limit) {
        (void) too_large(&error, request->body_limit);
        http_connection_refuse(request->connection, &error);
        return;
    }
    if (request->on_collected)
        text_append_bytes(&request->collected, bytes, length);
    else if (request->on_body)
        request->on_body(request, bytes, length);
}

void http_body_end(struct http_request *request)
{
    struct http_connection *connection = request->connection;

    request->body_done = true;
    if (request->state == HTTP_REQUEST_REPLIED) {
        http_connection_reply_done(connection);
        return;
    }
    if (request->on_collected)
        request->on_collected(request, text_string(&request->collected), request->collected.length);
    else if (request->on_body_end)
        request->on_body_end(request);
}

static void send_continue(struct http_request *request)
{
    static const char line[] = "HTTP/1.1 100 Continue\r\n\r\n";

    if (!request->continue_owed)
        return;
    request->continue_owed = false;
    stream_write(request->connection->stream, line, sizeof(line) - 1);
}

static void want_body(struct http_request *request)
{
    struct http_connection *connection = request->connection;

    request->body_wanted = true;
    send_continue(request);
    if (connection->feeding)
        return;
    if (connection->early.length)
        loop_defer(connection->server->loop, &connection->advance);
    http_connection_settle(connection);
}

void http_request_collect(struct http_request *request,
                          void (*on_collected)(struct http_request *request, const char *body,
                                               size_t length))
{
    /* The piece-by-piece check against body_limit comes first, so this bound is never met. */
    request->collected.maximum =
        request->body_limit < SIZE_MAX / 2 ? (size_t) request->body_limit : SIZE_MAX / 2;
    request->on_collected = on_collected;
    if (request->body_done)
        on_collected(request, "", 0);
    else
        want_body(request);
}

void http_request_stream(struct http_request *request,
                         void (*on_body)(struct http_request *request, const char *bytes,
                                         size_t length),
                         void (*on_body_end)(struct http_request *request))
{
    request->on_body = on_body;
    request->on_body_end = on_body_end;
    if (request->body_done)
        on_body_end(request);
    else
        want_body(request);
}

void http_request_pause(struct http_request *request)
{
    request->body_paused = true;
    http_connection_settle(request->connection);
}

void http_request_resume(struct http_request *request)
{
    struct http_connection *connection = request->connection;

    if (!request->body_paused)
        return;
    request->body_paused = false;
    if (connection->early.length && !connection->feeding)
        loop_defer(connection->server->loop, &connection->advance);
    http_connection_settle(connection);
}
