/* What runs inside a sandbox: commands, sessions, processes, code, git. All of it is the agent's
 * own work; here are the fields of this dialect and where they go. */
#include "api/agent/visit.h"
#include "api/native/forward.h"
#include "api/native/handlers.h"
#include "base/auto.h"

/* The agent's word for: no session, a process of its own. */
#define NO_SESSION "__DISABLE_SESSION__"

#define HANDLER(name, row)                                                                         \
    void name(struct http_request *request)                                                        \
    {                                                                                              \
        forward(request, &(row));                                                                  \
    }

/* --- commands -------------------------------------------------------------------------------- */

static const struct forward_field execute_fields[] = {
    {.name = "command"},
    {.name = "argv"},
    {.name = "cwd"},
    {.name = "env"},
    {.name = "user"},
    {.name = "timeout", .agent_name = "timeoutMs", .kind = FORWARD_DURATION},
    {.name = "stdin"},
    {.name = "stdinEncoding"},
    {.name = "encoding"},
    {.name = "sessionId"},
    {.name = "stream", .kind = FORWARD_OMIT},
};
static const struct forward execute = {.path = "/api/execute",
                                       .stream_path = "/api/execute/stream",
                                       .session = NO_SESSION,
                                       .is_plain = true,
                                       FORWARD_FIELDS(execute_fields)};
HANDLER(native_execute, execute)

/* --- sessions -------------------------------------------------------------------------------- */

static const struct forward list_sessions = {
    .method = "GET", .path = "/api/session/list", .visit = VISIT_READ};
HANDLER(native_list_sessions, list_sessions)

static const struct forward_field session_fields[] = {
    {.name = "id"},
    {.name = "cwd"},
    {.name = "env"},
    {.name = "commandTimeout", .agent_name = "commandTimeoutMs", .kind = FORWARD_DURATION},
};
static const struct forward create_session = {.path = "/api/session/create",
                                              FORWARD_FIELDS(session_fields)};
HANDLER(native_create_session, create_session)

static const struct forward delete_session = {
    .path = "/api/session/delete", .parameter = "session", .parameter_name = "sessionId"};
HANDLER(native_delete_session, delete_session)

/* --- processes ------------------------------------------------------------------------------- */

static const struct forward list_processes = {
    .method = "GET", .path = "/api/process/list", .visit = VISIT_READ, .has_query = true};
HANDLER(native_list_processes, list_processes)

static const struct forward_field process_fields[] = {
    {.name = "command"},
    {.name = "id", .agent_name = "processId"},
    {.name = "cwd"},
    {.name = "env"},
    {.name = "timeout", .agent_name = "timeoutMs", .kind = FORWARD_DURATION},
    {.name = "autoCleanup"},
    {.name = "encoding"},
    {.name = "sessionId"},
};
static const struct forward start_process = {.path = "/api/process/start",
                                             FORWARD_FIELDS(process_fields)};
HANDLER(native_start_process, start_process)

static const struct forward get_process = {
    .method = "GET", .path = "/api/process/{process}", .visit = VISIT_READ};
HANDLER(native_get_process, get_process)

static const struct forward kill_process = {.method = "DELETE", .path = "/api/process/{process}"};
HANDLER(native_kill_process, kill_process)

static const struct forward kill_processes = {.method = "DELETE", .path = "/api/process/kill-all"};
HANDLER(native_kill_processes, kill_processes)

static const struct forward get_logs = {
    .method = "GET", .path = "/api/process/{process}/logs", .visit = VISIT_READ};
HANDLER(native_get_logs, get_logs)

static const struct forward follow_logs = {
    .method = "GET", .path = "/api/process/{process}/stream", .visit = VISIT_READ};
HANDLER(native_follow_logs, follow_logs)

/* --- code ------------------------------------------------------------------------------------ */

static const struct forward list_contexts = {
    .method = "GET", .path = "/api/contexts", .visit = VISIT_READ};
HANDLER(native_list_contexts, list_contexts)

static const struct forward_field context_fields[] = {
    {.name = "language"},
    {.name = "cwd"},
    {.name = "env", .agent_name = "env_vars"},
};
static const struct forward create_context = {.path = "/api/contexts",
                                              FORWARD_FIELDS(context_fields)};
HANDLER(native_create_context, create_context)

static const struct forward delete_context = {.method = "DELETE",
                                              .path = "/api/contexts/{context}"};
HANDLER(native_delete_context, delete_context)

static const struct forward_field run_fields[] = {
    {.name = "code"},
    {.name = "language"},
    {.name = "contextId", .agent_name = "context_id"},
    {.name = "env", .agent_name = "env_vars"},
    {.name = "timeout", .agent_name = "timeout_ms", .kind = FORWARD_DURATION},
};
static const struct forward run_code = {.path = "/api/execute/code", FORWARD_FIELDS(run_fields)};
HANDLER(native_run_code, run_code)

/* --- git ------------------------------------------------------------------------------------- */

static const struct forward_field clone_fields[] = {
    {.name = "url", .agent_name = "repoUrl"},
    {.name = "branch"},
    {.name = "folder", .agent_name = "targetDir"},
    {.name = "depth"},
    {.name = "timeout", .agent_name = "timeoutMs", .kind = FORWARD_DURATION},
    {.name = "sessionId"},
};
static const struct forward git_clone = {.path = "/api/git/checkout", FORWARD_FIELDS(clone_fields)};
HANDLER(native_clone, git_clone)
