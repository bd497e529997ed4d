#include "api/bridge/bridge.h"

#include "api/access/access.h"
#include "api/bridge/bridge_internal.h"
#include "base/auto.h"

/* --- for the documents ----------------------------------------------------------------------- */

#define OBJECT(properties)   "{\"type\":\"object\",\"properties\":{" properties "}}"
#define TEXT(name)           "\"" name "\":{\"type\":\"string\"}"
#define NUMBER(name)         "\"" name "\":{\"type\":\"integer\"}"
#define FLAG(name)           "\"" name "\":{\"type\":\"boolean\"}"
#define NUMBER_OR_NULL(name) "\"" name "\":{\"type\":[\"integer\",\"null\"]}"

#define ERROR_SCHEMA                                                                               \
    "{\"type\":\"object\",\"required\":[\"error\",\"code\"],\"properties\":{" TEXT(                \
        "error") "," TEXT("code") "}}"
#define OK_SCHEMA OBJECT(FLAG("ok"))
#define ID_SCHEMA OBJECT(TEXT("id"))

#define PARAMETER(name, place, schema, description)                                                \
    "{\"name\":\"" name "\",\"in\":\"" place "\",\"required\":false,\"schema\":{" schema           \
    "},\"description\":\"" description "\"}"
#define SESSION_PARAMETER                                                                          \
    PARAMETER("Session-Id", "header",                                                              \
              "\"type\":\"string\",\"pattern\":\"^[a-zA-Z0-9._-]{1,128}$\"",                       \
              "The session to do it in; without it nothing is shared with other requests.")
#define EXCLUDES_PARAMETER                                                                         \
    PARAMETER("excludes", "query", "\"type\":\"string\"",                                          \
              "Paths below the workspace to leave out, with commas between.")
#define TERMINAL_PARAMETERS                                                                        \
    PARAMETER("cols", "query", "\"type\":\"integer\",\"default\":80", "Columns, 1 to 4096.")       \
    "," PARAMETER(                                                                                 \
        "rows", "query", "\"type\":\"integer\",\"default\":24",                                    \
        "Rows, 1 to 4096.") "," PARAMETER("shell", "query", "\"type\":\"string\"",                 \
                                          "The shell to run.") "," PARAMETER("session", "query",   \
                                                                             "\"type\":"           \
                                                                             "\"string\"",         \
                                                                             "The session whose "  \
                                                                             "terminal it "        \
                                                                             "is.") "," SESSION_PARAMETER

#define ANSWER(status, description) "\"" status "\":{\"description\":\"" description "\"}"
#define FAILURE(status, description)                                                               \
    "\"" status "\":{\"description\":\"" description                                               \
    "\",\"content\":{\"application/json\":{\"schema\":" ERROR_SCHEMA "}}}"
#define TERMINAL_REPLIES                                                                                        \
    "{" ANSWER(                                                                                                 \
        "101",                                                                                                  \
        "A WebSocket: binary messages are keys and output, text messages are "                                  \
        "JSON (resize; ready, exit, error).") "," FAILURE("400",                                                \
                                                          "No WebSocket upgrade, or a malformed "               \
                                                          "parameter.") "," FAILURE("401",                      \
                                                                                    "No key "                   \
                                                                                    "that is "                  \
                                                                                    "good.") "," FAILURE("502", \
                                                                                                         "The sandbox could not be reached.") "}"
#define DELETED_REPLIES                                                                            \
    "{" ANSWER("204", "It is not there any more.") "," FAILURE(                                    \
        "400", "A malformed name.") "," FAILURE("401", "No key that is good.") "}"

#define EXEC_REQUEST                                                                               \
    "{\"type\":\"object\",\"required\":[\"argv\"],\"properties\":{\"argv\":{\"type\":\"array\","   \
    "\"items\":{\"type\":\"string\"},\"minItems\":1}," NUMBER("timeout_ms") "," TEXT("cwd") "}}"
#define SESSION_REQUEST OBJECT(TEXT("id") "," TEXT("cwd") ",\"env\":{\"type\":\"object\"}")
#define SESSION_DELETED OBJECT(FLAG("success") "," TEXT("sessionId") "," TEXT("timestamp"))
#define TUNNEL_REQUEST  OBJECT(TEXT("name"))
#define TUNNEL_REPLY                                                                               \
    OBJECT(TEXT("id") "," NUMBER("port") "," TEXT("url") "," TEXT("hostname") "," TEXT(            \
        "createdAt") "," TEXT("name"))
#define MOUNT_REQUEST                                                                              \
    "{\"type\":\"object\",\"required\":[\"mountPath\",\"options\"],\"properties\":{" TEXT(         \
        "bucket") "," TEXT("binding") "," TEXT("mountPath") ",\"options\":{\"type\":\"object\"}}}"
#define UNMOUNT_REQUEST                                                                            \
    "{\"type\":\"object\",\"required\":[\"mountPath\"],\"properties\":{" TEXT("mountPath") "}}"
#define POOL_REPLY                                                                                 \
    OBJECT(NUMBER("warm") "," NUMBER("assigned") "," NUMBER("total") ",\"config\":" OBJECT(        \
        NUMBER("warmTarget") "," NUMBER("refreshInterval") "," NUMBER("maxInstances") "," NUMBER(  \
            "scaleBatchSize")) "," NUMBER_OR_NULL("maxInstances"))

#define BYTES "application/octet-stream"

/* --- the table ------------------------------------------------------------------------------- */

static const struct http_route routes[] = {
    {"POST", "/v1/sandbox", bridge_create, "A new id; its sandbox is made when it is first used",
     .access = ACCESS_WRITE, .reply_schema = ID_SCHEMA},
    {"DELETE", "/v1/sandbox/{id}", bridge_delete,
     "Destroy a sandbox; one that is not there is fine", .access = ACCESS_WRITE,
     .replies = DELETED_REPLIES},
    {"GET", "/v1/sandbox/{id}/running", bridge_running, "Whether it runs and answers",
     .access = ACCESS_READ, .reply_schema = OBJECT(FLAG("running"))},
    {"POST", "/v1/sandbox/{id}/exec", bridge_exec,
     "Run a command; its output comes as events (stdout and stderr in base64, then exit or error)",
     .access = ACCESS_ENTER, .body_limit = BRIDGE_EXEC_MAX, .request_schema = EXEC_REQUEST,
     .reply_type = "text/event-stream", .parameters = SESSION_PARAMETER},
    {"GET", "/v1/sandbox/{id}/file/{path...}", bridge_read_file, "The bytes of a file",
     .access = ACCESS_READ, .reply_type = BYTES, .parameters = SESSION_PARAMETER},
    {"PUT", "/v1/sandbox/{id}/file/{path...}", bridge_write_file,
     "Write a file; its folders are made", .access = ACCESS_ENTER, .body_limit = BRIDGE_BODY_MAX,
     .reply_schema = OK_SCHEMA, .parameters = SESSION_PARAMETER},
    {"POST", "/v1/sandbox/{id}/persist", bridge_persist, "The workspace as a tar archive",
     .access = ACCESS_READ, .reply_type = BYTES, .parameters = EXCLUDES_PARAMETER},
    {"POST", "/v1/sandbox/{id}/hydrate", bridge_hydrate, "Unpack a tar archive into the workspace",
     .access = ACCESS_ENTER, .body_limit = HTTP_BODY_UNLIMITED, .reply_schema = OK_SCHEMA},
    {"POST", "/v1/sandbox/{id}/session", bridge_make_session, "Make a session",
     .access = ACCESS_ENTER, .request_schema = SESSION_REQUEST, .reply_schema = ID_SCHEMA},
    {"DELETE", "/v1/sandbox/{id}/session/{session}", bridge_delete_session, "End a session",
     .access = ACCESS_ENTER, .reply_schema = SESSION_DELETED},
    {"GET", "/v1/sandbox/{id}/pty", bridge_terminal, "A terminal, as a WebSocket",
     .access = ACCESS_ENTER, .parameters = TERMINAL_PARAMETERS, .replies = TERMINAL_REPLIES},
    {"POST", "/v1/sandbox/{id}/tunnel/{port}", bridge_open_tunnel, "A URL that leads to a port",
     .access = ACCESS_WRITE, .request_schema = TUNNEL_REQUEST, .reply_schema = TUNNEL_REPLY},
    {"DELETE", "/v1/sandbox/{id}/tunnel/{port}", bridge_close_tunnel, "Take that URL back",
     .access = ACCESS_WRITE, .replies = DELETED_REPLIES},
    {"POST", "/v1/sandbox/{id}/mount", bridge_mount_bucket, "Mount a bucket as a folder",
     .access = ACCESS_WRITE, .request_schema = MOUNT_REQUEST, .reply_schema = OK_SCHEMA},
    {"POST", "/v1/sandbox/{id}/unmount", bridge_unmount_bucket, "Unmount a bucket",
     .access = ACCESS_WRITE, .request_schema = UNMOUNT_REQUEST, .reply_schema = OK_SCHEMA},
    {"GET", "/v1/pool/stats", bridge_pool_read, "How many sandboxes are ready, and in use",
     .access = ACCESS_READ, .reply_schema = POOL_REPLY},
    {"POST", "/v1/pool/prime", bridge_pool_prime, "Fill the warm pool", .access = ACCESS_WRITE,
     .reply_schema = OK_SCHEMA},
    /* Everybody's next sandbox is slower after this. */
    {"POST", "/v1/pool/shutdown-prewarmed", bridge_pool_drain,
     "Give up the sandboxes that are ready", .access = ACCESS_ADMIN, .reply_schema = OK_SCHEMA},
    {"GET", "/v1/openapi.json", bridge_document_json, "This document", .access = ACCESS_SIGNED_IN},
    {"GET", "/v1/openapi.html", bridge_document_page, "This document as a page",
     .access = ACCESS_SIGNED_IN, .reply_type = "text/html"},
    {"GET", "/v1/openapi", bridge_document_page, "This document as a page",
     .access = ACCESS_SIGNED_IN, .reply_type = "text/html"},
};

/* A malformed id is told to everybody, also to those without a key: so the bridge does. */
static int bridge_check(const struct http_request *request, struct error *err)
{
    const char *id = http_request_parameter(request, "id");

    if (id && !bridge_name_is_sandbox(id))
        return error_set(err, ERR_INVALID, 0, "Invalid sandbox ID format");
    return 0;
}

struct http_mount bridge_mount(struct api *api)
{
    return (struct http_mount){
        .name = "bridge",
        .routes = routes,
        .route_count = ARRAY_COUNT(routes),
        .context = api,
        .encode_error = bridge_error_encode,
        .error_schema = ERROR_SCHEMA,
        .check = bridge_check,
    };
}
