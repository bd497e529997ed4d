/* /workflow: executions of workflows, begun, looked at, held and ended. */
#include "api/agentpod/agentpod_internal.h"
#include "api/http/json_body.h"
#include "api/http/pending.h"
#include "base/auto.h"
#include "domain/workflow/workflow.h"

#define STATUS_MAX ((size_t) 4 * 1024 * 1024)
#define TYPE_MAX   ((size_t) 64)

/* --- validate -------------------------------------------------------------------------------- */

/* {"workflow": {...}}; its reasons in `ret_errors`, owned. */
static int agentpod_workflow_check(const struct json_place *body, json_t **ret_errors,
                                   struct error *err)
{
    struct json_place workflow;

    if (json_field_object(body, "workflow", JSON_REQUIRED, &workflow, err) < 0)
        return -1;
    *ret_errors = json_array();
    workflow_check(workflow.value, *ret_errors);
    return 0;
}

static void agentpod_workflow_reply_errors(struct http_request *request, int status,
                                           const char *error, json_t *errors)
{
    AUTO(text) struct text body = TEXT_INIT(AGENTPOD_REPLY_MAX * 4);
    struct json_writer json;

    json_document_begin(&json, &body);
    if (error)
        json_add_text(&json, "error", error);
    else
        json_add_boolean(&json, "valid", json_array_size(errors) == 0);
    json_key(&json, "errors");
    json_put_value(&json, errors);
    if (json_document_end(&json) == 0)
        http_reply(request, status, "application/json", text_string(&body), body.length);
    else
        api_fail(request, ERR_TOO_LARGE, "there are too many errors to tell");
}

static int agentpod_workflow_read_check(struct http_request *request, const struct json_place *body,
                                        struct error *err)
{
    AUTO(json) json_t *errors = NULL;

    if (agentpod_workflow_check(body, &errors, err) < 0)
        return -1;
    agentpod_workflow_reply_errors(request, 200, NULL, errors);
    return 0;
}

void agentpod_workflow_validate(struct http_request *request)
{
    json_body_take(request, agentpod_workflow_read_check);
}

/* --- execute --------------------------------------------------------------------------------- */

static void agentpod_workflow_started(void *context, const struct error *failure,
                                      const struct workflow_shown *shown)
{
    struct http_request *request = pending_take_good(context, failure);
    AUTO(text) struct text body = TEXT_INIT(AGENTPOD_REPLY_MAX);
    struct json_writer json;

    if (!request)
        return;
    json_document_begin(&json, &body);
    json_add_text(&json, "executionId", shown->name);
    json_add_text(&json, "instanceId", shown->id.text);
    json_add_text(&json, "status", "queued");
    (void) json_document_end(&json); /* names are short */
    http_reply(request, 202, "application/json", text_string(&body), body.length);
}

static int agentpod_workflow_read_start(struct http_request *request, const struct json_place *body,
                                        struct error *err)
{
    struct workflow_spec spec = {.trigger_type = "manual"};
    AUTO(json) json_t *errors = NULL;
    struct json_place trigger;

    if (json_field_text(body, "executionId", JSON_REQUIRED, WORKFLOW_NAME_MAX, &spec.name, err) <
            0 ||
        json_field_text(body, "workflowId", JSON_OPTIONAL, WORKFLOW_NAME_MAX, &spec.workflow_id,
                        err) < 0 ||
        json_field_text(body, "triggerType", JSON_OPTIONAL, TYPE_MAX, &spec.trigger_type, err) <
            0 ||
        json_field_object(body, "triggerData", JSON_OPTIONAL, &trigger, err) < 0 ||
        agentpod_workflow_check(body, &errors, err) < 0)
        return -1;
    if (json_array_size(errors)) {
        agentpod_workflow_reply_errors(request, 400, "Invalid workflow", errors);
        return 0;
    }
    spec.workflow = json_object_get(body->value, "workflow");
    spec.trigger = trigger.value;
    workflow_start(api_of(request)->domain, request_caller(request), &spec,
                   agentpod_workflow_started, pending_new(request));
    return 0;
}

void agentpod_workflow_execute(struct http_request *request)
{
    json_body_take(request, agentpod_workflow_read_start);
}

/* --- status ---------------------------------------------------------------------------------- */

static void agentpod_workflow_told(void *context, const struct error *failure,
                                   const struct workflow_shown *shown)
{
    struct http_request *request = pending_take_good(context, failure);
    AUTO(text) struct text body = TEXT_INIT(STATUS_MAX);
    struct json_writer json;

    if (!request)
        return;
    json_document_begin(&json, &body);
    json_add_text(&json, "executionId", shown->name);
    json_add_text(&json, "status", workflow_state_text(shown->state));
    json_begin_object_at(&json, "output");
    json_add_boolean(&json, "success", shown->state == WORKFLOW_COMPLETE);
    json_key(&json, "steps");
    json_put_value(&json, shown->steps);
    json_end_object(&json);
    json_add_text(&json, "error", shown->error);
    agentpod_reply(request, &json, &body);
}

void agentpod_workflow_status(struct http_request *request)
{
    workflow_read(api_of(request)->domain, request_caller(request),
                  http_request_parameter(request, "executionId"), agentpod_workflow_told,
                  pending_new(request));
}

/* --- pause, resume, terminate ---------------------------------------------------------------- */

/* What was wished for, which the answer says: an execution may be farther by then. */
static void agentpod_workflow_reply_state(struct pending *pending, const struct error *failure,
                                          const char *status)
{
    struct http_request *request = pending_take_good(pending, failure);
    AUTO(text) struct text body = TEXT_INIT(AGENTPOD_REPLY_MAX);
    struct json_writer json;

    if (!request)
        return;
    json_document_begin(&json, &body);
    json_add_text(&json, "executionId", http_request_parameter(request, "executionId"));
    json_add_text(&json, "status", status);
    agentpod_reply(request, &json, &body);
}

static void agentpod_workflow_paused(void *context, const struct error *failure,
                                     const struct workflow_shown *shown)
{
    (void) shown;
    agentpod_workflow_reply_state(context, failure, "paused");
}

static void agentpod_workflow_resumed(void *context, const struct error *failure,
                                      const struct workflow_shown *shown)
{
    (void) shown;
    agentpod_workflow_reply_state(context, failure, "running");
}

static void agentpod_workflow_terminated(void *context, const struct error *failure,
                                         const struct workflow_shown *shown)
{
    (void) shown;
    agentpod_workflow_reply_state(context, failure, "terminated");
}

static void agentpod_workflow_change(struct http_request *request, enum workflow_wish wish,
                                     workflow_done *done)
{
    workflow_change(api_of(request)->domain, request_caller(request),
                    http_request_parameter(request, "executionId"), wish, done,
                    pending_new(request));
}

void agentpod_workflow_pause(struct http_request *request)
{
    agentpod_workflow_change(request, WORKFLOW_PAUSE, agentpod_workflow_paused);
}

void agentpod_workflow_resume(struct http_request *request)
{
    agentpod_workflow_change(request, WORKFLOW_RESUME, agentpod_workflow_resumed);
}

void agentpod_workflow_terminate(struct http_request *request)
{
    agentpod_workflow_change(request, WORKFLOW_TERMINATE, agentpod_workflow_terminated);
}
