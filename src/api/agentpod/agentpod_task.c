/* /api/v2/agents: tasks made, waited for, read and cancelled. */
#include "api/agentpod/agentpod_task.h"

#include <string.h>

#include "api/agentpod/agentpod_parts.h"
#include "api/http/json_body.h"
#include "api/http/pending.h"
#include "base/auto.h"
#include "base/memory.h"
#include "base/number.h"
#include "domain/workspace/workspace.h"

#define REPLY_SLACK  ((size_t) 64 * 1024)
#define ROW_MAX      ((size_t) 8 * 1024 * 1024)
#define LIST_DEFAULT 50
#define LIST_MAX     100
#define OFFSET_MAX   (TASK_LIST_MAX - LIST_MAX)

/* A task that a request waits for. */
struct agentpod_run {
    struct api *api;
    struct http_request *request; /* NULL: the client left; the task goes on */
    struct caller caller;
    char label[AGENTPOD_LABEL_SIZE];
    char *sandbox, *session; /* owned */
    struct task_wait *wait;
};

/* --- the end of a run ------------------------------------------------------------------------ */

static void agentpod_run_free(struct agentpod_run *run)
{
    if (run->request) {
        run->request->data = NULL;
        run->request->on_gone = NULL;
    }
    if (run->wait)
        task_wait_end(run->wait);
    free(run->sandbox);
    free(run->session);
    free(run);
}

AUTO_DEFINE_PTR(agentpod_run, struct agentpod_run, agentpod_run_free);

static struct http_request *agentpod_run_take_request(struct agentpod_run *run)
{
    struct http_request *request = TAKE_PTR(run->request);

    if (request) {
        request->data = NULL;
        request->on_gone = NULL;
    }
    return request;
}

static void agentpod_run_client_left(struct http_request *request)
{
    struct agentpod_run *run = request->data;

    run->request = NULL;
    if (run->wait)
        agentpod_run_free(run); /* else somebody is about to answer, and finds nobody */
}

/* --- answers --------------------------------------------------------------------------------- */

static void agentpod_run_reply_failure(struct agentpod_run *run, const struct task *task)
{
    struct http_request *request = agentpod_run_take_request(run);
    AUTO(text) struct text body = TEXT_INIT(REPLY_SLACK);
    struct json_writer json;

    if (!request)
        return;
    json_document_begin(&json, &body);
    json_add_text(&json, "error", task->error_message);
    json_add_text(&json, "code", task->error_code);
    json_add_text(&json, "taskId", run->label);
    json_add_text(&json, "sandboxId", run->sandbox);
    json_add_text(&json, "sessionId", run->session);
    (void) json_document_end(&json); /* a message is far smaller than the body may be */
    http_reply(request, 500, "application/json", text_string(&body), body.length);
}

static void agentpod_run_read(void *context, const struct error *failure, const struct turn *turn)
{
    AUTO(agentpod_run) struct agentpod_run *run = context;
    struct http_request *request = agentpod_run_take_request(run);
    const char *parts = failure ? "[]" : turn->parts;
    AUTO(free) char *response = agentpod_parts_first_text(parts);
    AUTO(text) struct text body = TEXT_INIT(REPLY_SLACK + strlen(parts) + 6 * strlen(response));
    struct json_writer json;

    if (!request)
        return;
    if (failure) {
        http_reply_error(request, failure);
        return;
    }
    json_document_begin(&json, &body);
    json_add_text(&json, "taskId", run->label);
    json_add_text(&json, "sandboxId", run->sandbox);
    json_add_text(&json, "sessionId", run->session);
    json_add_text(&json, "response", response);
    json_key(&json, "parts");
    json_put_raw(&json, parts, strlen(parts));
    agentpod_reply(request, &json, &body);
}

static void agentpod_run_ended(void *context, const struct error *failure, const struct task *task)
{
    struct agentpod_run *run = context;
    struct http_request *request;

    run->wait = NULL;
    if (failure) {
        request = agentpod_run_take_request(run);
        if (request)
            http_reply_error(request, failure);
        agentpod_run_free(run);
        return;
    }
    run->session = mem_copy_text(agentpod_task_session(run->api, &run->caller, task));
    if (task->state == TASK_DONE) {
        turn_read(run->api->domain, &run->caller, NULL, task->turn.text, agentpod_run_read, run);
        return;
    }
    agentpod_run_reply_failure(run, task);
    agentpod_run_free(run);
}

/* --- making one ------------------------------------------------------------------------------ */

static void agentpod_run_created(void *context, const struct error *failure,
                                 const struct task *task, bool is_new)
{
    AUTO(agentpod_run) struct agentpod_run *run = context;
    struct http_request *request = run->request;

    (void) is_new;
    if (failure) {
        request = agentpod_run_take_request(run);
        if (request)
            http_reply_error(request, failure);
        return;
    }
    if (!request)
        return;
    run->wait =
        task_wait_begin(run->api->domain, &run->caller, task->id.text, agentpod_run_ended, run);
    (void) TAKE_PTR(run);
}

static int agentpod_task_take(struct http_request *request, const struct json_place *body,
                              struct error *err)
{
    struct agentpod_wish wish;
    struct agentpod_run *run;

    if (agentpod_wish_read(request, body, &wish, err) < 0)
        return -1;
    run = mem_alloc(sizeof(*run));
    run->api = api_of(request);
    run->request = request;
    run->caller = *request_caller(request);
    memcpy(run->label, wish.label, sizeof(run->label));
    run->sandbox = mem_copy_text(wish.spec.sandbox ? wish.spec.sandbox : wish.spec.sandbox_name);
    request->data = run;
    request->on_gone = agentpod_run_client_left;
    task_create(run->api->domain, &run->caller, &wish.spec, agentpod_run_created, run);
    return 0;
}

void agentpod_task_create(struct http_request *request)
{
    json_body_take(request, agentpod_task_take);
}

/* --- one of them ----------------------------------------------------------------------------- */

static void agentpod_task_reply(void *context, const struct error *failure, const struct task *task)
{
    struct http_request *request = pending_take(context);
    AUTO(text) struct text body = TEXT_INIT(ROW_MAX);
    struct json_writer json;

    if (!request)
        return;
    if (failure && failure->code == ERR_NOT_FOUND) {
        api_fail(request, ERR_NOT_FOUND, "Task not found");
        return;
    }
    if (failure) {
        http_reply_error(request, failure);
        return;
    }
    json_writer_init_text(&json, &body);
    agentpod_task_write(&json, api_of(request), request_caller(request), task);
    if (json_writer_finish(&json) == 0)
        http_reply(request, 200, "application/json", text_string(&body), body.length);
    else
        api_fail(request, ERR_INTERNAL, "the task does not fit into an answer");
}

void agentpod_task_get(struct http_request *request)
{
    const char *id = http_request_parameter(request, "task");
    const bool is_ours = id_is_valid(id);

    task_read(api_of(request)->domain, request_caller(request),
              is_ours ? id : agentpod_task_key(&request->pool, id), !is_ours, agentpod_task_reply,
              pending_new(request));
}

static void agentpod_task_found(void *context, const struct error *failure, const struct task *task)
{
    struct http_request *request = pending_take_good(context, failure);

    if (request)
        task_cancel(api_of(request)->domain, request_caller(request), task->id.text,
                    agentpod_task_reply, pending_new(request));
}

void agentpod_task_cancel(struct http_request *request)
{
    const char *id = http_request_parameter(request, "task");
    const bool is_ours = id_is_valid(id);

    task_read(api_of(request)->domain, request_caller(request),
              is_ours ? id : agentpod_task_key(&request->pool, id), !is_ours, agentpod_task_found,
              pending_new(request));
}

/* --- all of them ----------------------------------------------------------------------------- */

/* What is asked for, in the request's pool. */
struct agentpod_page_wish {
    struct pending *pending;
    int64_t limit, offset;
};

static void agentpod_tasks_reply(void *context, const struct error *failure,
                                 const struct task *tasks, size_t count, const char *next)
{
    AUTO(free) struct agentpod_page_wish *wish = context;
    struct http_request *request = pending_take_good(wish->pending, failure);
    AUTO(text) struct text body = TEXT_INIT(4 * ROW_MAX);
    struct json_writer json;

    (void) next;
    if (!request)
        return;
    json_document_begin(&json, &body);
    json_begin_array_at(&json, "tasks");
    for (size_t i = (size_t) wish->offset; i < count && body.length < ROW_MAX; i++)
        agentpod_task_write(&json, api_of(request), request_caller(request), &tasks[i]);
    json_end_array(&json);
    json_add_integer(&json, "limit", wish->limit);
    json_add_integer(&json, "offset", wish->offset);
    agentpod_reply(request, &json, &body);
}

static int agentpod_tasks_read(struct http_request *request, const char *name, int64_t least,
                               int64_t most, int64_t *ret_number, struct error *err)
{
    const char *text = http_request_query(request, name);

    if (!text || number_parse(text, least, most, ret_number) == 0)
        return 0;
    return error_set(err, ERR_INVALID, 0, "'%s' must be a number from %lld to %lld", name,
                     (long long) least, (long long) most);
}

void agentpod_tasks_list(struct http_request *request)
{
    AUTO(free) struct agentpod_page_wish *wish = mem_alloc(sizeof(*wish));
    const struct caller *caller = request_caller(request);
    struct task_filter filter = {.owner = &caller->owner};
    struct error error = ERROR_INIT;

    wish->limit = LIST_DEFAULT;
    if (agentpod_tasks_read(request, "limit", 1, LIST_MAX, &wish->limit, &error) < 0 ||
        agentpod_tasks_read(request, "offset", 0, OFFSET_MAX, &wish->offset, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    filter.limit = (size_t) (wish->limit + wish->offset);
    wish->pending = pending_new(request);
    task_list(api_of(request)->domain, caller, &filter, agentpod_tasks_reply, TAKE_PTR(wish));
}

/* --- providers ------------------------------------------------------------------------------- */

static void agentpod_providers_add(struct json_writer *json, const char *name, bool is_available,
                                   const char *description)
{
    json_begin_object_at(json, name);
    json_add_boolean(json, "available", is_available);
    json_add_text(json, "description", description);
    json_end_object(json);
}

void agentpod_providers_list(struct http_request *request)
{
    const char *all = http_request_query(request, "all");
    AUTO(text) struct text body = TEXT_INIT(AGENTPOD_REPLY_MAX);
    struct json_writer json;

    json_document_begin(&json, &body);
    agentpod_providers_add(&json, "docker", true, "Full development environment");
    agentpod_providers_add(&json, "cloudflare", api_of(request)->providers->has_cloudflare,
                           "Lightweight, on-demand sandboxes");
    if (all && strcmp(all, "true") == 0)
        agentpod_providers_add(&json, "burrow", true,
                               "The same sandbox, destroyed when its task is over");
    agentpod_reply(request, &json, &body);
}

/* --- sync ------------------------------------------------------------------------------------ */

static void agentpod_agents_synced(void *context, const struct error *failure,
                                   const struct workspace_synced *synced)
{
    struct http_request *request = pending_take_good(context, failure);
    AUTO(text) struct text body = TEXT_INIT(AGENTPOD_REPLY_MAX);
    struct json_writer json;

    if (!request)
        return;
    json_document_begin(&json, &body);
    json_add_boolean(&json, "success", true);
    json_add_integer(&json, "syncedFiles", (int64_t) synced->files);
    json_add_integer(&json, "skippedFiles", (int64_t) synced->skipped);
    json_add_integer(&json, "totalSize", (int64_t) synced->total_bytes);
    agentpod_reply(request, &json, &body);
}

void agentpod_agents_sync(struct http_request *request)
{
    struct sandbox *sandbox = agentpod_find(request);

    if (sandbox)
        workspace_sync(api_of(request)->domain, request_caller(request), sandbox, true,
                       agentpod_agents_synced, pending_new(request));
}
