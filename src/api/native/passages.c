/* Ways to a sandbox's agent that it speaks itself: WebSockets, and its whole container API. */
#include <string.h>

#include "api/agent/visit.h"
#include "api/native/handlers.h"

/* Segments before the agent's own path: burrow, v1, sandboxes, the id, container. */
#define CONTAINER_DEPTH 5

static void refuse_without_upgrade(struct http_request *request)
{
    (void) http_reply_header(request, "Upgrade", "websocket");
    api_fail(request, ERR_UPGRADE_REQUIRED, "this path speaks only WebSocket");
}

static void exec_ready(struct visit *visit)
{
    visit_proxy_socket(visit, "/burrow/run");
}

void native_exec_socket(struct http_request *request)
{
    if (!request->is_upgrade)
        refuse_without_upgrade(request);
    else
        visit_begin(request, http_request_parameter(request, "id"), 0, exec_ready);
}

static void terminal_ready(struct visit *visit)
{
    visit_proxy_socket(visit, visit_target(visit, "/ws/pty"));
}

void native_terminal(struct http_request *request)
{
    const char *session = http_request_query(request, "sessionId");

    if (!request->is_upgrade)
        refuse_without_upgrade(request);
    else if (!session || !*session)
        api_fail(request, ERR_INVALID, "sessionId is required: whose terminal it is");
    else
        visit_begin(request, http_request_parameter(request, "id"), VISIT_TERMINAL, terminal_ready);
}

/* The agent's path exactly as the client spelt it: an escape may matter. */
static const char *container_path(struct http_request *request)
{
    struct url_span path = request->target.path;
    const char *at = path.text, *end = path.text + path.length;

    for (int slashes = 0; at < end; at++) {
        if (*at == '/' && ++slashes == CONTAINER_DEPTH + 1)
            break;
    }
    return at < end ? pool_copy_bytes(&request->pool, at, (size_t) (end - at)) : "/";
}

static void container_ready(struct visit *visit)
{
    visit_proxy(visit, visit_target(visit, container_path(visit->request)));
}

/* What is under /burrow there belongs to the control plane, not to its users. */
static bool is_for_control(const char *path)
{
    path += strspn(path, "/");
    return strncmp(path, "burrow", 6) == 0 && (path[6] == '/' || !path[6]);
}

void native_container(struct http_request *request)
{
    if (is_for_control(http_request_parameter(request, "path")))
        api_fail(request, ERR_NOT_FOUND, "no such route in the container API");
    else
        visit_begin(request, http_request_parameter(request, "id"), 0, container_ready);
}
