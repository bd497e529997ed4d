#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "net/http/http_link.h"

#define REQUEST_HEAD_MAX ((size_t) 128 * 1024)

void http_exchange_free(struct http_exchange *exchange)
{
    list_remove(&exchange->link);
    loop_task_cancel(&exchange->fail_task);
    text_done(&exchange->head);
    free(exchange);
}

/* The last event of an exchange that went wrong; its link goes with it. */
void http_exchange_fail(struct http_exchange *exchange, const struct error *error)
{
    struct http_link *link = exchange->connection;
    struct error copy = *error;

    if (link) {
        exchange->connection = NULL;
        http_link_leave(link);
    } else if (!list_is_empty(&exchange->link)) {
        exchange->origin->waiting_count--;
    }
    exchange->events->on_failure(exchange, &copy);
    http_exchange_free(exchange);
}

static void fail_task(struct loop_task *task)
{
    struct http_exchange *exchange = CONTAINER_OF(task, struct http_exchange, fail_task);

    http_exchange_fail(exchange, &exchange->error);
}

void http_exchange_fail_later(struct http_exchange *exchange, enum err_code code, int system,
                              const char *text)
{
    (void) error_set(&exchange->error, code, system, "%s", text);
    loop_defer(exchange->origin->loop, &exchange->fail_task);
}

static void write_request_head(struct text *head, const struct http_exchange_request *request,
                               bool is_agent)
{
    text_append(head, request->method);
    text_append_char(head, ' ');
    text_append(head, request->target);
    text_append(head, " HTTP/1.1\r\n");
    for (size_t i = 0; i < request->header_count; i++) {
        const struct http_header *header = &request->headers[i];

        text_append_bytes(head, header->name, header->name_length);
        text_append_bytes(head, ": ", 2);
        text_append_bytes(head, header->value, header->value_length);
        text_append_bytes(head, "\r\n", 2);
    }
    if (is_agent && trace_context.request.text[0])
        text_format(head, "X-Request-Id: %s\r\n", trace_context.request.text);
    if (request->body_length == HTTP_LENGTH_UNKNOWN)
        text_append(head, "Transfer-Encoding: chunked\r\n");
    else if (request->body_length > 0 || request->send_length)
        text_format(head, "Content-Length: %lld\r\n", (long long) request->body_length);
    text_append_bytes(head, "\r\n", 2);
}

static bool is_safe_method(const char *method)
{
    return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0 ||
           strcmp(method, "OPTIONS") == 0;
}

struct http_exchange *http_exchange_start(struct http_origin *origin,
                                          const struct http_exchange_request *request,
                                          const struct http_exchange_events *events, void *data)
{
    struct http_exchange *exchange = mem_alloc(sizeof(*exchange));

    exchange->origin = origin;
    exchange->trace = trace_context;
    exchange->events = events;
    exchange->data = data;
    exchange->body_left = request->body_length;
    exchange->body_ended = request->body_length == 0;
    exchange->chunked = request->body_length == HTTP_LENGTH_UNKNOWN;
    exchange->is_head = strcmp(request->method, "HEAD") == 0;
    exchange->is_safe = exchange->body_ended && is_safe_method(request->method);
    exchange->wants_upgrade = request->upgrade;
    exchange->head = (struct text) TEXT_INIT(REQUEST_HEAD_MAX + STREAM_HIGH_WATER * 2);
    if (origin->options.is_agent)
        TRACE_WITH("agent.ask", request->method);
    list_init(&exchange->link);
    loop_task_init(&exchange->fail_task, fail_task);
    write_request_head(&exchange->head, request, origin->options.is_agent);
    if (origin->closing)
        http_exchange_fail_later(exchange, ERR_UNAVAILABLE, 0, "the peer is being taken away");
    else if (exchange->head.overflowed || exchange->head.length > REQUEST_HEAD_MAX)
        http_exchange_fail_later(exchange, ERR_HEADERS_TOO_LARGE, 0,
                                 "the request head is too large");
    else
        http_origin_place(exchange);
    return exchange;
}

void *http_exchange_data(const struct http_exchange *exchange)
{
    return exchange->data;
}

const struct http_head *http_exchange_head(const struct http_exchange *exchange)
{
    return exchange->response;
}

/* To the connection, or behind the head while there is none. */
static void send_bytes(struct http_exchange *exchange, const struct iovec *parts, int count)
{
    if (exchange->connection) {
        stream_write_parts(exchange->connection->stream, parts, count);
        return;
    }
    for (int i = 0; i < count; i++)
        text_append_bytes(&exchange->head, parts[i].iov_base, parts[i].iov_len);
    if (exchange->head.overflowed)
        http_exchange_fail_later(exchange, ERR_UNAVAILABLE, 0,
                                 "the body does not wait for the peer");
}

void http_exchange_write(struct http_exchange *exchange, const void *bytes, size_t length)
{
    char size_line[20];
    struct iovec parts[3] = {
        {.iov_base = size_line},
        {.iov_base = (void *) (uintptr_t) bytes, .iov_len = length},
        {.iov_base = (void *) (uintptr_t) "\r\n", .iov_len = 2},
    };

    if (!length || exchange->body_ended)
        return;
    if (!exchange->chunked) {
        exchange->body_left -= (int64_t) length;
        send_bytes(exchange, &parts[1], 1);
        return;
    }
    parts[0].iov_len = (size_t) snprintf(size_line, sizeof(size_line), "%zx\r\n", length);
    send_bytes(exchange, parts, 3);
}

bool http_exchange_is_full(const struct http_exchange *exchange)
{
    return exchange->connection ? stream_is_full(exchange->connection->stream)
                                : exchange->head.length >= STREAM_HIGH_WATER;
}

void http_exchange_end(struct http_exchange *exchange)
{
    struct iovec last = {.iov_base = (void *) (uintptr_t) "0\r\n\r\n", .iov_len = 5};

    if (exchange->body_ended)
        return;
    if (exchange->chunked)
        send_bytes(exchange, &last, 1);
    exchange->body_ended = true;
    if (exchange->connection)
        http_link_expect(exchange->connection);
}

void http_exchange_pause(struct http_exchange *exchange)
{
    exchange->paused = true;
    if (!exchange->connection)
        return;
    stream_pause(exchange->connection->stream);
    http_link_expect(exchange->connection);
}

void http_exchange_resume(struct http_exchange *exchange)
{
    exchange->paused = false;
    if (!exchange->connection)
        return;
    stream_resume(exchange->connection->stream);
    http_link_expect(exchange->connection);
}

void http_exchange_cancel(struct http_exchange *exchange)
{
    struct http_link *link = exchange->connection;

    if (link) {
        http_link_leave(link);
    } else if (!list_is_empty(&exchange->link)) {
        exchange->origin->waiting_count--;
    }
    http_exchange_free(exchange);
}
