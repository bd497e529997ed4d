/* /v1/sandbox/{id}/file/{path}: a file's bytes, both ways. */
#include <string.h>

#include "api/agent/agent_body.h"
#include "api/bridge/bridge_internal.h"
#include "base/auto.h"
#include "base/encoding/utf8.h"

/* The path of the URL, absolute, in the pool. NULL: that was answered. */
static const char *wanted_path(struct http_request *request)
{
    const char *path = http_request_parameter(request, "path");
    const char *resolved;

    if (!*path) {
        api_fail(request, ERR_INVALID, "file path must not be empty");
        return NULL;
    }
    if (strlen(path) > BRIDGE_PATH_MAX || !utf8_is_valid(path, strlen(path))) {
        api_fail(request, ERR_INVALID, "file path must be UTF-8 of at most %zu bytes",
                 BRIDGE_PATH_MAX);
        return NULL;
    }
    resolved = bridge_path_resolve(&request->pool, pool_format(&request->pool, "/%s", path));
    if (!resolved)
        bridge_error_reply(request, ERR_FORBIDDEN, "invalid_request",
                           "path must resolve to a location within " BRIDGE_ROOT);
    return resolved;
}

/* --- reading --------------------------------------------------------------------------------- */

static void read_refused(struct visit *visit, const char *code, const char *reason)
{
    struct http_request *request = visit->request;

    if (strcmp(code, "FILE_NOT_FOUND") == 0)
        bridge_error_reply(request, ERR_NOT_FOUND, "workspace_read_not_found", "File not found: %s",
                           wanted_path(request));
    else
        bridge_error_reply(request, ERR_UPSTREAM, "exec_transport_error", "read failed: %s",
                           reason);
}

static void ready_to_read(struct visit *visit)
{
    struct http_request *request = visit->request;
    const char *path = wanted_path(request);
    const char *session = path ? bridge_session(request) : NULL;
    struct agent_request question = {.method = NULL};
    struct agent_body body;

    if (!session)
        return;
    agent_body_begin(&body);
    json_add_text(&body.json, "path", path);
    json_add_text(&body.json, "encoding", "none");
    agent_body_end(&body, &request->pool, "/api/read", &question);
    question.session = session;
    bridge_download(visit, &question, read_refused);
}

void bridge_read_file(struct http_request *request)
{
    bridge_visit(request, VISIT_READ, ready_to_read);
}

/* --- writing --------------------------------------------------------------------------------- */

static void written(struct visit *visit, const struct agent_reply *reply,
                    const struct error *failure)
{
    struct error storage = ERROR_INIT;
    const char *reason = bridge_reason(reply, failure, &storage);

    if (reason)
        bridge_error_reply(visit->request, ERR_UPSTREAM, "workspace_archive_write_error",
                           "write failed: %s", reason);
    else
        http_reply_text(visit->request, 200, BRIDGE_JSON, BRIDGE_OK);
}

static void ready_to_write(struct visit *visit)
{
    struct http_request *request = visit->request;
    const char *path = wanted_path(request);
    struct agent_request question = {.method = "PUT", .content_type = "application/octet-stream"};
    AUTO(text) struct text target = TEXT_INIT(BRIDGE_PATH_MAX * 3 + 64);

    if (!path || !bridge_session(request))
        return;
    text_append(&target, "/burrow/file?path=");
    url_encode(&target, path, strlen(path));
    question.path = pool_copy_bytes(&request->pool, text_string(&target), target.length);
    agent_send_body(visit, &question, written);
}

void bridge_write_file(struct http_request *request)
{
    bridge_visit(request, 0, ready_to_write);
}
