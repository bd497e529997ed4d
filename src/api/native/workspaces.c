#include "api/http/pending.h"
#include "api/native/body.h"
#include "api/native/handlers.h"
#include "api/native/schemas.h"
#include "base/auto.h"
#include "domain/sandbox/sandboxes.h"
#include "domain/workspace/workspace.h"
#include "json/json_measure.h"

/* --- sync ------------------------------------------------------------------------------------ */

static void synced(void *context, const struct error *failure,
                   const struct workspace_synced *result)
{
    AUTO(native_answer) struct native_answer answer;
    struct http_request *request = native_answer_pending(&answer, context, failure);

    if (!request)
        return;
    json_add_integer(&answer.json, "syncedFiles", (int64_t) result->files);
    json_add_integer(&answer.json, "unchangedFiles", (int64_t) result->unchanged);
    json_add_integer(&answer.json, "removedFiles", (int64_t) result->removed);
    json_add_integer(&answer.json, "skippedFiles", (int64_t) result->skipped);
    json_add_integer(&answer.json, "totalFiles", (int64_t) result->total_files);
    json_add_integer(&answer.json, "totalSize", (int64_t) result->total_bytes);
    native_add_time(&answer.json, "syncedAt", result->time_ms);
    json_add_thousandths(&answer.json, "pauseMs", result->pause_us);
    native_answer_send(&answer, request, 200);
}

static int read_sync(struct http_request *request, const struct json_place *body, struct error *err)
{
    static const char *const known[] = {"freeze"};
    struct sandbox *sandbox;
    bool freeze = true;

    if (json_known_fields(body, known, ARRAY_COUNT(known), err) < 0 ||
        json_field_boolean(body, "freeze", JSON_OPTIONAL, &freeze, err) < 0)
        return -1;
    sandbox = native_find_sandbox(request);
    if (sandbox)
        workspace_sync(api_of(request)->domain, request_caller(request), sandbox, freeze, synced,
                       pending_new(request));
    return 0;
}

void native_sync_workspace(struct http_request *request)
{
    native_take(request, read_sync);
}

/* --- looking --------------------------------------------------------------------------------- */

void native_get_workspace(struct http_request *request)
{
    struct sandbox *sandbox = native_find_sandbox(request);
    AUTO(native_answer) struct native_answer answer;
    struct workspace_state state;

    native_answer_begin(&answer);
    if (!sandbox)
        return;
    if (!workspace_find(api_of(request)->domain, &sandbox->id, &state)) {
        api_fail(request, ERR_NOT_FOUND, "the workspace of this sandbox was never synced");
        return;
    }
    json_add_integer(&answer.json, "totalFiles", (int64_t) state.files);
    json_add_integer(&answer.json, "totalSize", (int64_t) state.bytes);
    native_add_time(&answer.json, "syncedAt", state.synced_ms);
    native_answer_send(&answer, request, 200);
}

/* --- restore --------------------------------------------------------------------------------- */

static void restored(void *context, const struct error *failure, uint64_t files, uint64_t bytes)
{
    AUTO(native_answer) struct native_answer answer;
    struct http_request *request = native_answer_pending(&answer, context, failure);

    if (!request)
        return;
    json_add_integer(&answer.json, "restoredFiles", (int64_t) files);
    json_add_integer(&answer.json, "totalSize", (int64_t) bytes);
    native_answer_send(&answer, request, 200);
}

static int read_restore(struct http_request *request, const struct json_place *body,
                        struct error *err)
{
    struct sandbox *sandbox;

    if (json_known_fields(body, NULL, 0, err) < 0)
        return -1;
    sandbox = native_find_sandbox(request);
    if (sandbox)
        workspace_restore(api_of(request)->domain, request_caller(request), sandbox, restored,
                          pending_new(request));
    return 0;
}

void native_restore_workspace(struct http_request *request)
{
    native_take(request, read_restore);
}
