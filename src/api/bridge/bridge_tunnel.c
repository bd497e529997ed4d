/* /v1/sandbox/{id}/tunnel/{port}: what Cloudflare does with a tunnel we do with a preview: a URL
 * that leads to one port of one sandbox, for whoever has it. */
#include <stdio.h>
#include <string.h>

#include "api/bridge/bridge_internal.h"
#include "api/http/pending.h"
#include "api/preview/preview.h"
#include "base/auto.h"
#include "base/memory.h"
#include "base/number.h"
#include "domain/port/port.h"
#include "domain/sandbox/sandboxes.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define ANSWER_MAX ((size_t) 8 * 1024)
#define FAILED     "tunnel_error"

/* 0: that was answered. */
static uint16_t port_of(struct http_request *request)
{
    int64_t number = 0;

    if (number_parse(http_request_parameter(request, "port"), PORT_FIRST, UINT16_MAX, &number) <
            0 ||
        number == PORT_RESERVED) {
        api_fail(request, ERR_INVALID, "Invalid port");
        return 0;
    }
    return (uint16_t) number;
}

/* --- opening --------------------------------------------------------------------------------- */

static void write_answer(struct json_writer *json, const struct port *port, const char *url)
{
    char created[CLOCK_TEXT_SIZE];
    struct url_host host = {.kind = URL_HOST_NONE};
    struct url parts;
    char id[ID_SIZE + NUMBER_TEXT_SIZE];

    if (url_parse(url, strlen(url), &parts, NULL) == 0)
        url_host_of(&parts, &host);
    clock_format(port->created_ms, created);
    (void) snprintf(id, sizeof(id), "%u-%s", port->number, port->sandbox.text);
    json_begin_object(json);
    json_add_text(json, "id", id);
    json_add_integer(json, "port", port->number);
    json_add_text(json, "url", url);
    json_add_text(json, "hostname", host.name);
    json_add_text(json, "createdAt", created);
    if (port->name)
        json_add_text(json, "name", port->name);
    json_end_object(json);
}

static void opened(void *context, const struct error *failure, struct port *port)
{
    struct http_request *request = pending_take(context);
    AUTO(text) struct text url = TEXT_INIT(URL_LENGTH_MAX);
    AUTO(text) struct text body = TEXT_INIT(ANSWER_MAX);
    struct json_writer json;

    if (!request)
        return;
    if (failure) {
        bridge_error_reply(request, failure->code, FAILED, "tunnel failed: %s", failure->message);
        return;
    }
    preview_url(api_of(request)->preview, port, &url);
    json_writer_init_text(&json, &body);
    write_answer(&json, port, text_string(&url));
    (void) json_writer_finish(&json); /* a URL and five short fields have room */
    http_reply(request, 200, BRIDGE_JSON, text_string(&body), body.length);
}

static bool bridge_tunnel_is_blank(const char *bytes, size_t length)
{
    return strspn(bytes, " \t\r\n") >= length;
}

/* The name that is wished for, in the pool, or "". NULL: that was answered. */
static const char *bridge_tunnel_read_name(struct http_request *request, const char *bytes,
                                           size_t length)
{
    AUTO(json)
    json_t *body = bridge_tunnel_is_blank(bytes, length) ? json_object()
                                                         : json_read(bytes, length, NULL, NULL);
    json_t *name = json_object_get(body, "name");

    if (!body)
        api_fail(request, ERR_INVALID, "Invalid JSON body");
    else if (!name)
        return "";
    else if (!json_is_string(name))
        api_fail(request, ERR_INVALID, "name must be a string when provided");
    else if (!bridge_name_is_tunnel(json_string_value(name)))
        api_fail(request, ERR_INVALID,
                 "Tunnel name must be a DNS label: 1 to %zu lowercase letters, digits and inner "
                 "hyphens",
                 BRIDGE_TUNNEL_MAX);
    else
        return pool_copy_text(&request->pool, json_string_value(name));
    return NULL;
}

static void bridge_tunnel_got_body(struct http_request *request, const char *bytes, size_t length)
{
    struct visit *visit = visit_of(request);
    const char *name = bridge_tunnel_read_name(request, bytes, length);
    struct port_spec spec = {.number = port_of(request), .name = name && *name ? name : NULL};

    if (!name)
        return;
    if (!visit->api->preview)
        bridge_error_reply(request, ERR_UNAVAILABLE, FAILED,
                           "tunnel failed: this server has no preview URLs");
    else
        port_expose(visit->api->domain, request_caller(request), visit->sandbox, &spec, opened,
                    pending_new(request));
}

static void bridge_tunnel_ready(struct visit *visit)
{
    if (port_of(visit->request))
        http_request_collect(visit->request, bridge_tunnel_got_body);
}

void bridge_open_tunnel(struct http_request *request)
{
    bridge_visit(request, 0, bridge_tunnel_ready);
}

/* --- closing --------------------------------------------------------------------------------- */

/* The client may leave, what is open must be cut all the same. */
struct bridge_tunnel_closing {
    struct pending *pending; /* owned */
    struct preview *preview; /* borrowed, may be NULL */
    struct id sandbox;
    uint16_t number;
};

static void bridge_tunnel_closed(void *context, const struct error *failure, struct port *port)
{
    AUTO(free) struct bridge_tunnel_closing *closing = context;
    struct http_request *request = pending_take(closing->pending);

    (void) port;
    if (!failure && closing->preview)
        preview_forget(closing->preview, &closing->sandbox, closing->number);
    if (!request)
        return;
    if (failure && failure->code != ERR_NOT_FOUND)
        bridge_error_reply(request, failure->code, FAILED, "tunnel failed: %s", failure->message);
    else
        http_reply(request, 204, NULL, NULL, 0);
}

static void close_tunnel(struct http_request *request, struct sandbox *sandbox, uint16_t number)
{
    struct api *api = api_of(request);
    struct bridge_tunnel_closing *closing = mem_alloc(sizeof(*closing));

    *closing = (struct bridge_tunnel_closing){
        .pending = pending_new(request),
        .preview = api->preview,
        .sandbox = sandbox->id,
        .number = number,
    };
    port_unexpose(api->domain, request_caller(request), sandbox, number, bridge_tunnel_closed,
                  closing);
}

/* No sandbox is made, or woken, to close what it cannot have. */
void bridge_close_tunnel(struct http_request *request)
{
    uint16_t number = port_of(request);
    struct error error = ERROR_INIT;
    struct sandbox *sandbox;

    if (!number)
        return;
    sandbox = sandbox_find(api_of(request)->domain, request_caller(request),
                           http_request_parameter(request, "id"), &error);
    if (sandbox)
        close_tunnel(request, sandbox, number);
    else if (error.code == ERR_NOT_FOUND)
        http_reply(request, 204, NULL, NULL, 0);
    else
        http_reply_error(request, &error);
}
