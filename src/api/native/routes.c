/* The one route table of this dialect. */
#include "api/access/access.h"
#include "api/http/error_body.h"
#include "api/native/handlers.h"
#include "api/native/native.h"
#include "api/native/schemas.h"
#include "base/auto.h"

#define SANDBOXES "/burrow/v1/sandboxes"
#define SANDBOX   SANDBOXES "/{id}"
#define CONTAINER SANDBOX "/container/{path...}"
#define FILES     SANDBOX "/files/{path...}"

#define SPEC_MAX    ((uint64_t) 512 * 1024)
#define COMMAND_MAX ((uint64_t) 8 * 1024 * 1024)

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
    {"GET", "/burrow/v1/events", native_get_events, "What happened", .access = ACCESS_READ,
     .reply_schema = EVENTS_SCHEMA, .parameters = EVENTS_QUERY},
    {"POST", "/burrow/v1/db/backup", native_backup, "Copy all that the daemon keeps into a file",
     .access = ACCESS_ADMIN, .request_schema = BACKUP_SCHEMA},
    {"POST", "/burrow/v1/gc", native_collect, "Take away what is stored and nobody names",
     .access = ACCESS_ADMIN, .request_schema = COLLECT_SCHEMA},
    {"POST", "/burrow/v1/fsck", native_inspect,
     "Look whether everything that is promised is there; changes nothing", .access = ACCESS_ADMIN,
     .request_schema = INSPECT_SCHEMA},

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
};

struct http_mount native_sandboxes_mount(struct api *api)
{
    return (struct http_mount){
        .name = "native",
        .routes = routes,
        .route_count = ARRAY_COUNT(routes),
        .context = api,
        .encode_error = error_body_write,
    };
}
