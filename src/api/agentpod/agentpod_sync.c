/* sync: the workspace mirrored, on request. */
#include "api/agentpod/agentpod_internal.h"
#include "api/http/pending.h"
#include "base/auto.h"
#include "base/clock.h"
#include "domain/sandbox/sandboxes.h"
#include "domain/workspace/workspace.h"

/* This route has an error of its own, always with the same status. */
static void answer_failure(struct http_request *request, const struct error *failure)
{
    AUTO(text) struct text body = TEXT_INIT(AGENTPOD_REPLY_MAX);
    struct json_writer json;

    json_document_begin(&json, &body);
    json_add_boolean(&json, "success", false);
    json_add_text(&json, "error", failure->message);
    json_add_text(&json, "code", error_code_text(failure->code));
    json_add_text(&json, "sandboxId", http_request_parameter(request, "id"));
    (void) json_document_end(&json); /* a message is far smaller than the body may be */
    http_reply(request, 500, "application/json", text_string(&body), body.length);
}

static void synced(void *context, const struct error *failure,
                   const struct workspace_synced *result)
{
    struct http_request *request = pending_take(context);
    AUTO(text) struct text body = TEXT_INIT(AGENTPOD_REPLY_MAX);
    char time[CLOCK_TEXT_SIZE];
    struct json_writer json;

    if (!request)
        return;
    if (failure) {
        answer_failure(request, failure);
        return;
    }
    clock_format(result->time_ms, time);
    json_document_begin(&json, &body);
    json_add_boolean(&json, "success", true);
    json_add_text(&json, "sandboxId", http_request_parameter(request, "id"));
    json_add_integer(&json, "syncedFiles", (int64_t) result->files);
    json_add_integer(&json, "skippedFiles", (int64_t) result->skipped);
    json_add_integer(&json, "unchangedFiles", (int64_t) result->unchanged);
    json_add_integer(&json, "removedFiles", (int64_t) result->removed);
    json_add_integer(&json, "totalSize", (int64_t) result->total_bytes);
    json_add_text(&json, "timestamp", time);
    agentpod_reply(request, &json, &body);
}

void agentpod_sync(struct http_request *request)
{
    struct sandbox *sandbox = agentpod_find(request);

    if (sandbox)
        workspace_sync(api_of(request)->domain, request_caller(request), sandbox, true, synced,
                       pending_new(request));
}
