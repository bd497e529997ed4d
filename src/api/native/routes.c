/* The one route table of our own dialect: what there is under /burrow/v1, who may use it and what
 * the documents say about it. Handlers are in handlers.h, schemas in schemas.h. */
#include "api/access/access.h"
#include "api/http/api.h"
#include "api/native/handlers.h"
#include "api/native/native.h"
#include "api/native/schemas.h"
#include "base/auto.h"

#define ROOT      "/burrow/v1"
#define SANDBOXES ROOT "/sandboxes"
#define SANDBOX   SANDBOXES "/{id}"
#define CONTAINER SANDBOX "/container/{path...}"
#define FILES     SANDBOX "/files/{path...}"
#define SNAPSHOTS ROOT "/snapshots"
#define SNAPSHOT  SNAPSHOTS "/{snapshot}"

#define CONVERSATIONS SANDBOX "/conversations"
#define CONVERSATION  CONVERSATIONS "/{conversation}"
#define TASK          ROOT "/tasks/{task}"
#define SCHEDULES     ROOT "/schedules"
#define SCHEDULE      SCHEDULES "/{schedule}"

#define SPEC_MAX       ((uint64_t) 512 * 1024)
#define COMMAND_MAX    ((uint64_t) 8 * 1024 * 1024)
#define CREDENTIAL_MAX ((uint64_t) 128 * 1024)

#define EVENTS_TYPE "text/event-stream"
#define TAR_TYPE    "application/x-tar"
#define BYTES_TYPE  "application/octet-stream"

/* clang-format off */
#define QUERY(name, text)                                                                          \
    "{\"name\":\"" name "\",\"in\":\"query\",\"description\":\"" text                               \
    "\",\"schema\":{\"type\":\"string\"}}"

#define LIST_QUERY                                                                                 \
    QUERY("label", "name, or name=value") ","                                                      \
    QUERY("status", "a status; sleeping is frozen or hibernated") ","                              \
    QUERY("owner", "an id, for administrators") ","                                                \
    QUERY("prefix", "of the name") ","                                                             \
    QUERY("cursor", "nextCursor of the page before") ","                                           \
    QUERY("limit", "1 to 1000; 100 if not given")

#define PAGE_QUERY                                                                                 \
    QUERY("cursor", "nextCursor of the page before") ","                                           \
    QUERY("limit", "1 to 1000; 100 if not given")

#define OWNER_QUERY QUERY("owner", "somebody else's, for administrators")

#define USAGE_QUERY                                                                                \
    QUERY("by", "owner, model, day, sandbox, route or task; model if not given") ","               \
    QUERY("from", "the first day, like 2026-11-19; a month ago if not given") ","                  \
    QUERY("to", "the last day; today if not given") ","                                            \
    QUERY("owner", "of one user, for administrators") ","                                          \
    PAGE_QUERY

#define AFTER_QUERY                                                                                \
    QUERY("after", "next of the page before") ","                                                  \
    QUERY("limit", "1 to 1000, which it is if not given")

#define DEBUG_QUERY                                                                                \
    QUERY("request", "the id of one, as X-Request-Id of its reply has it") ","                     \
    QUERY("sandbox", "one, by id or name")

#define EVENTS_QUERY                                                                               \
    QUERY("after", "a cursor: what came behind it") ","                                            \
    QUERY("type", "one type, or all that begin with it") ","                                       \
    QUERY("stream", "1: follow, as does Accept: text/event-stream") ","                            \
    QUERY("limit", "of a page: 1 to 1000; 100 if not given")

#define FILE_QUERY                                                                                 \
    QUERY("list", "1: what is in the folder, as JSON") ","                                         \
    QUERY("recursive", "1: with the folders in it")
/* clang-format on */

/* method, path, handler, summary, access; then what is there besides. */
static const struct http_route routes[] = {
    {"POST", SANDBOXES, native_create_sandbox, "Make a sandbox; one of that name is found",
     .access = ACCESS_WRITE, .body_limit = SPEC_MAX, .request_schema = SPEC_SCHEMA,
     .reply_schema = SANDBOX_SCHEMA},
    {"GET", SANDBOXES, native_list_sandboxes, "List sandboxes, the newest first",
     .access = ACCESS_READ, .reply_schema = SANDBOXES_SCHEMA, .parameters = LIST_QUERY},
    {"GET", SANDBOX, native_get_sandbox, "Read one, by id or name", .access = ACCESS_READ,
     .reply_schema = SANDBOX_SCHEMA},
    {"PATCH", SANDBOX, native_change_sandbox,
     "Change name, variables, labels, limits and times; null removes a variable or label",
     .access = ACCESS_WRITE, .body_limit = SPEC_MAX, .request_schema = CHANGE_SCHEMA,
     .reply_schema = SANDBOX_SCHEMA},
    {"DELETE", SANDBOX, native_destroy_sandbox, "Destroy it, with its disk",
     .access = ACCESS_WRITE},
    {"POST", SANDBOX "/start", native_start_sandbox, "Start a stopped one", .access = ACCESS_WRITE,
     .reply_schema = SANDBOX_SCHEMA},
    {"POST", SANDBOX "/stop", native_stop_sandbox, "End its processes, keep its disk",
     .access = ACCESS_WRITE, .reply_schema = SANDBOX_SCHEMA},
    {"POST", SANDBOX "/sleep", native_sleep_sandbox, "Put it to sleep until somebody needs it",
     .access = ACCESS_WRITE, .reply_schema = SANDBOX_SCHEMA},
    {"POST", SANDBOX "/wake", native_wake_sandbox, "Wake it", .access = ACCESS_WRITE,
     .reply_schema = SANDBOX_SCHEMA},
    {"POST", SANDBOX "/touch", native_touch_sandbox, "Begin its idle time again",
     .access = ACCESS_ENTER, .reply_schema = SANDBOX_SCHEMA},
    {"GET", SANDBOX "/stats", native_get_stats, "What it uses; null is unknown",
     .access = ACCESS_READ},

    {"POST", SANDBOX "/exec", native_execute, "Run a command and wait, or follow it as events",
     .access = ACCESS_ENTER, .body_limit = COMMAND_MAX, .request_schema = EXECUTE_SCHEMA,
     .reply_schema = EXECUTED_SCHEMA},
    {"GET", SANDBOX "/exec/ws", native_exec_socket,
     "Run a command over a WebSocket: input, output, terminal, signals", .access = ACCESS_ENTER},
    {"GET", SANDBOX "/sessions", native_list_sessions, "List shell sessions",
     .access = ACCESS_READ},
    {"POST", SANDBOX "/sessions", native_create_session, "Make a shell session",
     .access = ACCESS_ENTER, .body_limit = COMMAND_MAX, .request_schema = SESSION_SCHEMA},
    {"DELETE", SANDBOX "/sessions/{session}", native_delete_session, "End a shell session",
     .access = ACCESS_ENTER},
    {"GET", SANDBOX "/processes", native_list_processes, "List background processes",
     .access = ACCESS_READ, .parameters = QUERY("status", "only those in this status")},
    {"POST", SANDBOX "/processes", native_start_process, "Start a background process",
     .access = ACCESS_ENTER, .body_limit = COMMAND_MAX, .request_schema = PROCESS_SCHEMA},
    {"DELETE", SANDBOX "/processes", native_kill_processes, "Kill all background processes",
     .access = ACCESS_ENTER},
    {"GET", SANDBOX "/processes/{process}", native_get_process, "Read one process",
     .access = ACCESS_READ},
    {"DELETE", SANDBOX "/processes/{process}", native_kill_process, "Kill a process",
     .access = ACCESS_ENTER},
    {"GET", SANDBOX "/processes/{process}/logs", native_get_logs, "What it has written",
     .access = ACCESS_READ},
    {"GET", SANDBOX "/processes/{process}/logs/stream", native_follow_logs,
     "What it has written and writes, until its end", .access = ACCESS_READ,
     .reply_type = EVENTS_TYPE},

    {"GET", FILES, native_get_file, "A file, or a range of it; or a folder's list",
     .access = ACCESS_READ, .reply_type = BYTES_TYPE, .parameters = FILE_QUERY},
    {"PUT", FILES, native_put_file, "The body becomes the file, as a whole or not at all",
     .access = ACCESS_ENTER, .body_limit = HTTP_BODY_UNLIMITED},
    {"POST", FILES, native_post_file, "Make a folder, or move a file or folder",
     .access = ACCESS_ENTER, .request_schema = ORDER_SCHEMA},
    {"DELETE", FILES, native_delete_file, "Delete a file, or a folder with all in it",
     .access = ACCESS_ENTER, .parameters = QUERY("recursive", "1: also a folder")},
    {"GET", SANDBOX "/archive", native_get_archive, "A folder as a tar archive",
     .access = ACCESS_READ, .reply_type = TAR_TYPE,
     .parameters = QUERY("path", "the folder") "," QUERY("excludes", "paths in it, with commas")},
    {"PUT", SANDBOX "/archive", native_put_archive, "A tar archive into a folder",
     .access = ACCESS_ENTER, .body_limit = HTTP_BODY_UNLIMITED,
     .parameters = QUERY("path", "the folder")},
    {"POST", SANDBOX "/watch", native_watch, "Changes of files, as events", .access = ACCESS_ENTER,
     .request_schema = WATCH_SCHEMA, .reply_type = EVENTS_TYPE},

    {"GET", SANDBOX "/terminals", native_terminal,
     "A terminal over a WebSocket: bytes both ways, control as JSON; who comes later sees what was",
     .access = ACCESS_ENTER,
     .parameters = QUERY("sessionId", "whose terminal; shared by all who name it") "," QUERY(
         "cols", "columns") "," QUERY("rows", "rows")},
    {"GET", SANDBOX "/code/contexts", native_list_contexts, "List contexts of code",
     .access = ACCESS_READ},
    {"POST", SANDBOX "/code/contexts", native_create_context,
     "Make a context, in which variables stay", .access = ACCESS_ENTER, .body_limit = COMMAND_MAX,
     .request_schema = CONTEXT_SCHEMA},
    {"DELETE", SANDBOX "/code/contexts/{context}", native_delete_context, "Delete a context",
     .access = ACCESS_ENTER},
    {"POST", SANDBOX "/code/run", native_run_code, "Run code; results come as events",
     .access = ACCESS_ENTER, .body_limit = COMMAND_MAX, .request_schema = RUN_SCHEMA,
     .reply_type = EVENTS_TYPE},
    {"POST", SANDBOX "/git/clone", native_clone, "Clone a repository", .access = ACCESS_ENTER,
     .request_schema = CLONE_SCHEMA},

    {"GET", SANDBOX "/events", native_get_sandbox_events, "What happened to it",
     .access = ACCESS_READ, .reply_schema = EVENTS_SCHEMA, .parameters = EVENTS_QUERY},
    {"GET", ROOT "/events", native_get_events, "What happened", .access = ACCESS_READ,
     .reply_schema = EVENTS_SCHEMA, .parameters = EVENTS_QUERY},
    {"POST", ROOT "/db/backup", native_backup, "Copy all that the daemon keeps into a file",
     .access = ACCESS_ADMIN, .request_schema = BACKUP_SCHEMA},
    {"POST", ROOT "/gc", native_collect, "Take away what is stored and nobody names",
     .access = ACCESS_ADMIN, .request_schema = COLLECT_SCHEMA},
    {"POST", ROOT "/fsck", native_inspect,
     "Look whether everything that is promised is there; changes nothing", .access = ACCESS_ADMIN,
     .request_schema = INSPECT_SCHEMA},

    {"GET", "/burrow/v1/debug/trace", native_debug_trace,
     "What all processes did last, about one request or sandbox", .access = ACCESS_ADMIN,
     .parameters = DEBUG_QUERY},
    {"GET", "/burrow/v1/debug/state", native_debug_state,
     "What is under way and what waits, as text for people", .access = ACCESS_ADMIN,
     .reply_type = "text/plain"},

    {"GET", CONTAINER, native_container, "The sandbox's own container API, also its WebSockets",
     .access = ACCESS_ENTER},
    {"POST", CONTAINER, native_container, "The sandbox's own container API", .access = ACCESS_ENTER,
     .body_limit = HTTP_BODY_UNLIMITED},
    {"PUT", CONTAINER, native_container, "The sandbox's own container API", .access = ACCESS_ENTER,
     .body_limit = HTTP_BODY_UNLIMITED},
    {"PATCH", CONTAINER, native_container, "The sandbox's own container API",
     .access = ACCESS_ENTER, .body_limit = HTTP_BODY_UNLIMITED},
    {"DELETE", CONTAINER, native_container, "The sandbox's own container API",
     .access = ACCESS_ENTER, .body_limit = HTTP_BODY_UNLIMITED},

    {"POST", SANDBOX "/snapshots", native_make_snapshot,
     "Keep its disk as it is now; pauseMs says how long it stood still", .access = ACCESS_WRITE,
     .request_schema = SNAPSHOT_ORDER_SCHEMA, .reply_schema = SNAPSHOT_SCHEMA},
    {"GET", SANDBOX "/snapshots", native_list_sandbox_snapshots, "Its snapshots, the newest first",
     .access = ACCESS_READ, .reply_schema = SNAPSHOTS_SCHEMA, .parameters = PAGE_QUERY},
    {"POST", SANDBOX "/fork", native_fork_sandbox,
     "New sandboxes that begin with its disk as it is now: all of them, or none",
     .access = ACCESS_WRITE, .body_limit = SPEC_MAX, .request_schema = FORK_SCHEMA,
     .reply_schema = FORKED_SCHEMA},
    {"POST", SANDBOX "/rollback", native_roll_back,
     "Its disk becomes what it was; what it is now is kept as a snapshot", .access = ACCESS_WRITE,
     .request_schema = ROLLBACK_SCHEMA, .reply_schema = ROLLED_BACK_SCHEMA},
    {"GET", SANDBOX "/diff", native_diff_sandbox, "What changed since a snapshot",
     .access = ACCESS_READ, .reply_schema = DIFF_SCHEMA,
     .parameters = QUERY("from", "a snapshot, by id or name")},
    {"GET", SNAPSHOTS, native_list_snapshots, "List snapshots, the newest first",
     .access = ACCESS_READ, .reply_schema = SNAPSHOTS_SCHEMA, .parameters = PAGE_QUERY},
    {"GET", SNAPSHOT, native_get_snapshot, "Read one, by id or name", .access = ACCESS_READ,
     .reply_schema = SNAPSHOT_SCHEMA},
    {"DELETE", SNAPSHOT, native_delete_snapshot, "Delete it; sandboxes made from it stay",
     .access = ACCESS_WRITE},
    {"POST", SNAPSHOT "/fork", native_fork_snapshot,
     "New sandboxes that begin with this disk: all of them, or none", .access = ACCESS_WRITE,
     .body_limit = SPEC_MAX, .request_schema = FORK_SCHEMA, .reply_schema = FORKED_SCHEMA},
    {"GET", SNAPSHOT "/diff", native_diff_snapshot,
     "What changed since this one, until another or until now", .access = ACCESS_READ,
     .reply_schema = DIFF_SCHEMA,
     .parameters = QUERY("against", "a snapshot; without it the sandbox as it is now")},

    {"GET", ROOT "/templates", native_list_templates,
     "List templates; long ones are brief: read them alone", .access = ACCESS_READ,
     .reply_schema = TEMPLATES_SCHEMA, .parameters = PAGE_QUERY},
    {"GET", ROOT "/templates/{name}", native_get_template, "Read one template",
     .access = ACCESS_READ, .reply_schema = TEMPLATE_SCHEMA},
    {"PUT", ROOT "/templates/{name}", native_put_template,
     "Make or replace one: what new sandboxes are made from, with `template` in their spec",
     .access = ACCESS_WRITE, .body_limit = SPEC_MAX, .request_schema = TEMPLATE_ORDER_SCHEMA,
     .reply_schema = TEMPLATE_SCHEMA},
    {"DELETE", ROOT "/templates/{name}", native_delete_template,
     "Delete it; sandboxes made from it stay", .access = ACCESS_WRITE},

    {"POST", SANDBOX "/backups", native_make_backup,
     "Keep a folder of it in the object store, as it is now", .access = ACCESS_ENTER,
     .body_limit = COMMAND_MAX, .request_schema = BACKUP_ORDER_SCHEMA},
    {"GET", SANDBOX "/backups", native_list_sandbox_backups, "Backups that were made of it",
     .access = ACCESS_READ},
    {"POST", SANDBOX "/restore", native_restore_backup,
     "Make a folder what a backup holds; the one it was of, or another", .access = ACCESS_ENTER,
     .request_schema = RESTORE_SCHEMA},
    {"GET", ROOT "/backups", native_list_backups, "All backups", .access = ACCESS_READ,
     .parameters = PAGE_QUERY},
    {"GET", ROOT "/backups/{backup}", native_get_backup, "Read one", .access = ACCESS_READ},
    {"DELETE", ROOT "/backups/{backup}", native_delete_backup, "Delete it", .access = ACCESS_WRITE},

    {"POST", SANDBOX "/sync", native_sync_workspace,
     "Mirror its working folder in the object store, file by file", .access = ACCESS_ENTER,
     .request_schema = SYNC_SCHEMA},
    {"GET", SANDBOX "/sync", native_get_workspace, "What the mirror holds", .access = ACCESS_READ},
    {"POST", SANDBOX "/sync/restore", native_restore_workspace,
     "Make its working folder what the mirror holds", .access = ACCESS_ENTER,
     .request_schema = EMPTY_SCHEMA},

    {"GET", SANDBOX "/mounts", native_list_mounts, "Buckets that are mounted in it",
     .access = ACCESS_READ},
    {"POST", SANDBOX "/mounts", native_mount_bucket,
     "Mount a part of a bucket as a folder; of ours, or with an endpoint of somebody else",
     .access = ACCESS_WRITE, .request_schema = MOUNT_SCHEMA},
    {"DELETE", SANDBOX "/mounts", native_unmount_bucket,
     "Unmount the one at ?path=", .access = ACCESS_ENTER},

    {"GET", SANDBOX "/ports", native_list_ports,
     "Exposed ports with their URLs, and what listens inside", .access = ACCESS_READ},
    {"POST", SANDBOX "/ports", native_expose_port,
     "Expose a port; again: the same token, or the one given", .access = ACCESS_ENTER,
     .request_schema = EXPOSE_SCHEMA},
    {"DELETE", SANDBOX "/ports/{port}", native_close_port,
     "Close an exposed port and cut what is open to it", .access = ACCESS_ENTER},

    {"GET", SANDBOX "/egress", native_get_egress,
     "What it may reach by its policy, what it did, and what budgets count; its events are "
     "egress.*",
     .access = ACCESS_READ, .reply_schema = EGRESS_SCHEMA},
    {"PATCH", SANDBOX "/egress", native_change_egress,
     "Change its policy while it runs: members that are said replace its own, null removes one",
     .access = ACCESS_WRITE, .body_limit = SPEC_MAX, .request_schema = POLICY_SCHEMA,
     .reply_schema = EGRESS_SCHEMA},
    {"GET", ROOT "/egress", native_get_egress_defaults,
     "The policy of new sandboxes that say nothing, and the budget of all together",
     .access = ACCESS_READ, .parameters = OWNER_QUERY},
    {"PATCH", ROOT "/egress", native_change_egress_defaults,
     "Change them; the budget is for administrators to change", .access = ACCESS_WRITE,
     .body_limit = SPEC_MAX, .request_schema = EGRESS_DEFAULTS_SCHEMA, .parameters = OWNER_QUERY},
    {"GET", ROOT "/usage", native_get_usage,
     "Requests, tokens and cost of what left sandboxes, added up", .access = ACCESS_READ,
     .reply_schema = USAGE_SCHEMA, .parameters = USAGE_QUERY},
    {"GET", ROOT "/credentials", native_list_credentials,
     "List credentials, which never enter a sandbox; nobody is told a value", .access = ACCESS_READ,
     .reply_schema = CREDENTIALS_SCHEMA, .parameters = OWNER_QUERY},
    {"GET", ROOT "/credentials/{credential}", native_get_credential,
     "Read one: everything but its value", .access = ACCESS_READ, .reply_schema = CREDENTIAL_SCHEMA,
     .parameters = OWNER_QUERY},
    {"PUT", ROOT "/credentials/{credential}", native_put_credential,
     "Make or replace one; what is open with the one before is cut", .access = ACCESS_WRITE,
     .body_limit = CREDENTIAL_MAX, .request_schema = CREDENTIAL_ORDER_SCHEMA,
     .reply_schema = CREDENTIAL_SCHEMA, .parameters = OWNER_QUERY},
    {"DELETE", ROOT "/credentials/{credential}", native_delete_credential,
     "Delete it, and cut what is open with it", .access = ACCESS_WRITE, .parameters = OWNER_QUERY},

    {"GET", ROOT "/webhooks", native_list_webhooks, "List webhooks", .access = ACCESS_READ,
     .parameters = AFTER_QUERY},
    {"POST", ROOT "/webhooks", native_create_webhook,
     "Make a webhook; its secret is told only here", .access = ACCESS_WRITE,
     .request_schema = WEBHOOK_SCHEMA},
    {"GET", ROOT "/webhooks/{webhook}", native_get_webhook, "Read one webhook",
     .access = ACCESS_READ},
    {"PATCH", ROOT "/webhooks/{webhook}", native_change_webhook, "Stop a webhook, or let it go on",
     .access = ACCESS_WRITE, .request_schema = WEBHOOK_CHANGE_SCHEMA},
    {"DELETE", ROOT "/webhooks/{webhook}", native_delete_webhook, "Remove a webhook",
     .access = ACCESS_WRITE},
    {"GET", ROOT "/webhooks/{webhook}/deliveries", native_get_deliveries,
     "What was sent, and how that went, newest first", .access = ACCESS_READ,
     .parameters = PAGE_QUERY},

    {"GET", ROOT "/whoami", native_get_whoami, "Whom the key or login belongs to, and its scope",
     .access = ACCESS_SIGNED_IN},
    {"GET", ROOT "/users", native_list_users, "List users", .access = ACCESS_READ,
     .parameters = AFTER_QUERY},
    {"POST", ROOT "/users", native_create_user, "Make a user", .access = ACCESS_ADMIN,
     .request_schema = CREATE_USER_SCHEMA},
    {"GET", ROOT "/users/{user}", native_get_user, "Read one user; me is oneself",
     .access = ACCESS_READ},
    {"PATCH", ROOT "/users/{user}", native_update_user, "Change a user", .access = ACCESS_WRITE,
     .request_schema = UPDATE_USER_SCHEMA},
    {"DELETE", ROOT "/users/{user}", native_delete_user,
     "Remove a user that owns no sandbox any more", .access = ACCESS_ADMIN},
    {"GET", ROOT "/keys", native_list_keys, "List keys", .access = ACCESS_READ,
     .parameters = AFTER_QUERY},
    {"POST", ROOT "/keys", native_create_key, "Make a key; its secret is told only here",
     .access = ACCESS_WRITE, .request_schema = CREATE_KEY_SCHEMA},
    {"DELETE", ROOT "/keys/{key}", native_revoke_key, "Revoke a key by id or prefix",
     .access = ACCESS_WRITE},
    {"GET", ROOT "/audit", native_get_audit, "The audit log, newest first", .access = ACCESS_ADMIN},

    {"POST", CONVERSATIONS, native_create_conversation,
     "Begin a conversation with an agent in the sandbox", .access = ACCESS_ENTER,
     .body_limit = SPEC_MAX, .request_schema = CONVERSATION_SCHEMA},
    {"GET", CONVERSATIONS, native_list_conversations, "List conversations, the oldest first",
     .access = ACCESS_READ, .parameters = PAGE_QUERY},
    {"GET", CONVERSATION, native_get_conversation, "Read one", .access = ACCESS_READ},
    {"DELETE", CONVERSATION, native_delete_conversation, "Delete it, with its log",
     .access = ACCESS_ENTER},
    {"GET", CONVERSATION "/events", native_follow_conversation,
     "Follow it from any point: Last-Event-ID or after", .access = ACCESS_READ,
     .reply_type = EVENTS_TYPE,
     .parameters = QUERY("after", "the id of an event; 0: from the start; -1: what comes")},
    {"GET", CONVERSATION "/permissions", native_list_conversation_permissions,
     "What its agent asks, or asked", .access = ACCESS_READ,
     .parameters = QUERY("state", "pending, answered, expired or resolved")},
    {"POST", CONVERSATION "/turns", native_create_turn,
     "Prompt the agent; at once, waiting for the end, or following it", .access = ACCESS_ENTER,
     .body_limit = SPEC_MAX * 2, .request_schema = TURN_SCHEMA},
    {"GET", CONVERSATION "/turns", native_list_turns, "List turns, the newest first",
     .access = ACCESS_READ, .parameters = PAGE_QUERY},
    {"GET", CONVERSATION "/turns/{turn}", native_get_turn, "Read a turn", .access = ACCESS_READ},
    {"POST", CONVERSATION "/turns/{turn}/cancel", native_cancel_turn,
     "End it; what is over stays as it is", .access = ACCESS_ENTER},
    {"GET", CONVERSATION "/turns/{turn}/events", native_follow_turn, "Follow it to its end",
     .access = ACCESS_READ, .reply_type = EVENTS_TYPE},
    {"GET", SANDBOX "/permissions", native_list_permissions, "What agents ask, or asked",
     .access = ACCESS_READ, .parameters = QUERY("state", "pending, answered, expired or resolved")},
    {"POST", SANDBOX "/permissions/{permission}", native_answer_permission,
     "Answer: once, always or reject", .access = ACCESS_ENTER, .request_schema = PERMISSION_SCHEMA},
    {"POST", SANDBOX "/questions/{permission}", native_answer_question,
     "Answer a question, or refuse it", .access = ACCESS_ENTER, .request_schema = QUESTION_SCHEMA},

    {"POST", ROOT "/tasks", native_create_task, "Begin a task in a sandbox of its own",
     .access = ACCESS_WRITE, .body_limit = SPEC_MAX * 2, .request_schema = TASK_SCHEMA},
    {"GET", ROOT "/tasks", native_list_tasks, "List tasks, the newest first", .access = ACCESS_READ,
     .parameters = PAGE_QUERY},
    {"GET", TASK, native_get_task, "Read a task", .access = ACCESS_READ},
    {"DELETE", TASK, native_delete_task, "Delete one that is over, with its log",
     .access = ACCESS_WRITE},
    {"POST", TASK "/cancel", native_cancel_task, "End it; what is over stays as it is",
     .access = ACCESS_WRITE},
    {"POST", TASK "/undo", native_undo_task, "Make its sandbox what it was before the task",
     .access = ACCESS_WRITE},
    {"GET", TASK "/diff", native_diff_task, "What it changed in its folder", .access = ACCESS_READ},
    {"GET", TASK "/events", native_follow_task, "Follow it to its end", .access = ACCESS_READ,
     .reply_type = EVENTS_TYPE},
    {"POST", ROOT "/teams", native_create_team, "Begin several tasks that belong together",
     .access = ACCESS_WRITE, .body_limit = SPEC_MAX * 2, .request_schema = TEAM_SCHEMA},
    {"GET", ROOT "/teams", native_list_teams, "List teams, the newest first", .access = ACCESS_READ,
     .parameters = PAGE_QUERY},
    {"GET", ROOT "/teams/{team}", native_get_team, "Read a team and its members",
     .access = ACCESS_READ},
    {"POST", ROOT "/teams/{team}/cancel", native_cancel_team, "End all members that are not over",
     .access = ACCESS_WRITE},
    {"POST", SCHEDULES, native_create_schedule, "Have tasks begin by themselves",
     .access = ACCESS_WRITE, .body_limit = SPEC_MAX * 2, .request_schema = SCHEDULE_SCHEMA},
    {"GET", SCHEDULES, native_list_schedules, "List schedules", .access = ACCESS_READ},
    {"GET", SCHEDULE, native_get_schedule, "Read one, by id or name", .access = ACCESS_READ},
    {"PATCH", SCHEDULE, native_change_schedule, "Change what is said; the rest stays",
     .access = ACCESS_WRITE, .body_limit = SPEC_MAX * 2, .request_schema = SCHEDULE_SCHEMA},
    {"DELETE", SCHEDULE, native_delete_schedule, "Delete it; its tasks stay",
     .access = ACCESS_WRITE},
    {"POST", SCHEDULE "/run", native_run_schedule, "Begin its task now", .access = ACCESS_WRITE},

    {"GET", ROOT "/version", native_get_version, "The version of this daemon",
     .access = ACCESS_PUBLIC,
     .reply_schema = "{\"type\":\"object\",\"properties\":{\"version\":{\"type\":\"string\"}}}"},
    {"GET", ROOT "/openapi.json", native_get_openapi, "This document", .access = ACCESS_PUBLIC},
    {"GET", ROOT "/docs", native_get_docs, "The same for people", .access = ACCESS_PUBLIC,
     .reply_type = "text/html"},
};

struct http_mount native_mount(struct api *api)
{
    return (struct http_mount){
        .name = "native",
        .routes = routes,
        .route_count = ARRAY_COUNT(routes),
        .context = api,
        .encode_error = error_body_write,
    };
}
