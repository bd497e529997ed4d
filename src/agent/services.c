#include "agent/services.h"

#include <string.h>

#include "agent/agent.h"
#include "agent/api_error.h"
#include "agent/archive/file_archive.h"
#include "agent/backup/backup_service.h"
#include "agent/call.h"
#include "agent/code/code_context.h"
#include "agent/code/code_service.h"
#include "agent/command/execute.h"
#include "agent/command/run.h"
#include "agent/control/diagnostics.h"
#include "agent/control/quiesce.h"
#include "agent/control/way_out.h"
#include "agent/file/file_operations.h"
#include "agent/filewatch/file_watch.h"
#include "agent/git/git_checkout.h"
#include "agent/port/port_watch.h"
#include "agent/process/process_service.h"
#include "agent/process/process_set.h"
#include "agent/rpc/rpc.h"
#include "agent/session/session.h"
#include "agent/session/session_set.h"
#include "agent/terminal/terminal.h"
#include "agent/transport/call_http.h"
#include "agent/transport/call_websocket.h"
#include "agent/variables.h"
#include "base/memory.h"
#include "base/trace.h"
#include "json/json_write.h"
#include "json/trace_json.h"

#define BODY_MAX       ((size_t) 4096)
#define TRACE_BODY_MAX ((size_t) 256 * TRACE_AGENT)

/* What this agent can do beyond Cloudflare's API; names are never taken away or reused. */
static const char *const capabilities[] = {
    "execute",        "execute.stream", "execute.argv", "execute.stdin",
    "execute.base64", "activity",       "environment",  "run",
    "processes",      "ports",          "quiesce",      "sessions",
    "last-words",     "archive",        "file",         "way-out",
};

static void begin(struct json_writer *json, struct text *body)
{
    json_document_begin(json, body);
}

static void reply(struct http_request *request, struct json_writer *json, struct text *body)
{
    (void) json_document_end(json); /* the bodies here are short */
    agent_reply_json(request, body);
}

/* --- Cloudflare's --------------------------------------------------------------------------- */

static void greet(struct http_request *request)
{
    http_reply_text(request, 200, "text/plain; charset=utf-8", "burrow-agent " BURROW_VERSION "\n");
}

static void ping(struct call *call)
{
    AUTO(text) struct text body = TEXT_INIT(BODY_MAX);
    struct json_writer json;

    call_begin_success(&json, &body);
    json_add_text(&json, "status", "healthy");
    json_add_text(&json, "message", "healthy"); /* what Cloudflare's client looks for, in vain */
    call_finish_success(call, &json, &body);
}

static json_t *ping_result(json_t *reply)
{
    return json_incref(json_object_get(reply, "status"));
}

static void version(struct call *call)
{
    AUTO(text) struct text body = TEXT_INIT(BODY_MAX);
    struct json_writer json;

    call_begin_success(&json, &body);
    json_add_text(&json, "version", call->agent->version);
    call_finish_success(call, &json, &body);
}

static json_t *version_result(json_t *reply)
{
    return json_incref(json_object_get(reply, "version"));
}

/* Upstream has the route and answers it with an error; an empty list is what its client expects. */
static void commands(struct call *call)
{
    AUTO(text) struct text body = TEXT_INIT(BODY_MAX);
    struct json_writer json;

    call_begin_success(&json, &body);
    json_begin_array_at(&json, "availableCommands");
    json_end_array(&json);
    json_add_integer(&json, "count", 0);
    call_finish_success(call, &json, &body);
}

static json_t *commands_result(json_t *reply)
{
    return json_incref(json_object_get(reply, "availableCommands"));
}

/* --- the control plane's -------------------------------------------------------------------- */

static void handshake(struct http_request *request)
{
    AUTO(text) struct text body = TEXT_INIT(BODY_MAX);
    struct json_writer json;

    begin(&json, &body);
    json_add_integer(&json, "protocol", AGENT_PROTOCOL);
    json_add_text(&json, "version", BURROW_VERSION);
    json_begin_array_at(&json, "capabilities");
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
    /* Shells that wait for a command are no activity. */
    size_t code_execs, code_running;
    size_t idle = session_idle_count(agent) + terminal_idle_count(agent);
    size_t running = agent->execs.running_count - idle;
    struct json_writer json;

    code_count(agent, &code_execs, &code_running);
    running = running - code_execs + code_running; /* nor are interpreters that wait for code */
    begin(&json, &body);
    json_add_integer(&json, "running", (int64_t) running);
    json_add_integer(&json, "background", (int64_t) agent->execs.background_count);
    json_add_integer(&json, "processes", (int64_t) agent->processes->live_count);
    json_add_integer(&json, "started", (int64_t) agent->execs.started);
    json_add_integer(&json, "connections", (int64_t) http_server_connections(agent->server));
    json_add_integer(&json, "idleMs", running ? 0 : (int64_t) (now - agent->last_work));
    json_add_integer(&json, "uptimeMs", (int64_t) (now - agent->born));
    reply(request, &json, &body);
}

static void run_unless_quiet(struct http_request *request)
{
    if (!quiesce_refuses_request(request))
        run_handle(request);
}

/* What this agent did last, about one request or all. */
static void trace(struct http_request *request)
{
    AUTO(free) struct trace_entry *entries = mem_alloc_array(TRACE_AGENT, sizeof(*entries));
    AUTO(text) struct text body = TEXT_INIT(TRACE_BODY_MAX);
    const char *asked = http_request_query(request, "request");
    struct trace_context about = {.request = {""}};
    struct json_writer json;

    if (asked && id_is_valid(asked))
        memcpy(about.request.text, asked, ID_SIZE);
    begin(&json, &body);
    json_key(&json, "entries");
    trace_json_write(&json, entries, trace_read(&about, entries, TRACE_AGENT));
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

/* What is not an operation: documents of our own, and streams both ways. */
static const struct http_route plain_routes[] = {
    {"GET", "/", greet, .summary = "Name and version"},
    {"GET", "/burrow/handshake", handshake, .summary = "Protocol, version, capabilities"},
    {"GET", "/burrow/activity", activity, .summary = "What is going on"},
    {"GET", "/burrow/trace", trace, .summary = "What it did last"},
    {"PUT", "/burrow/environment", variables_handle,
     .summary = "Change the environment of later commands", .body_limit = VARIABLES_BODY_MAX},
    {"PUT", "/burrow/way-out", way_out_handle,
     .summary = "Names that lead to the egress broker, and whom to trust there",
     .body_limit = WAY_OUT_BODY_MAX},
    {"GET", "/rpc", rpc_handle, .summary = "Every operation by capnweb, as a WebSocket"},
    {"GET", "/burrow/run", run_unless_quiet, .summary = "One interactive command, as a WebSocket"},
    {"GET", "/ws", call_websocket_handle, .summary = "Many requests over one WebSocket"},
    {"GET", "/api/ws", call_websocket_handle, .summary = "The same"},
    {"GET", "/ws/pty", terminal_handle, .summary = "The terminal of a session"},
    {"GET", "/burrow/archive", file_archive_get, .summary = "A folder as a tar archive",
     .reply_type = "application/x-tar"},
    {"PUT", "/burrow/archive", file_archive_put, .summary = "A tar archive into a folder",
     .body_limit = HTTP_BODY_UNLIMITED},
    {"GET", "/burrow/file", file_download, .summary = "A file as it is, or a range of it",
     .reply_type = "application/octet-stream"},
    {"PUT", "/burrow/file", file_upload, .summary = "The body becomes a file",
     .body_limit = HTTP_BODY_UNLIMITED},
    {"OPTIONS", "/{path...}", allow, .summary = "For browsers"},
    {"GET", "/{path...}", not_found, .summary = "Unknown routes"},
    {"POST", "/{path...}", not_found, .summary = "Unknown routes"},
    {"PUT", "/{path...}", not_found, .summary = "Unknown routes"},
    {"DELETE", "/{path...}", not_found, .summary = "Unknown routes"},
};

/* --- operations ------------------------------------------------------------------------------ */

static const struct operation basic_rows[] = {
    {.method = "GET",
     .path = "/api/ping",
     .rpc = "utils.ping",
     .run = ping,
     .rpc_result = ping_result,
     .name = "utils.ping",
     .summary = "Whether the agent answers"},
    {.method = "GET",
     .path = "/api/health",
     .run = ping,
     .name = "utils.ping",
     .summary = "The same"},
    {.method = "GET",
     .path = "/api/version",
     .rpc = "utils.getVersion",
     .run = version,
     .rpc_result = version_result,
     .name = "utils.version",
     .summary = "The version clients compare with theirs"},
    {.method = "GET",
     .path = "/api/commands",
     .rpc = "utils.getCommands",
     .run = commands,
     .rpc_result = commands_result,
     .name = "utils.commands",
     .summary = "Commands known to be there: none is"},
};

static const struct operation_table basic_operations = {basic_rows, ARRAY_COUNT(basic_rows)};

static const struct operation_table *const tables[] = {
    &basic_operations,       &backup_operations, &execute_operations,    &session_operations,
    &code_operations,        &file_operations,   &file_watch_operations, &git_operations,
    &process_operations,     &port_operations,   &quiesce_operations,    &diagnostics_operations,
    &rpc_tunnels_operations,
};

struct services {
    struct http_route *routes;           /* owned: of the operations, then the plain ones */
    const struct operation **operations; /* owned: those with a path, in the order of `routes` */
    size_t count;                        /* of both */
};

static const struct operation *operation_of(const struct services *services,
                                            const struct http_route *route)
{
    size_t place = (size_t) (route - services->routes);

    return place < services->count ? services->operations[place] : NULL;
}

static void handle_operation(struct http_request *request)
{
    const struct agent *agent = request->context;

    call_http_handle(request, operation_of(agent->services, request->match.route));
}

const struct operation *services_match(const struct agent *agent, const char *method,
                                       struct url_span path, struct pool *pool,
                                       struct http_match *ret_match, struct error *err)
{
    const struct operation *operation;
    const char *allowed;

    if (http_router_match(agent->router, method, path, pool, ret_match, &allowed, err) < 0)
        return NULL;
    operation = operation_of(agent->services, ret_match->route);
    if (!operation)
        (void) error_set(err, ERR_NOT_FOUND, 0, "no such route");
    return operation;
}

const struct operation *services_find_rpc(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(tables); i++) {
        for (size_t j = 0; j < tables[i]->count; j++) {
            const struct operation *row = &tables[i]->rows[j];

            if (row->rpc && strcmp(row->rpc, name) == 0)
                return row;
        }
    }
    return NULL;
}

static void add_routes(struct services *services, const struct operation_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct operation *row = &table->rows[i];

        if (!row->path)
            continue;
        services->operations[services->count] = row;
        services->routes[services->count++] = (struct http_route){
            .method = row->method,
            .pattern = row->path,
            .handle = handle_operation,
            .summary = row->summary,
            .body_limit = row->body_limit ? row->body_limit : CALL_BODY_DEFAULT,
            .reply_type = row->has_events ? "text/event-stream" : NULL,
        };
    }
}

void services_mount(struct http_mount *ret_mount, struct agent *agent)
{
    struct services *services = mem_alloc(sizeof(*services));
    size_t room = ARRAY_COUNT(plain_routes);

    for (size_t i = 0; i < ARRAY_COUNT(tables); i++)
        room += tables[i]->count;
    services->routes = mem_alloc_array(room, sizeof(*services->routes));
    services->operations = mem_alloc_array(room, sizeof(struct operation *));
    for (size_t i = 0; i < ARRAY_COUNT(tables); i++)
        add_routes(services, tables[i]);
    memcpy(&services->routes[services->count], plain_routes, sizeof(plain_routes));
    agent->services = services;
    *ret_mount = (struct http_mount){
        .name = "container",
        .routes = services->routes,
        .route_count = services->count + ARRAY_COUNT(plain_routes),
        .context = agent,
        .encode_error = api_error_encode,
    };
}
