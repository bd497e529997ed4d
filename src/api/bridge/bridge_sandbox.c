/* /v1/sandbox: ids, whether it runs, and its end. */
#include <stdio.h>

#include "api/bridge/bridge_internal.h"
#include "api/http/pending.h"
#include "domain/sandbox/sandboxes.h"

#define PING_MS ((uint64_t) 10 * 1000)

/* An id is all that is made: the sandbox comes with the first request for it. */
void bridge_create(struct http_request *request)
{
    struct id id = id_new();
    char body[64];

    (void) snprintf(body, sizeof(body), "{\"id\":\"%s\"}", id.text);
    http_reply_text(request, 200, BRIDGE_JSON, body);
}

/* --- running --------------------------------------------------------------------------------- */

static void pinged(struct visit *visit, const struct agent_reply *reply,
                   const struct error *failure)
{
    bool runs = !failure && reply->status == 200;

    http_reply_text(visit->request, 200, BRIDGE_JSON,
                    runs ? "{\"running\":true}" : "{\"running\":false}");
}

static void bridge_sandbox_ready(struct visit *visit)
{
    const struct agent_request question = {
        .method = "GET", .path = "/api/ping", .timeout_ms = PING_MS};

    agent_call(visit, &question, pinged);
}

void bridge_running(struct http_request *request)
{
    bridge_visit(request, VISIT_READ, bridge_sandbox_ready);
}

/* --- the end --------------------------------------------------------------------------------- */

/* One that went away by itself meanwhile is as gone as it should be. */
static void bridge_sandbox_destroyed(void *context, const struct error *failure,
                                     struct sandbox *sandbox)
{
    struct http_request *request = pending_take(context);

    (void) sandbox;
    if (!request)
        return;
    if (failure && failure->code != ERR_NOT_FOUND)
        http_reply_error(request, failure);
    else
        http_reply(request, 204, NULL, NULL, 0);
}

void bridge_delete(struct http_request *request)
{
    struct domain *domain = api_of(request)->domain;
    const struct caller *caller = request_caller(request);
    struct error error = ERROR_INIT;
    struct sandbox *sandbox =
        sandbox_find(domain, caller, http_request_parameter(request, "id"), &error);

    if (sandbox)
        sandbox_destroy(domain, caller, sandbox, bridge_sandbox_destroyed, pending_new(request));
    else if (error.code == ERR_NOT_FOUND)
        http_reply(request, 204, NULL, NULL, 0);
    else
        http_reply_error(request, &error);
}
