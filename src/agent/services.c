#include "agent/services.h"

#include "agent/agent.h"
#include "agent/api_error.h"
#include "agent/execute.h"
#include "agent/execute_request.h"
#include "agent/run.h"
#include "agent/variables.h"
#include "json/json_write.h"

#define BODY_MAX ((size_t) 4096)

/* What this agent can do beyond Cloudflare's API; names are never taken away or reused. */
static const char *const capabilities[] = {
    "execute",        "execute.stream", "execute.argv", "execute.stdin",
    "execute.base64", "activity",       "environment",  "run",
};

static void begin(struct json_writer *json, struct text *body)
{
    json_writer_init_text(json, body);
    json_begin_object(json);
}

static void reply(struct http_request *request, struct json_writer *json, struct text *body)
{
    json_end_object(json);
    (void) json_writer_finish(json); /* the bodies here are short */
    agent_reply_json(request, body);
}

static void add_timestamp(struct json_writer *json, struct http_request *request)
{
    const struct agent *agent = request->context;
    char time[CLOCK_TEXT_SIZE];

    clock_format(clock_wall_ms(agent->clock), time);
    json_add_text(json, "timestamp", time);
}

/* --- Cloudflare's --------------------------------------------------------------------------- */

static void greet(struct http_request *request)
{
    http_reply_text(request, 200, "text/plain; charset=utf-8", "burrow-agent " BURROW_VERSION "\n");
}

static void ping(struct http_request *request)
{
    AUTO(text) struct text body = TEXT_INIT(BODY_MAX);
    struct json_writer json;

    begin(&json, &body);
    json_add_boolean(&json, "success", true);
    json_add_text(&json, "status", "healthy");
    add_timestamp(&json, request);
    reply(request, &json, &body);
}

static void version(struct http_request *request)
{
    const struct agent *agent = request->context;
    AUTO(text) struct text body = TEXT_INIT(BODY_MAX);
    struct json_writer json;

    begin(&json, &body);
    json_add_boolean(&json, "success", true);
    json_add_text(&json, "version", agent->version);
    add_timestamp(&json, request);
    reply(request, &json, &body);
}

static void list_sessions(struct http_request *request)
{
    AUTO(text) struct text body = TEXT_INIT(BODY_MAX);
    struct json_writer json;

    begin(&json, &body);
    json_add_boolean(&json, "success", true);
    json_key(&json, "data");
    json_begin_array(&json);
    json_end_array(&json);
    add_timestamp(&json, request);
    reply(request, &json, &body);
}

static void refuse_sessions(struct http_request *request)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;

    (void) api_error_field(
        &error, "sessionId",
        "this agent runs commands without a session only: use " EXECUTE_NO_SESSION);
    api_error_reply(request, &error);
}

/* --- the control plane's -------------------------------------------------------------------- */

static void handshake(struct http_request *request)
{
    AUTO(text) struct text body = TEXT_INIT(BODY_MAX);
    struct json_writer json;

    begin(&json, &body);
    json_add_integer(&json, "protocol", AGENT_PROTOCOL);
    json_add_text(&json, "version", BURROW_VERSION);
    json_key(&json, "capabilities");
    json_begin_array(&json);
    for (size_t i = 0; i < ARRAY_COUNT(capabilities); i++)
        json_put_text(&json, capabilities[i]);
    json_end_array(&json);
    reply(request, &json, &body);
}

static void activity(struct http_request *request)
{
    struct agent *agent = request->context;
    AUTO(text) struct text body = TEXT_INIT(BODY_MAX);
    uint64_t now = loop_now(&agent->loop);
    struct json_writer json;

    begin(&json, &body);
    json_add_integer(&json, "running", (int64_t) agent->execs.running_count);
    json_add_integer(&json, "background", (int64_t) agent->execs.background_count);
    json_add_integer(&json, "started", (int64_t) agent->execs.started);
    json_add_integer(&json, "connections", (int64_t) http_server_connections(agent->server));
    json_add_integer(&json, "idleMs",
                     agent->execs.running_count ? 0 : (int64_t) (now - agent->last_work));
    json_add_integer(&json, "uptimeMs", (int64_t) (now - agent->born));
    reply(request, &json, &body);
}

/* --- everything else ------------------------------------------------------------------------ */

static void allow(struct http_request *request)
{
    http_reply(request, 204, NULL, "", 0); /* the headers were added to every reply */
}

static void not_found(struct http_request *request)
{
    struct error error = ERROR_INIT;

    (void) error_set(&error, ERR_NOT_FOUND, 0, "no such route");
    http_reply_error(request, &error);
}

static const struct http_route routes[] = {
    {"GET", "/", greet, .summary = "Name and version"},
    {"GET", "/api/ping", ping, .summary = "Whether the agent answers"},
    {"GET", "/api/health", ping, .summary = "The same"},
    {"GET", "/api/version", version, .summary = "The version clients compare with theirs"},
    {"POST", "/api/execute", execute_handle, .summary = "Run a command and wait",
     .body_limit = EXECUTE_BODY_MAX},
    {"POST", "/api/execute/stream", execute_handle_stream, .summary = "Run a command, as events",
     .body_limit = EXECUTE_BODY_MAX, .reply_type = "text/event-stream"},
    {"GET", "/api/session/list", list_sessions, .summary = "The sessions"},
    {"POST", "/api/session/create", refuse_sessions, .summary = "Create a session"},
    {"POST", "/api/session/delete", refuse_sessions, .summary = "Delete a session"},
    {"GET", "/burrow/handshake", handshake, .summary = "Protocol, version, capabilities"},
    {"GET", "/burrow/activity", activity, .summary = "What is going on"},
    {"PUT", "/burrow/environment", variables_handle,
     .summary = "Change the environment of later commands", .body_limit = VARIABLES_BODY_MAX},
    {"GET", "/burrow/run", run_handle, .summary = "One interactive command, as a WebSocket"},
    {"OPTIONS", "/{path...}", allow, .summary = "For browsers"},
    {"GET", "/{path...}", not_found, .summary = "Unknown routes"},
    {"POST", "/{path...}", not_found, .summary = "Unknown routes"},
    {"PUT", "/{path...}", not_found, .summary = "Unknown routes"},
    {"DELETE", "/{path...}", not_found, .summary = "Unknown routes"},
};

void services_mount(struct http_mount *ret_mount, struct agent *agent)
{
    *ret_mount = (struct http_mount){
        .name = "container",
        .routes = routes,
        .route_count = ARRAY_COUNT(routes),
        .context = agent,
        .encode_error = api_error_encode,
    };
}
