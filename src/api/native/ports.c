#include <string.h>

#include "api/agent/agent_call.h"
#include "api/http/pending.h"
#include "api/native/body.h"
#include "api/native/handlers.h"
#include "api/preview/preview.h"
#include "base/auto.h"
#include "base/memory.h"
#include "base/number.h"
#include "domain/port/port.h"
#include "domain/sandbox/sandboxes.h"

#define URL_MAX   512
#define LISTENING "/burrow/ports"

/* --- shown ----------------------------------------------------------------------------------- */

/* Who may only look is not told what opens it: the application behind takes any request. */
static void write_port(struct json_writer *json, const struct api *api, const struct port *port,
                       bool with_token)
{
    AUTO(text) struct text url = TEXT_INIT(URL_MAX);

    json_begin_object(json);
    json_add_integer(json, "port", port->number);
    json_add_text(json, "name", port->name);
    if (with_token)
        json_add_text(json, "token", port->token);
    json_add_boolean(json, "wake", port->wakes);
    if (with_token && api->preview) {
        preview_url(api->preview, port, &url);
        json_add_text(json, "url", text_string(&url));
    }
    native_add_time(json, "createdAt", port->created_ms);
    native_add_time(json, "expiresAt", port->expires_ms);
    json_end_object(json);
}

struct ports_listing {
    struct json_writer *json;
    const struct api *api;
    bool with_tokens;
};

static void ports_list_one(void *context, struct port *port)
{
    struct ports_listing *listing = context;

    write_port(listing->json, listing->api, port, listing->with_tokens);
}

/* `listening` is the agent's list, or NULL: the sandbox does not run. */
static void answer_list(struct http_request *request, const struct id *sandbox, json_t *listening)
{
    AUTO(native_answer) struct native_answer answer;
    struct ports_listing listing = {.json = &answer.json,
                                    .api = api_of(request),
                                    .with_tokens = caller_may_enter(request_caller(request))};

    native_answer_begin_list(&answer, "ports");
    port_each(api_of(request)->domain, sandbox, ports_list_one, &listing);
    json_end_array(&answer.json);
    if (listening) {
        json_key(&answer.json, "listening");
        json_put_value(&answer.json, listening);
    }
    native_answer_send(&answer, request, 200);
}

static void listening_told(struct visit *visit, const struct agent_reply *reply,
                           const struct error *failure)
{
    json_t *list = failure || !reply->json ? NULL : json_object_get(reply->json, "ports");

    answer_list(visit->request, &visit->sandbox->id, list);
}

static void visit_ready(struct visit *visit)
{
    const struct agent_request request = {.method = "GET", .path = LISTENING};

    agent_call(visit, &request, listening_told);
}

void native_list_ports(struct http_request *request)
{
    struct sandbox *sandbox = native_find_sandbox(request);

    if (!sandbox)
        return;
    if (sandbox->status == SANDBOX_RUNNING)
        visit_begin(request, sandbox->id.text, VISIT_READ | VISIT_NO_WAKE, visit_ready);
    else
        answer_list(request, &sandbox->id, NULL);
}

/* --- exposed --------------------------------------------------------------------------------- */

/* Goes on when the client leaves: what an old token opened must be cut. */
struct exposing {
    struct pending *pending;
    struct api *api;
    bool has_other_token; /* than it had before */
};

static void exposed(void *context, const struct error *failure, struct port *port)
{
    AUTO(free) struct exposing *exposing = context;
    struct http_request *request;
    AUTO(native_answer) struct native_answer answer;

    native_answer_begin_value(&answer);
    if (!failure && exposing->has_other_token && exposing->api->preview)
        preview_forget(exposing->api->preview, &port->sandbox, port->number);
    request = pending_take_good(exposing->pending, failure);
    if (!request)
        return;
    write_port(&answer.json, api_of(request), port, true);
    native_answer_send(&answer, request, 201);
}

static int read_port(struct http_request *request, const struct json_place *body, struct error *err)
{
    static const char *const known[] = {"port", "name", "token", "wake", "expiresIn"};
    struct port_spec spec = {.number = 0};
    struct exposing *exposing;
    struct sandbox *sandbox;
    const struct port *port;
    int64_t number;

    if (json_known_fields(body, known, ARRAY_COUNT(known), err) < 0 ||
        json_field_integer(body, "port", JSON_REQUIRED, 1, UINT16_MAX, &number, err) < 0 ||
        json_field_text(body, "name", JSON_OPTIONAL, PORT_NAME_MAX, &spec.name, err) < 0 ||
        json_field_text(body, "token", JSON_OPTIONAL, PORT_TOKEN_MAX, &spec.token, err) < 0 ||
        json_field_boolean(body, "wake", JSON_OPTIONAL, &spec.wakes, err) < 0 ||
        native_read_expiry(request, body, "expiresIn", &spec.expires_ms, err) < 0)
        return -1;
    spec.number = (uint16_t) number;
    sandbox = sandbox_find(api_of(request)->domain, request_caller(request),
                           http_request_parameter(request, "id"), err);
    if (!sandbox)
        return -1;
    port = port_find(api_of(request)->domain, &sandbox->id, spec.number);
    exposing = mem_alloc(sizeof(*exposing));
    *exposing = (struct exposing){
        .pending = pending_new(request),
        .api = api_of(request),
        .has_other_token = port && spec.token && strcmp(port->token, spec.token) != 0,
    };
    port_expose(exposing->api->domain, request_caller(request), sandbox, &spec, exposed, exposing);
    return 0;
}

void native_expose_port(struct http_request *request)
{
    native_take(request, read_port);
}

/* --- closed ---------------------------------------------------------------------------------- */

/* Goes on when the client leaves: what is open to the port must be cut. */
struct ports_closing {
    struct pending *pending;
    struct api *api;
};

static void ports_closed(void *context, const struct error *failure, struct port *port)
{
    AUTO(free) struct ports_closing *closing = context;

    if (!failure && closing->api->preview)
        preview_forget(closing->api->preview, &port->sandbox, port->number);
    pending_end(closing->pending, failure);
}

void native_close_port(struct http_request *request)
{
    const char *text = http_request_parameter(request, "port");
    struct sandbox *sandbox = native_find_sandbox(request);
    struct ports_closing *closing;
    int64_t number = 0;

    if (!sandbox)
        return;
    if (number_parse(text, 1, UINT16_MAX, &number) < 0) {
        api_fail(request, ERR_INVALID, "'%s' is not a port from 1 to 65535", text);
        return;
    }
    closing = mem_alloc(sizeof(*closing));
    *closing = (struct ports_closing){.pending = pending_new(request), .api = api_of(request)};
    port_unexpose(closing->api->domain, request_caller(request), sandbox, (uint16_t) number,
                  ports_closed, closing);
}
