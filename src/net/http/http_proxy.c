#include "net/http/http_proxy.h"

#include <string.h>
#include <strings.h>

#include "base/auto.h"
#include "net/tunnel.h"

/* Lives in the request's pool. */
struct proxy {
    struct http_request *request;
    struct http_exchange *exchange;
    bool (*pass_reply_header)(const struct http_header *header);
    const struct http_header *(*edit_reply_header)(struct http_request *request,
                                                   const struct http_header *header);
    struct tunnel_watch *(*watch_tunnel)(struct http_request *request);
    void (*refusal)(int status, struct error *ret_error);
};

/* Headers that concern one hop only, framing included, which each side makes itself. Expect is
 * answered here. */
static const char *const hop_headers[] = {
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "proxy-connection",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-length",
    "expect",
};

static const char *const forwarded_headers[] = {
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-forwarded-host",
    "forwarded",
};

/* Orders to a web server in front of us (nginx, Apache, lighttpd, LiteSpeed, Perlbal): send that
 * file of yours, fetch that page for me, keep this. What we pass on for others gives it none. */
static const char *const front_headers[] = {
    "x-sendfile",           "x-sendfile2",   "x-lighttpd-send-file",
    "x-litespeed-location", "x-reproxy-url", "x-reproxy-file",
};

#define FRONT_PREFIX "x-accel-"

static bool is_among(const struct http_header *header, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        /* The first letter decides nearly always. */
        if ((header->name[0] | 0x20) == names[i][0] && strcasecmp(header->name, names[i]) == 0)
            return true;
    }
    return false;
}

bool http_proxy_is_for_one_hop(const struct http_header *header, const char *connection)
{
    return is_among(header, hop_headers, ARRAY_COUNT(hop_headers)) ||
           (connection && http_list_has_token(connection, header->name));
}

static bool is_order_to_front(const struct http_header *header)
{
    return strncasecmp(header->name, FRONT_PREFIX, strlen(FRONT_PREFIX)) == 0 ||
           is_among(header, front_headers, ARRAY_COUNT(front_headers));
}

/* --- the request out ------------------------------------------------------------------------ */

struct header_list {
    struct http_header *headers;
    size_t count;
};

static void http_proxy_add_header(struct header_list *list, const char *name, const char *value)
{
    list->headers[list->count++] = http_header_of(name, value);
}

/* The address without its port. */
static const char *peer_address(struct http_request *request)
{
    const char *peer = request->peer;
    const char *colon = strrchr(peer, ':');

    if (request->is_local)
        return "unix";
    if (*peer == '[')
        peer++;
    return pool_copy_bytes(&request->pool, peer,
                           colon ? (size_t) (colon - peer) - (colon[-1] == ']') : strlen(peer));
}

static void add_forwarded(struct header_list *list, struct http_request *request,
                          const struct http_proxy_options *options)
{
    bool is_secure = options->client ? options->is_secure : request->is_secure;

    http_proxy_add_header(list, "X-Forwarded-For",
                          options->client ? options->client : peer_address(request));
    http_proxy_add_header(list, "X-Forwarded-Proto", is_secure ? "https" : "http");
    http_proxy_add_header(list, "X-Forwarded-Host", http_request_host(request));
}

static struct header_list request_headers(struct http_request *request,
                                          const struct http_proxy_options *options)
{
    const struct http_head *head = request->head;
    const char *connection = http_head_join(head, "connection", &request->pool);
    struct header_list list = {
        .headers = pool_alloc_raw(&request->pool, (head->header_count + options->extra_count + 8) *
                                                      sizeof(*list.headers)),
    };

    if (options->host || !http_head_get(head, "host"))
        http_proxy_add_header(&list, "Host",
                              options->host ? options->host : http_request_host(request));
    for (size_t i = 0; i < head->header_count; i++) {
        const struct http_header *header = &head->headers[i];

        if (http_proxy_is_for_one_hop(header, connection) ||
            is_among(header, forwarded_headers, ARRAY_COUNT(forwarded_headers)) ||
            (options->host && strcasecmp(header->name, "host") == 0) ||
            (options->pass_request_header && !options->pass_request_header(header)))
            continue;
        if (options->edit_request_header)
            header = options->edit_request_header(request, header);
        if (header)
            list.headers[list.count++] = *header;
    }
    for (size_t i = 0; i < options->extra_count; i++)
        list.headers[list.count++] = options->extra[i];
    add_forwarded(&list, request, options);
    if (request->is_upgrade) {
        http_proxy_add_header(&list, "Connection", "Upgrade");
        http_proxy_add_header(&list, "Upgrade", http_head_join(head, "upgrade", &request->pool));
    }
    return list;
}

static const char *request_target(struct http_request *request)
{
    const struct url_target *target = &request->target;

    if (target->form != URL_TARGET_ABSOLUTE)
        return request->head->target;
    if (!target->query.text)
        return pool_copy_bytes(&request->pool, target->path.text, target->path.length);
    return pool_format(&request->pool, "%.*s?%.*s", (int) target->path.length, target->path.text,
                       (int) target->query.length, target->query.text);
}

/* --- the response back ---------------------------------------------------------------------- */

/* The one order that an event stream needs: nginx holds back what it is not told to let through. */
static int add_unbuffered(struct proxy *proxy, const struct http_head *head)
{
    static const char events[] = "text/event-stream";
    const char *type = http_head_get(head, "content-type");

    return type && strncasecmp(type, events, strlen(events)) == 0
               ? http_reply_header(proxy->request, "X-Accel-Buffering", "no")
               : 0;
}

static int copy_reply_headers(struct proxy *proxy, const struct http_head *head)
{
    const char *connection = http_head_join(head, "connection", &proxy->request->pool);

    for (size_t i = 0; i < head->header_count; i++) {
        const struct http_header *header = &head->headers[i];

        if (http_proxy_is_for_one_hop(header, connection) || is_order_to_front(header) ||
            (proxy->pass_reply_header && !proxy->pass_reply_header(header)))
            continue;
        if (proxy->edit_reply_header)
            header = proxy->edit_reply_header(proxy->request, header);
        if (!header)
            continue;
        if (http_reply_header(proxy->request, header->name, header->value) < 0)
            return -1;
    }
    return add_unbuffered(proxy, head);
}

static void http_proxy_give_up(struct proxy *proxy, const struct error *error)
{
    if (proxy->exchange)
        http_exchange_cancel(TAKE_PTR(proxy->exchange));
    http_reply_error(proxy->request, error);
}

static void upstream_head(struct http_exchange *exchange)
{
    struct proxy *proxy = http_exchange_data(exchange);
    const struct http_head *head = http_exchange_head(exchange);
    struct error error = ERROR_INIT;

    if (proxy->refusal) {
        proxy->refusal(head->status, &error);
        http_proxy_give_up(proxy, &error);
        return;
    }
    if (copy_reply_headers(proxy, head) < 0) {
        (void) error_set(&error, ERR_UPSTREAM, 0, "the peer's response head is too large");
        http_proxy_give_up(proxy, &error);
        return;
    }
    http_reply_begin(proxy->request, head->status, NULL, head->content_length);
}

static void upstream_body(struct http_exchange *exchange, const char *bytes, size_t length)
{
    struct proxy *proxy = http_exchange_data(exchange);

    http_reply_write(proxy->request, bytes, length);
    if (http_reply_is_full(proxy->request))
        http_exchange_pause(exchange);
}

static void client_drained(struct http_request *request)
{
    struct proxy *proxy = request->data;

    if (proxy->exchange)
        http_exchange_resume(proxy->exchange);
}

static void upstream_end(struct http_exchange *exchange)
{
    struct proxy *proxy = http_exchange_data(exchange);

    proxy->exchange = NULL;
    http_reply_end(proxy->request);
}

static void upstream_failed(struct http_exchange *exchange, const struct error *error)
{
    struct proxy *proxy = http_exchange_data(exchange);

    proxy->exchange = NULL;
    http_reply_error(proxy->request, error);
}

static void cannot_upgrade(struct http_request *request, struct stream *upstream,
                           const struct error *error)
{
    stream_close(upstream, stream_free);
    http_reply_error(request, error);
}

static void upstream_upgraded(struct http_exchange *exchange, struct stream *upstream,
                              const char *pending, size_t length)
{
    struct proxy *proxy = http_exchange_data(exchange);
    const struct http_head *head = http_exchange_head(exchange);
    struct http_request *request = proxy->request;
    struct http_server *server = http_request_server(request);
    const char *protocol = http_head_join(head, "upgrade", &request->pool);
    AUTO(text) struct text early = TEXT_INIT(SIZE_MAX / 2);
    AUTO(free) void *caller = http_guest_caller(request);
    struct tunnel_options options = {.server = server};
    struct error error = ERROR_INIT;
    struct stream *client;

    proxy->exchange = NULL;
    if (!protocol || copy_reply_headers(proxy, head) < 0) {
        (void) error_set(&error, ERR_UPSTREAM, 0, "the peer's upgrade is malformed");
        cannot_upgrade(request, upstream, &error);
        return;
    }
    if (proxy->watch_tunnel)
        options.watch = proxy->watch_tunnel(request); /* now: the request ends with the upgrade */
    options.is_websocket = strcasecmp(protocol, "websocket") == 0;
    client = http_reply_upgrade(request, protocol, &early, &error);
    if (!client) {
        if (options.watch)
            options.watch->ended(options.watch);
        cannot_upgrade(request, upstream, &error);
        return;
    }
    options.caller = TAKE_PTR(caller);
    tunnel_start(client, text_string(&early), early.length, upstream, pending, length, &options);
}

static void upstream_drained(struct http_exchange *exchange)
{
    struct proxy *proxy = http_exchange_data(exchange);

    http_request_resume(proxy->request);
}

static const struct http_exchange_events exchange_events = {
    .on_head = upstream_head,
    .on_body = upstream_body,
    .on_end = upstream_end,
    .on_drain = upstream_drained,
    .on_upgrade = upstream_upgraded,
    .on_failure = upstream_failed,
};

/* --- the client ----------------------------------------------------------------------------- */

static void client_body(struct http_request *request, const char *bytes, size_t length)
{
    struct proxy *proxy = request->data;

    if (!proxy->exchange)
        return;
    http_exchange_write(proxy->exchange, bytes, length);
    if (http_exchange_is_full(proxy->exchange))
        http_request_pause(request);
}

static void client_body_end(struct http_request *request)
{
    struct proxy *proxy = request->data;

    if (proxy->exchange)
        http_exchange_end(proxy->exchange);
}

static void client_gone(struct http_request *request)
{
    struct proxy *proxy = request->data;

    if (proxy->exchange)
        http_exchange_cancel(TAKE_PTR(proxy->exchange));
}

void http_proxy(struct http_request *request, struct http_origin *origin,
                const struct http_proxy_options *options)
{
    static const struct http_proxy_options defaults = {.target = NULL};
    const struct http_proxy_options *chosen = options ? options : &defaults;
    const struct http_head *head = request->head;
    struct proxy *proxy = pool_alloc(&request->pool, sizeof(*proxy));
    struct header_list list = request_headers(request, chosen);
    struct http_exchange_request outgoing = {
        .method = head->method,
        .target = chosen->target ? chosen->target : request_target(request),
        .headers = list.headers,
        .header_count = list.count,
        .body_length = head->chunked              ? HTTP_LENGTH_UNKNOWN
                       : head->content_length > 0 ? head->content_length
                                                  : 0,
        .send_length = head->content_length == 0,
        .upgrade = request->is_upgrade,
    };

    proxy->request = request;
    proxy->pass_reply_header = chosen->pass_reply_header;
    proxy->edit_reply_header = chosen->edit_reply_header;
    proxy->watch_tunnel = chosen->watch_tunnel;
    proxy->refusal = chosen->refusal;
    request->data = proxy;
    request->on_gone = client_gone;
    request->on_drain = client_drained;
    proxy->exchange = http_exchange_start(origin, &outgoing, &exchange_events, proxy);
    http_request_stream(request, client_body, client_body_end);
}
