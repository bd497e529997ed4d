#include "api/agentpod/agentpod.h"

#include "api/access/access.h"
#include "api/agentpod/agentpod_internal.h"
#include "api/agentpod/agentpod_opencode.h"
#include "api/agentpod/agentpod_task.h"
#include "api/http/pending.h"
#include "api/terminal/terminal_relay.h"
#include "domain/sandbox/sandboxes.h"
#include "domain/workspace/workspace.h"

/* --- requests and answers -------------------------------------------------------------------- */

void agentpod_encode_error(const struct http_request *request, const struct error *error,
                           struct text *body, const char **ret_content_type)
{
    struct json_writer json;

    (void) request;
    json_document_begin(&json, body);
    json_add_text(&json, "error", error->message);
    json_add_text(&json, "code", error_code_text(error->code));
    (void) json_document_end(&json); /* a message is far smaller than the body may be */
    *ret_content_type = "application/json";
}

void agentpod_reply(struct http_request *request, struct json_writer *json, struct text *body)
{
    if (json_document_end(json) == 0)
        http_reply(request, 200, "application/json", text_string(body), body->length);
    else
        api_fail(request, ERR_INTERNAL, "the answer does not fit");
}

struct sandbox *agentpod_find(struct http_request *request)
{
    struct error err = ERROR_INIT;
    struct sandbox *sandbox = sandbox_find(api_of(request)->domain, request_caller(request),
                                           http_request_parameter(request, "id"), &err);

    if (!sandbox)
        http_reply_error(request, &err);
    return sandbox;
}

/* --- looking --------------------------------------------------------------------------------- */

/* The words this dialect has; others are told as they are. */
static const char *status_text(enum sandbox_status status)
{
    if (sandbox_status_is_asleep(status))
        return "sleeping";
    return status == SANDBOX_WAKING ? "starting" : sandbox_status_text(status);
}

static void agentpod_get(struct http_request *request)
{
    AUTO(text) struct text body = TEXT_INIT(AGENTPOD_REPLY_MAX);
    const struct sandbox *sandbox = agentpod_find(request);
    struct workspace_state mirror;
    struct json_writer json;

    if (!sandbox)
        return;
    json_document_begin(&json, &body);
    json_add_text(&json, "sandboxId", http_request_parameter(request, "id"));
    json_add_text(&json, "status", status_text(sandbox->status));
    /* The disk outlives everything but an error and the end, its mirror also an error. */
    json_add_boolean(&json, "hasWorkspace",
                     sandbox->status != SANDBOX_ERROR ||
                         workspace_find(api_of(request)->domain, &sandbox->id, &mirror));
    json_add_text(&json, "provider", "cloudflare"); /* what clients of this dialect know us as */
    agentpod_reply(request, &json, &body);
}

/* --- destroying ------------------------------------------------------------------------------ */

static void agentpod_destroyed(void *context, const struct error *failure, struct sandbox *sandbox)
{
    struct http_request *request = pending_take_good(context, failure);
    AUTO(text) struct text body = TEXT_INIT(AGENTPOD_REPLY_MAX);
    struct json_writer json;

    (void) sandbox;
    if (!request)
        return;
    json_document_begin(&json, &body);
    json_add_boolean(&json, "success", true);
    json_add_text(&json, "deleted", http_request_parameter(request, "id"));
    agentpod_reply(request, &json, &body);
}

static void agentpod_destroy(struct http_request *request)
{
    struct sandbox *sandbox = agentpod_find(request);

    if (sandbox)
        sandbox_destroy(api_of(request)->domain, request_caller(request), sandbox,
                        agentpod_destroyed, pending_new(request));
}

/* --- the rest -------------------------------------------------------------------------------- */

static void agentpod_not_found(struct http_request *request)
{
    api_fail(request, ERR_NOT_FOUND, "Not Found");
}

/* --- the table ------------------------------------------------------------------------------- */

#define ID        "/sandbox/{id}"
#define OPENCODE  ID "/opencode/{path...}"
#define EXECUTION "/workflow/{executionId}"
#define AGENTS    "/api/v2/agents"
#define PASSED    "OpenCode's own API, in the sandbox"
#define PASS_MAX  ((uint64_t) 64 * 1024 * 1024)

static const struct http_route routes[] = {
    {"POST", "/sandbox", agentpod_create, "Make a sandbox, with a repository and configuration",
     .access = ACCESS_WRITE, .body_limit = AGENTPOD_BODY_LIMIT},
    {"GET", ID, agentpod_get, "Status of a sandbox", .access = ACCESS_READ},
    {"DELETE", ID, agentpod_destroy, "Remove a sandbox and its disk", .access = ACCESS_WRITE},
    {"POST", ID "/wake", agentpod_wake, "Wake a sandbox and write its configuration again",
     .access = ACCESS_ENTER, .body_limit = AGENTPOD_BODY_LIMIT},
    {"GET", "/api/v2/sandboxes/{id}/terminal", terminal_relay,
     "A terminal in JSON frames, as a WebSocket", .access = ACCESS_ENTER},
    {"POST", ID "/message", agentpod_message, "Ask the agent of a sandbox", .access = ACCESS_ENTER,
     .body_limit = AGENTPOD_BODY_LIMIT},
    {"POST", ID "/sync", agentpod_sync, "Mirror the workspace in the object store",
     .access = ACCESS_ENTER},
    {"POST", ID "/opencode/session/{session}/message", agentpod_message_opencode,
     "Ask the agent of a sandbox, in OpenCode's words", .access = ACCESS_ENTER,
     .body_limit = AGENTPOD_BODY_LIMIT},
    {"GET", ID "/opencode", agentpod_opencode, PASSED, .access = ACCESS_ENTER},
    {"GET", OPENCODE, agentpod_opencode, PASSED, .access = ACCESS_ENTER},
    {"POST", OPENCODE, agentpod_opencode, PASSED, .access = ACCESS_ENTER, .body_limit = PASS_MAX},
    {"PUT", OPENCODE, agentpod_opencode, PASSED, .access = ACCESS_ENTER, .body_limit = PASS_MAX},
    {"PATCH", OPENCODE, agentpod_opencode, PASSED, .access = ACCESS_ENTER, .body_limit = PASS_MAX},
    {"DELETE", OPENCODE, agentpod_opencode, PASSED, .access = ACCESS_ENTER, .body_limit = PASS_MAX},
    {"POST", "/workflow/execute", agentpod_workflow_execute, "Run a workflow",
     .access = ACCESS_WRITE, .body_limit = AGENTPOD_BODY_LIMIT},
    {"POST", "/workflow/validate", agentpod_workflow_validate, "What is wrong with a workflow",
     .access = ACCESS_WRITE, .body_limit = AGENTPOD_BODY_LIMIT},
    {"GET", EXECUTION "/status", agentpod_workflow_status, "What an execution has done",
     .access = ACCESS_READ},
    {"POST", EXECUTION "/pause", agentpod_workflow_pause, "Begin nothing more of it",
     .access = ACCESS_WRITE},
    {"POST", EXECUTION "/resume", agentpod_workflow_resume,
     "Go on, and approve what waits for that", .access = ACCESS_WRITE},
    {"POST", EXECUTION "/terminate", agentpod_workflow_terminate, "End it", .access = ACCESS_WRITE},
    {"POST", AGENTS "/task", agentpod_task_create, "Give an agent a task, and wait for its end",
     .access = ACCESS_WRITE, .body_limit = AGENTPOD_BODY_LIMIT},
    {"POST", AGENTS "/task/stream", agentpod_task_stream, "The same, told as it goes on",
     .access = ACCESS_WRITE, .body_limit = AGENTPOD_BODY_LIMIT, .reply_type = "text/event-stream"},
    {"GET", AGENTS "/task/{task}", agentpod_task_get, "A task", .access = ACCESS_READ},
    {"POST", AGENTS "/task/{task}/cancel", agentpod_task_cancel, "Cancel a task",
     .access = ACCESS_WRITE},
    {"GET", AGENTS "/tasks", agentpod_tasks_list, "Tasks, newest first", .access = ACCESS_READ},
    {"POST", AGENTS "/team", agentpod_team_create, "Several agents at once, waited for",
     .access = ACCESS_WRITE, .body_limit = AGENTPOD_BODY_LIMIT},
    {"GET", AGENTS "/team/{team}", agentpod_team_get, "A team", .access = ACCESS_READ},
    {"POST", AGENTS "/team/{team}/cancel", agentpod_team_cancel, "Cancel a team",
     .access = ACCESS_WRITE},
    {"GET", AGENTS "/providers", agentpod_providers_list, "Where sandboxes run",
     .access = ACCESS_SIGNED_IN},
    {"POST", AGENTS "/sandbox/{id}/sync", agentpod_agents_sync,
     "Mirror the workspace in the object store", .access = ACCESS_ENTER},
    {"GET", ID "/{rest...}", agentpod_not_found, "Unknown routes", .access = ACCESS_SIGNED_IN},
    {"POST", ID "/{rest...}", agentpod_not_found, "Unknown routes", .access = ACCESS_SIGNED_IN},
    {"PUT", ID "/{rest...}", agentpod_not_found, "Unknown routes", .access = ACCESS_SIGNED_IN},
    {"DELETE", ID "/{rest...}", agentpod_not_found, "Unknown routes", .access = ACCESS_SIGNED_IN},
};

struct http_mount agentpod_mount(struct api *api)
{
    return (struct http_mount){
        .name = "agentpod",
        .routes = routes,
        .route_count = ARRAY_COUNT(routes),
        .context = api,
        .encode_error = agentpod_encode_error,
    };
}
