/* Writing replies. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/auto.h"
#include "net/http/http_connection.h"

#define EXTRA_HEADERS_MAX ((size_t) 64 * 1024)
#define ERROR_BODY_MAX    ((size_t) 8 * 1024)

static void append_literal(struct text *text, const char *literal, size_t length)
{
    text_append_bytes(text, literal, length);
}

#define APPEND(text, literal) append_literal((text), (literal), sizeof(literal) - 1)

static void append_decimal(struct text *text, uint64_t number)
{
    char digits[20];
    size_t at = sizeof(digits);

    do
        digits[--at] = (char) ('0' + number % 10);
    while (number /= 10);
    text_append_bytes(text, digits + at, sizeof(digits) - at);
}

int http_reply_header(struct http_request *request, const char *name, const char *value)
{
    struct text *headers = &request->extra_headers;

    if (!http_name_is_valid(name) || !http_value_is_valid(value))
        return -EINVAL;
    if (!headers->maximum)
        headers->maximum = EXTRA_HEADERS_MAX;
    if (headers->length + strlen(name) + strlen(value) + 4 > headers->maximum)
        return -ENOBUFS;
    text_append(headers, name);
    APPEND(headers, ": ");
    text_append(headers, value);
    APPEND(headers, "\r\n");
    if (strcasecmp(name, "date") == 0)
        request->has_date = true;
    else if (strcasecmp(name, "x-request-id") == 0)
        request->has_request_id = true; /* of an upstream: its own tells its client more */
    return 0;
}

static void append_status_line(struct text *head, int status)
{
    if (status == 200) { /* nearly always */
        APPEND(head, "HTTP/1.1 200 OK\r\n");
        return;
    }
    APPEND(head, "HTTP/1.1 ");
    append_decimal(head, (uint64_t) status);
    APPEND(head, " ");
    text_append(head, http_status_text(status));
    APPEND(head, "\r\n");
}

static void append_common(struct text *head, struct http_request *request, const char *content_type)
{
    if (!request->has_date) {
        APPEND(head, "Date: ");
        text_append(head, http_server_date(request->connection->server));
        APPEND(head, "\r\n");
    }
    if (content_type) {
        APPEND(head, "Content-Type: ");
        text_append(head, content_type);
        APPEND(head, "\r\n");
    }
    if (!request->has_request_id) {
        APPEND(head, "X-Request-Id: ");
        text_append_bytes(head, request->id.text, ID_LENGTH);
        APPEND(head, "\r\n");
    }
    text_append_bytes(head, text_string(&request->extra_headers), request->extra_headers.length);
}

/* How the client will find the end of the body. */
static void append_framing(struct text *head, struct http_request *request, int64_t length)
{
    struct http_connection *connection = request->connection;

    if (request->status != 204 && request->status != 304) {
        if (length >= 0) {
            APPEND(head, "Content-Length: ");
            append_decimal(head, (uint64_t) length);
            APPEND(head, "\r\n");
        } else if (request->head->minor == 1) {
            request->chunked = !request->no_reply_body;
            APPEND(head, "Transfer-Encoding: chunked\r\n");
        } else {
            connection->close_after_reply = true; /* HTTP/1.0: the end is where we close */
        }
    }
    /* A body that was never asked for with 100 Continue leaves the client undecided: close. */
    if (request->continue_owed)
        connection->close_after_reply = true;
    if (connection->close_after_reply)
        APPEND(head, "Connection: close\r\n");
    else if (request->head->minor == 0)
        APPEND(head, "Connection: keep-alive\r\n");
    APPEND(head, "\r\n");
}

static struct text *write_head(struct http_request *request, int status, const char *content_type,
                               int64_t length)
{
    struct text *head = &request->connection->server->scratch;

    request->status = status;
    request->state = HTTP_REQUEST_REPLYING;
    request->reply_length = length;
    if (status == 204 || status == 304)
        request->no_reply_body = true;
    text_clear(head);
    append_status_line(head, status);
    append_common(head, request, content_type);
    append_framing(head, request, length);
    return head;
}

static void count_sent(struct http_request *request, size_t length)
{
    request->body_sent += length;
    request->connection->server->counters.bytes_sent += length;
}

void http_reply(struct http_request *request, int status, const char *content_type,
                const void *body, size_t length)
{
    struct iovec parts[2] = {{.iov_base = NULL},
                             {.iov_base = (void *) (uintptr_t) body, .iov_len = length}};
    struct text *head;

    if (request->watch &&
        request->watch->on_reply(request->watch, request, status, content_type, body, length))
        return;
    head = write_head(request, status, content_type, (int64_t) length);
    parts[0] = (struct iovec){.iov_base = head->data, .iov_len = head->length};
    if (!request->no_reply_body)
        count_sent(request, length);
    stream_write_parts(request->connection->stream, parts, request->no_reply_body ? 1 : 2);
    http_connection_reply_done(request->connection);
}

void http_reply_text(struct http_request *request, int status, const char *content_type,
                     const char *body)
{
    http_reply(request, status, content_type, body, strlen(body));
}

void http_reply_begin(struct http_request *request, int status, const char *content_type,
                      int64_t length)
{
    struct text *head;

    if (request->watch)
        (void) request->watch->on_reply(request->watch, request, status, content_type, NULL, 0);
    request->is_events = content_type && strncmp(content_type, "text/event-stream", 17) == 0;
    head = write_head(request, status, content_type, length);
    stream_write(request->connection->stream, head->data, head->length);
    if (!request->connection->feeding)
        http_connection_settle(request->connection);
}

void http_reply_write_parts(struct http_request *request, const struct iovec *parts, int count)
{
    struct stream *stream = request->connection->stream;
    struct iovec all[HTTP_PARTS_MAX + 2];
    char size_line[20];
    size_t length = 0;

    for (int i = 0; i < count; i++) {
        all[i + 1] = parts[i];
        length += parts[i].iov_len;
    }
    if (!length || request->no_reply_body)
        return;
    count_sent(request, length);
    if (!request->chunked) {
        stream_write_parts(stream, parts, count);
        return;
    }
    all[0].iov_base = size_line;
    all[0].iov_len = (size_t) snprintf(size_line, sizeof(size_line), "%zx\r\n", length);
    all[count + 1] = (struct iovec){.iov_base = (void *) (uintptr_t) "\r\n", .iov_len = 2};
    stream_write_parts(stream, all, count + 2);
}

void http_reply_write(struct http_request *request, const void *bytes, size_t length)
{
    struct iovec part = {.iov_base = (void *) (uintptr_t) bytes, .iov_len = length};

    http_reply_write_parts(request, &part, 1);
}

bool http_reply_is_full(const struct http_request *request)
{
    return stream_is_full(request->connection->stream);
}

void http_reply_end(struct http_request *request)
{
    static const char last_chunk[] = "0\r\n\r\n";

    if (request->reply_length >= 0 && !request->no_reply_body &&
        request->body_sent != (uint64_t) request->reply_length) {
        http_reply_cut(request);
        return;
    }
    if (request->chunked)
        stream_write(request->connection->stream, last_chunk, sizeof(last_chunk) - 1);
    http_connection_reply_done(request->connection);
}

void http_reply_cut(struct http_request *request)
{
    request->on_gone = NULL; /* the handler knows: it called */
    http_connection_cut(request->connection);
}

static void plain_error(const struct http_request *request, const struct error *error,
                        struct text *body, const char **ret_content_type)
{
    (void) request;
    text_format(body, "%s: %s\n", error_code_text(error->code), error->message);
    *ret_content_type = "text/plain; charset=utf-8";
}

void http_reply_error_now(struct http_request *request, const struct error *error)
{
    const struct http_server_options *options = &request->connection->server->options;
    AUTO(text) struct text body = TEXT_INIT(ERROR_BODY_MAX);
    const char *content_type = NULL;

    if (options->on_error)
        options->on_error(request, error, options->admit_data);
    if (request->match.mount && request->match.mount->encode_error)
        request->match.mount->encode_error(request, error, &body, &content_type);
    else if (options->encode_error)
        options->encode_error(request, error, &body, &content_type);
    else
        plain_error(request, error, &body, &content_type);
    if (error->code == ERR_INTERNAL)
        LOG_ERROR(options->log, "request failed", log_text("request", request->id.text),
                  log_text("reason", error->message));
    http_reply(request, error_http_status(error->code), content_type, text_string(&body),
               body.length);
}

void http_reply_error(struct http_request *request, const struct error *error)
{
    if (request->state == HTTP_REQUEST_FRESH)
        http_reply_error_now(request, error);
    else
        http_reply_cut(request);
}

struct stream *http_reply_upgrade(struct http_request *request, const char *protocol,
                                  struct text *ret_pending, struct error *err)
{
    struct http_connection *connection = request->connection;
    struct text *head = &connection->server->scratch;

    if (!request->is_upgrade) {
        (void) error_set(err, ERR_UPGRADE_REQUIRED, 0, "this path speaks only %s", protocol);
        return NULL;
    }
    text_clear(head);
    APPEND(head, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ");
    text_append(head, protocol);
    APPEND(head, "\r\n");
    append_common(head, request, NULL);
    APPEND(head, "\r\n");
    stream_write(connection->stream, head->data, head->length);
    request->status = 101;
    request->state = HTTP_REQUEST_REPLIED;
    return http_connection_hand_over(connection, ret_pending);
}

struct stream *http_reply_connected(struct http_request *request, struct text *ret_pending)
{
    static const char line[] = "HTTP/1.1 200 Connection established\r\n\r\n";
    struct http_connection *connection = request->connection;

    stream_write(connection->stream, line, sizeof(line) - 1);
    request->status = 200;
    request->state = HTTP_REQUEST_REPLIED;
    return http_connection_hand_over(connection, ret_pending);
}

void *http_request_session(const struct http_request *request)
{
    return request->connection->session;
}

struct http_server *http_request_server(const struct http_request *request)
{
    return request->connection->server;
}

const char *http_request_query(struct http_request *request, const char *name)
{
    const char *value = NULL;

    if (!request->target.query.text ||
        url_query_get(request->target.query, name, &request->pool, &value) < 0)
        return NULL;
    return value;
}

const char *http_request_host(struct http_request *request)
{
    const char *host = http_head_get(request->head, "host");

    if (request->target.authority.text)
        return pool_copy_bytes(&request->pool, request->target.authority.text,
                               request->target.authority.length);
    return host ? host : "";
}
