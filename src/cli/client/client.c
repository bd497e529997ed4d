#include "cli/client/client.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "cli/client/credentials.h"
#include "json/json_read.h"
#include "net/url.h"

#define ADDRESS_SIZE           256
#define PORT_SIZE              8
#define LIST_PAGE              1000
#define CLIENT_CONNECTIONS_MAX 1024

/* --- opening --------------------------------------------------------------------------------- */

/* The first address of a host: "127.0.0.1:8787", as http_origin_new wants it. */
static int client_resolve(const char *host, uint16_t port, char ret_address[static ADDRESS_SIZE],
                          struct error *err)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char number[PORT_SIZE], text[ADDRESS_SIZE - PORT_SIZE - 4];
    int r;

    (void) snprintf(number, sizeof(number), "%u", port);
    r = getaddrinfo(host, number, &hints, &found);
    if (r == 0)
        r = getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof(text), NULL, 0,
                        NI_NUMERICHOST);
    if (r == 0)
        (void) snprintf(ret_address, ADDRESS_SIZE,
                        found->ai_family == AF_INET6 ? "[%s]:%u" : "%s:%u", text, port);
    if (found)
        freeaddrinfo(found);
    return r == 0 ? 0
                  : error_set(err, ERR_NOT_FOUND, 0, "the host '%s' is not known: %s", host,
                              gai_strerror(r));
}

static int open_origin(struct client *client, const char *text, struct error *err)
{
    struct http_origin_options options = HTTP_ORIGIN_OPTIONS_DEFAULT;
    char address[ADDRESS_SIZE];
    struct url_host host;
    struct url url;

    options.connections_max = CLIENT_CONNECTIONS_MAX;
    if (url_parse(text, strlen(text), &url, err) < 0)
        return error_wrap(err, "the URL of the daemon");
    if (url.scheme == URL_UNIX) {
        (void) snprintf(address, sizeof(address), "unix:%.*s", (int) url.path.length,
                        url.path.text);
        client->host = "localhost";
    } else {
        url_host_of(&url, &host);
        client->host = pool_format(&client->pool, "%s:%u", host.name, host.port);
        if (client_resolve(pool_copy_bytes(&client->pool, url.host.text, url.host.length),
                           host.port, address, err) < 0)
            return -1;
    }
    if (url.scheme == URL_HTTPS) {
        client->tls = tls_context_client(NULL, err);
        if (!client->tls)
            return -1;
        options.tls = client->tls;
        options.tls_host = pool_copy_text(&client->pool, host.name);
    }
    client->origin = http_origin_new(&client->loop, address, &options, err);
    return client->origin ? 0 : -1;
}

int client_open(struct client *client, const char *url, const char *key, struct error *err)
{
    struct credentials found;
    int r;

    *client = (struct client){.pool = POOL_INIT};
    credentials_find(&client->pool, url, key, &found);
    client->url = found.url;
    client->authorization = found.key ? pool_format(&client->pool, "Bearer %s", found.key) : NULL;
    r = loop_init(&client->loop, NULL);
    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "start the loop");
    client->is_open = true;
    return open_origin(client, found.url, err);
}

void client_close(struct client *client)
{
    if (client->origin)
        http_origin_close(TAKE_PTR(client->origin), NULL, NULL);
    if (client->is_open) {
        loop_run(&client->loop);
        loop_done(&client->loop);
    }
    client->is_open = false;
    tls_context_free(TAKE_PTR(client->tls));
    pool_done(&client->pool);
}

/* --- asking ---------------------------------------------------------------------------------- */

static struct http_header header(const char *name, const char *value)
{
    return (struct http_header){
        .name = name,
        .value = value,
        .name_length = (uint32_t) strlen(name),
        .value_length = (uint32_t) strlen(value),
    };
}

size_t client_headers(const struct client *client,
                      struct http_header ret_headers[static CLIENT_HEADERS])
{
    size_t count = 0;

    ret_headers[count++] = header("Host", client->host);
    ret_headers[count++] = header("User-Agent", "burrow/" BURROW_VERSION);
    ret_headers[count++] = header("Accept", "application/json");
    if (client->authorization)
        ret_headers[count++] = header("Authorization", client->authorization);
    return count;
}

static bool is_good(const struct client_reply *reply)
{
    return reply->status >= 200 && reply->status < 300;
}

struct client_asking {
    struct client *client;
    const struct client_stream *stream;
    struct client_reply *reply;
    struct error *err;
    bool is_done, has_failed;
    bool has_body; /* more of the request's body is to be sent */
};

static void client_finish(struct client_asking *asking)
{
    asking->is_done = true;
    loop_stop(&asking->client->loop);
}

/* Our own side cannot go on. */
static void client_give_up(struct client_asking *asking, struct http_exchange *exchange)
{
    asking->has_failed = true;
    http_exchange_cancel(exchange);
    client_finish(asking);
}

static void send_more(struct http_exchange *exchange)
{
    struct client_asking *asking = http_exchange_data(exchange);
    char *buffer = asking->client->loop.scratch;

    while (asking->has_body && !http_exchange_is_full(exchange)) {
        ssize_t got =
            asking->stream->next(asking->stream->context, buffer, LOOP_SCRATCH_SIZE, asking->err);

        if (got < 0) {
            client_give_up(asking, exchange);
            return;
        }
        if (got > 0) {
            http_exchange_write(exchange, buffer, (size_t) got);
        } else {
            asking->has_body = false;
            http_exchange_end(exchange);
        }
    }
}

static void client_on_head(struct http_exchange *exchange)
{
    struct client_asking *asking = http_exchange_data(exchange);
    const struct http_head *head = http_exchange_head(exchange);

    asking->reply->status = head->status;
    asking->reply->length = head->content_length;
    if (!is_good(asking->reply))
        asking->has_body = false; /* nobody wants the rest of it */
}

static void on_body(struct http_exchange *exchange, const char *bytes, size_t length)
{
    struct client_asking *asking = http_exchange_data(exchange);
    const struct client_stream *stream = asking->stream;

    if (!stream->take || !is_good(asking->reply))
        text_append_bytes(&asking->reply->body, bytes, length);
    else if (stream->take(stream->context, asking->reply, bytes, length, asking->err) < 0)
        client_give_up(asking, exchange);
}

static void on_end(struct http_exchange *exchange)
{
    client_finish(http_exchange_data(exchange));
}

static void on_failure(struct http_exchange *exchange, const struct error *error)
{
    struct client_asking *asking = http_exchange_data(exchange);

    asking->has_failed = true;
    if (asking->reply->status)
        (void) error_set(asking->err, ERR_UPSTREAM, 0, "the answer of the daemon was cut off: %s",
                         error->message);
    else if (asking->client->tls && abs(error->system) == EPROTO)
        (void) error_set(asking->err, ERR_UNAVAILABLE, 0,
                         "the daemon at %s proves no identity that is trusted here; SSL_CERT_FILE "
                         "names a file of further certificates",
                         asking->client->url);
    else
        (void) error_set(asking->err, ERR_UNAVAILABLE, 0,
                         "the daemon at %s cannot be reached (%s); start it with `burrow serve`, "
                         "or name another with --url or BURROW_URL",
                         asking->client->url, error->message);
    client_finish(asking);
}

static const struct http_exchange_events events = {
    .on_head = client_on_head,
    .on_body = on_body,
    .on_end = on_end,
    .on_drain = send_more,
    .on_failure = on_failure,
};

void client_error(int status, json_t *json, struct error *err)
{
    json_t *error = json ? json_object_get(json, "error") : NULL;
    const char *code = json_string_value(json_object_get(error, "code"));
    const char *message = json_string_value(json_object_get(error, "message"));
    enum err_code known = code ? error_code_from_text(code) : ERR_CODE_COUNT;

    if (message)
        (void) error_set(err, known == ERR_CODE_COUNT ? ERR_UPSTREAM : known, 0, "%s", message);
    else
        (void) error_set(err, ERR_UPSTREAM, 0, "the daemon answered with status %d", status);
    if (message && known == ERR_QUOTA)
        (void) error_wrap(err, "over the quota");
}

void client_refusal(int status, const char *body, size_t length, struct error *err)
{
    AUTO(json) json_t *json = json_read(body, length, NULL, NULL);

    client_error(status, json, err);
}

static int client_judge(struct client *client, struct client_reply *reply, struct error *err)
{
    if (reply->body.overflowed)
        return error_set(err, ERR_TOO_LARGE, 0, "the daemon's answer is too long");
    if (reply->body.length)
        reply->json =
            json_read(text_string(&reply->body), reply->body.length,
                      &(struct json_limits){
                          .size = CLIENT_REPLY_MAX, .depth = JSON_DEPTH_MAX, .values = SIZE_MAX},
                      NULL);
    if (is_good(reply))
        return 0;
    client_error(reply->status, reply->json, err);
    if (reply->status == 401 && !client->authorization)
        return error_set(err, ERR_UNAUTHENTICATED, 0,
                         "a key is needed: --key, BURROW_API_KEY, or %s", credentials_place());
    return -1;
}

int client_stream(struct client *client, const struct client_stream *stream,
                  struct client_reply *reply, struct error *err)
{
    struct client_asking asking = {
        .client = client, .stream = stream, .reply = reply, .err = err, .has_body = stream->type};
    struct http_header headers[CLIENT_HEADERS + 1];
    struct http_exchange_request request = {
        .method = stream->method,
        .target = stream->path,
        .headers = headers,
        .body_length = stream->type ? stream->body_length : 0,
        .send_length = true,
    };
    struct http_exchange *exchange;

    request.header_count = client_headers(client, headers);
    if (stream->type)
        headers[request.header_count++] = header("Content-Type", stream->type);
    client_reply_done(reply);
    *reply = (struct client_reply) CLIENT_REPLY_INIT;
    exchange = http_exchange_start(client->origin, &request, &events, &asking);
    if (asking.has_body)
        send_more(exchange);
    else
        http_exchange_end(exchange);
    while (!asking.is_done)
        loop_run(&client->loop);
    return asking.has_failed ? -1 : client_judge(client, reply, err);
}

/* A body that is a text. */
static ssize_t next_text(void *context, char *buffer, size_t size, struct error *err)
{
    const char **at = context;
    size_t length = strnlen(*at, size);

    (void) err;
    memcpy(buffer, *at, length);
    *at += length;
    return (ssize_t) length;
}

int client_call(struct client *client, const char *method, const char *path, json_t *body,
                struct client_reply *reply, struct error *err)
{
    AUTO(free) char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    const char *at = text;
    const struct client_stream stream = {
        .method = method,
        .path = path,
        .type = text ? "application/json" : NULL,
        .body_length = text ? (int64_t) strlen(text) : 0,
        .next = next_text,
        .context = &at,
    };

    return client_stream(client, &stream, reply, err);
}

json_t *client_list(struct client *client, const char *path, const char *name, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    AUTO(json) json_t *all = json_array();
    const char *mark = strchr(path, '?') ? "&" : "?", *next = NULL, *from = "&after=";

    do {
        const char *page = pool_format(&client->pool, "%s%slimit=%d%s%s", path, mark, LIST_PAGE,
                                       next ? from : "", next ? next : "");

        if (client_call(client, "GET", page, NULL, &reply, err) < 0)
            return NULL;
        if (json_array_extend(all, json_object_get(reply.json, name)) < 0) {
            (void) error_set(err, ERR_UPSTREAM, 0, "the daemon sent something that is not a list");
            return NULL;
        }
        next = json_string_value(json_object_get(reply.json, "next"));
        if (!next) {
            next = json_string_value(json_object_get(reply.json, "nextCursor"));
            from = "&cursor=";
        }
        if (next) /* an id, or a time and an id: nothing in it needs escaping */
            next = pool_copy_text(&client->pool, next);
    } while (next);
    return TAKE_PTR(all);
}

void client_reply_done(struct client_reply *reply)
{
    json_decref(reply->json);
    reply->json = NULL;
    text_done(&reply->body);
}

const char *client_path(struct client *client, const char *kind, const char *name, const char *rest)
{
    AUTO(text) struct text escaped = TEXT_INIT(URL_LENGTH_MAX);

    url_encode(&escaped, name, strlen(name));
    return pool_format(&client->pool, CLIENT_PREFIX "/%s/%s%s", kind, text_string(&escaped), rest);
}

const char *client_sandbox_path(struct client *client, const char *name, const char *rest)
{
    return client_path(client, "sandboxes", name, rest);
}
