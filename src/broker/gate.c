/* What a request of a sandbox is: a route, a proxy request, a request inside of TLS, a CONNECT. */
#include <string.h>
#include <strings.h>

#include "base/auto.h"
#include "base/encoding/encode.h"
#include "broker/broker_internal.h"
#include "broker/refusal.h"
#include "broker/request_path.h"

#define HTTP_PORT 80

static void gate_refuse(struct http_request *request, const struct error *error)
{
    http_reply_error(request, error);
}

static void gate_violated(struct http_request *request, const char *reason, const char *host,
                          uint16_t port, const char *text)
{
    struct error error;

    outlet_violated(request->context, reason, host, port);
    (void) error_set(&error, ERR_INVALID, 0, "%s", text);
    gate_refuse(request, &error);
}

/* --- what the client proves itself with ------------------------------------------------------- */

/* Of "Basic ...", the password; else what is behind the scheme. */
static const char *authorization_proof(struct http_request *request, const char *value)
{
    const char *blank = strchr(value, ' ');
    const char *proof = blank ? blank + strspn(blank, " ") : value;
    size_t length = strlen(proof);
    char *plain, *colon;
    size_t plain_length;

    if (!blank || blank - value != 5 || strncasecmp(value, "Basic", 5) != 0)
        return proof;
    plain = pool_alloc(&request->pool, BASE64_BYTES_MAX(length) + 1);
    if (base64_decode(BASE64_STANDARD, proof, length, plain, BASE64_BYTES_MAX(length),
                      &plain_length) < 0)
        return proof;
    plain[plain_length] = '\0';
    colon = strchr(plain, ':');
    return colon ? colon + 1 : plain;
}

static const char *request_placeholder(struct http_request *request)
{
    static const char *const names[] = {"x-api-key", "x-goog-api-key", "api-key"};
    const char *value = http_request_header(request, "authorization");

    if (value)
        return authorization_proof(request, value);
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        value = http_request_header(request, names[i]);
        if (value)
            return value;
    }
    return http_request_query(request, "key");
}

/* --- requests --------------------------------------------------------------------------------- */

/* Only WebSockets are an upgrade to us; to a client that offers h2c we speak HTTP/1.1. */
static bool request_is_upgrade(struct http_request *request)
{
    const char *upgrade = http_request_header(request, "upgrade");

    return request->is_upgrade && upgrade && strcasecmp(upgrade, "websocket") == 0 &&
           strcmp(request->head->method, "GET") == 0;
}

static void gate_ask(struct http_request *request, struct broker_ask *ask, const char *path)
{
    const struct http_head *head = request->head;

    ask->method = head->method;
    ask->path = path;
    ask->is_upgrade = request_is_upgrade(request);
    ask->placeholder = request_placeholder(request);
    ask->body_bytes = head->content_length > 0 ? (uint64_t) head->content_length : 0;
    relay_begin(request, ask);
}

static void gate_host(struct http_request *request, enum broker_way way, const char *host,
                      uint16_t port, const char *path)
{
    struct broker_ask ask = {.way = way, .host = host, .port = port};

    gate_ask(request, &ask, path);
}

/* The Host header, read. Returns false when it is refused. */
static bool gate_read_host(struct http_request *request, struct url_host *ret_host)
{
    const char *host = http_request_header(request, "host");
    struct error error;

    if (host && url_host_parse(host, strlen(host), ret_host, &error) == 0)
        return true;
    (void) error_set(&error, ERR_INVALID, 0, "the request needs a Host header");
    gate_refuse(request, &error);
    return false;
}

/* Inside of something that was granted for one host: it must stay with that. */
static void gate_inside(struct http_request *request, const struct broker_session *session,
                        const char *path)
{
    struct url_host host;

    if (!gate_read_host(request, &host))
        return;
    if (strcmp(host.name, session->host) != 0 || (host.port && host.port != session->port)) {
        gate_violated(request, "host_mismatch", host.name, host.port,
                      "the Host header names another host than the connection is for");
        return;
    }
    gate_host(request, session->kind == SESSION_INTERCEPTED ? BROKER_REQUEST : BROKER_HTTP,
              session->host, session->port, path);
}

static void gate_mapped(struct http_request *request, const char *path)
{
    struct url_host host;

    if (!gate_read_host(request, &host))
        return;
    if (host.port && host.port != HTTP_PORT) {
        gate_violated(request, "host_mismatch", host.name, host.port,
                      "the Host header names another port than the connection is for");
        return;
    }
    gate_host(request, BROKER_HTTP, host.name, HTTP_PORT, path);
}

static void gate_absolute(struct http_request *request, const char *path)
{
    const struct url_span authority = request->target.authority;
    struct url_host target, host;
    struct error error;

    if (strncasecmp(request->head->target, "https:", 6) == 0) {
        (void) error_set(&error, ERR_INVALID, 0, "use CONNECT for https");
        gate_refuse(request, &error);
        return;
    }
    if (url_host_parse(authority.text, authority.length, &target, &error) < 0) {
        gate_refuse(request, &error);
        return;
    }
    if (http_request_header(request, "host")) {
        if (!gate_read_host(request, &host))
            return;
        if (strcmp(host.name, target.name) != 0 ||
            (host.port && host.port != (target.port ? target.port : HTTP_PORT))) {
            gate_violated(request, "host_mismatch", target.name, target.port,
                          "the Host header names another host than the request line");
            return;
        }
    }
    gate_host(request, BROKER_HTTP, pool_copy_text(&request->pool, target.name),
              target.port ? target.port : HTTP_PORT, path);
}

static void gate_route(struct http_request *request, const char *path)
{
    struct broker_ask ask = {.way = BROKER_ROUTE};
    const char *rest;
    struct error error;

    if (request_path_route(path, &request->pool, &ask.route, &rest, &error) < 0)
        gate_refuse(request, &error);
    else
        gate_ask(request, &ask, rest);
}

/* --- CONNECT ---------------------------------------------------------------------------------- */

static void gate_connect(struct http_request *request)
{
    const struct url_span authority = request->target.authority;
    struct broker_ask ask = {.way = BROKER_CONNECT};
    struct url_host target, host;
    struct error error;

    if (http_request_session(request)) {
        (void) error_set(&error, ERR_METHOD, 0, "CONNECT is for port %d", BROKER_PORT);
        gate_refuse(request, &error);
        return;
    }
    if (url_host_parse(authority.text, authority.length, &target, &error) < 0) {
        gate_refuse(request, &error);
        return;
    }
    if (http_request_header(request, "host")) {
        if (!gate_read_host(request, &host))
            return;
        if (strcmp(host.name, target.name) != 0) {
            gate_violated(request, "host_mismatch", target.name, target.port,
                          "the Host header names another host than the request line");
            return;
        }
    }
    ask.host = target.name;
    ask.port = target.port;
    connect_begin(request, &ask);
}

/* --- all of them ------------------------------------------------------------------------------ */

void gate_handle(struct http_request *request)
{
    const struct broker_session *session = http_request_session(request);
    const char *path;
    struct error error;

    if (request->target.form == URL_TARGET_AUTHORITY) {
        gate_connect(request);
        return;
    }
    if (strcmp(request->head->method, "TRACE") ==
        0) { /* it would read our proof out to the client */
        (void) error_set(&error, ERR_METHOD, 0, "TRACE is not passed on");
        gate_refuse(request, &error);
        return;
    }
    if (request_path_read(request->target.path, &request->pool, &path, &error) < 0) {
        gate_violated(request, "ambiguous_path", NULL, 0, error.message);
        return;
    }
    if (request->target.form == URL_TARGET_ABSOLUTE && !session)
        gate_absolute(request, path);
    else if (request->target.form == URL_TARGET_ABSOLUTE)
        gate_violated(request, "host_mismatch", NULL, 0,
                      "a proxy request is for port 8790, and not inside of a connection");
    else if (!session)
        gate_route(request, path);
    else if (session->kind == SESSION_MAPPED)
        gate_mapped(request, path);
    else
        gate_inside(request, session, path);
}
