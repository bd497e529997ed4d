/* What an execution does: which nodes are next, what they give, and that it is kept. */
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/event/event.h"
#include "domain/workflow/workflow_internal.h"
#include "domain/workflow/workflow_node.h"
#include "domain/workflow/workflow_value.h"
#include "json/json_read.h"

#define RETRY_NS      UINT64_C(5000000000)
#define WAIT_MAX_MS   (UINT64_C(24) * 3600 * 1000)
#define NEWS_MAX      50
#define EVENT_MAX     ((size_t) 6 * 1024)
#define SYSTEM_STREAM "system"

/* --- kept ------------------------------------------------------------------------------------ */

static void workflow_add_event(struct workflow_run *run, struct store_transaction *rows,
                               const char *type)
{
    const struct caller caller = {.scope = CALLER_WRITE, .owner = run->owner};
    AUTO(json)
    json_t *data = json_pack("{s:s, s:s, s:s}", "executionId", run->name, "workflowId",
                             run->workflow_id, "status", workflow_state_text(run->state));
    AUTO(free) char *text = NULL;

    if (json_array_size(run->news))
        (void) json_object_set(data, "completedSteps", run->news);
    if (run->error)
        (void) json_object_set_new(data, "error", json_string(run->error));
    text = json_dumps(data, JSON_COMPACT);
    if (text && strlen(text) <= EVENT_MAX)
        event_add(run->domain, rows, &caller, &run->owner, SYSTEM_STREAM, type, text);
}

static void workflow_kept(void *context, const struct error *failure,
                          const struct store_receipt *receipt)
{
    struct workflow_run *run = context;

    run->is_keeping = false;
    if (run->is_gone) {
        workflow_run_free(run);
        return;
    }
    if (!failure) {
        event_kept(run->domain, receipt);
        run->retry_ns = 0;
    } else {
        run->is_dirty = true;
        run->retry_ns = domain_now_ns(run->domain) + RETRY_NS; /* the tick tries again */
    }
    if (run->is_dirty && !failure)
        workflow_keep(run);
    else if (!failure && workflow_state_is_over(run->state))
        workflow_run_free(run);
    else if (!failure)
        workflow_advance(run);
}

void workflow_keep(struct workflow_run *run)
{
    struct store_transaction *rows;

    run->is_dirty = true;
    if (run->is_keeping || run->domain->stage != DOMAIN_OPEN)
        return;
    run->is_dirty = false;
    run->is_keeping = true;
    run->updated_ms = domain_wall_ms(run->domain);
    rows = store_begin(run->domain->options.store);
    workflow_put(rows, run);
    if (json_array_size(run->news))
        workflow_add_event(run, rows, "workflow.execution.step_completed");
    (void) json_array_clear(run->news);
    if (run->event)
        workflow_add_event(run, rows, run->event);
    run->event = NULL;
    domain_commit(run->domain, rows, workflow_kept, run);
}

/* --- results --------------------------------------------------------------------------------- */

void workflow_finish(struct workflow_run *run, enum workflow_state state, const char *error)
{
    if (workflow_state_is_over(run->state))
        return;
    run->state = state;
    run->ended_ms = domain_wall_ms(run->domain);
    if (error && !run->error)
        run->error = mem_copy_text(error);
    run->event =
        state == WORKFLOW_COMPLETE ? "workflow.execution.completed" : "workflow.execution.failed";
    workflow_asks_cancel(run);
    workflow_keep(run);
}

static json_t *workflow_node_of(const struct workflow_run *run, const char *id)
{
    json_t *node;
    size_t i;

    json_array_foreach (json_object_get(run->graph, "nodes"), i, node) {
        if (strcmp(json_string_value(json_object_get(node, "id")), id) == 0)
            return node;
    }
    return NULL;
}

static const char *workflow_type_of(const struct workflow_run *run, const char *id)
{
    const char *type = json_string_value(json_object_get(workflow_node_of(run, id), "type"));

    return type ? type : "";
}

static bool workflow_is_caught(const struct workflow_run *run, const char *node)
{
    json_t *edge;
    size_t i;

    json_array_foreach (json_object_get(run->graph, "edges"), i, edge) {
        const char *to = json_string_value(json_object_get(edge, "to"));

        if (strcmp(json_string_value(json_object_get(edge, "from")), node) == 0 &&
            (strcmp(json_string_value(json_object_get(edge, "type")), "error") == 0 ||
             strcmp(workflow_type_of(run, to), "error-handler") == 0))
            return true;
    }
    return false;
}

/* `data` is taken; with `error` there is none. */
void workflow_record(struct workflow_run *run, const char *node, json_t *data, const char *error)
{
    json_t *step = error ? json_pack("{s:b, s:s}", "success", 0, "error", error)
                         : json_pack("{s:b, s:o}", "success", 1, "data", data);

    (void) json_object_set_new(run->steps, node, step);
    (void) json_object_del(run->marks, node);
    if (json_array_size(run->news) < NEWS_MAX)
        (void) json_array_append_new(run->news, json_string(node));
    run->is_dirty = true;
    if (workflow_json_size(run->steps) > WORKFLOW_STEPS_MAX) {
        (void) json_object_set_new(run->steps, node,
                                   json_pack("{s:b, s:s}", "success", 0, "error", "too large"));
        workflow_finish(run, WORKFLOW_ERRORED, "the results of all nodes together are too large");
        return;
    }
    if (error && !workflow_is_caught(run, node))
        workflow_finish(run, WORKFLOW_ERRORED, error);
}

/* --- which nodes are next -------------------------------------------------------------------- */

enum workflow_readiness { WORKFLOW_NOT_YET, WORKFLOW_READY, WORKFLOW_SKIP };

static bool workflow_takes(json_t *data, const char *type)
{
    const char *branch = json_string_value(json_object_get(data, "branch"));
    json_t *other;
    size_t i;

    if (branch)
        return strcmp(branch, type) == 0;
    json_array_foreach (json_object_get(data, "branches"), i, other) {
        if (json_is_string(other) && strcmp(json_string_value(other), type) == 0)
            return true;
    }
    return false;
}

/* Whether what comes behind an edge is to be done. Its source has a result. */
static bool workflow_edge_is_live(const struct workflow_run *run, json_t *edge)
{
    const char *from = json_string_value(json_object_get(edge, "from"));
    const char *to = json_string_value(json_object_get(edge, "to"));
    const char *type = json_string_value(json_object_get(edge, "type"));
    const char *source = workflow_type_of(run, from);
    json_t *step = json_object_get(run->steps, from), *data = json_object_get(step, "data");
    const bool is_error = strcmp(type, "error") == 0;

    if (!json_is_true(json_object_get(step, "success")))
        return is_error || strcmp(workflow_type_of(run, to), "error-handler") == 0;
    if (is_error || json_is_true(json_object_get(data, "skipped")))
        return false;
    if (strcmp(source, "condition") == 0 || strcmp(source, "switch") == 0)
        return workflow_takes(data, type);
    return true;
}

static enum workflow_readiness workflow_readiness_of(const struct workflow_run *run, const char *id)
{
    bool has_edges = false, is_live = false;
    json_t *edge;
    size_t i;

    json_array_foreach (json_object_get(run->graph, "edges"), i, edge) {
        if (strcmp(json_string_value(json_object_get(edge, "to")), id) != 0)
            continue;
        has_edges = true;
        if (!json_object_get(run->steps, json_string_value(json_object_get(edge, "from"))))
            return WORKFLOW_NOT_YET;
        is_live = is_live || workflow_edge_is_live(run, edge);
    }
    return is_live || !has_edges ? WORKFLOW_READY : WORKFLOW_SKIP;
}

/* --- doing them ------------------------------------------------------------------------------ */

static void workflow_do_compute(struct workflow_run *run, const struct workflow_kind *kind,
                                const struct workflow_input *input, const char *id)
{
    struct error error = ERROR_INIT;
    json_t *data = kind->compute(input, &error);

    workflow_record(run, id, data, data ? NULL : error.message);
}

static void workflow_do_wait(struct workflow_run *run, json_t *parameters, const char *id)
{
    json_t *duration = json_object_get(parameters, "duration");
    uint64_t ms = 0;
    int64_t wake;

    if (!workflow_value_duration(duration, &ms) || ms > WAIT_MAX_MS) {
        workflow_record(run, id, NULL, "duration must be a time of at most 24 hours, like \"30s\"");
        return;
    }
    wake = domain_wall_ms(run->domain) + (int64_t) ms;
    (void) json_object_set_new(run->marks, id,
                               json_pack("{s:o, s:o}", "wakeAt", json_integer(wake), "waitedMs",
                                         json_integer((int64_t) ms)));
    run->is_dirty = true;
}

static void workflow_do_approve(struct workflow_run *run, json_t *parameters, const char *id)
{
    const char *message = json_string_value(json_object_get(parameters, "message"));

    if (!message || !*message) {
        workflow_record(run, id, NULL, "Approval message is required");
        return;
    }
    (void) json_object_set_new(run->marks, id,
                               json_pack("{s:b, s:s}", "approval", 1, "message", message));
    run->state = WORKFLOW_PAUSED;
    run->event = "workflow.execution.waiting";
    run->is_dirty = true;
}

static void workflow_do(struct workflow_run *run, json_t *node, const char *id)
{
    const struct workflow_kind *kind = workflow_kind_find(workflow_type_of(run, id));
    AUTO(json)
    json_t *scope = json_pack("{s:O, s:O}", "trigger", run->trigger, "steps", run->steps);
    struct error error = ERROR_INIT;
    AUTO(json)
    json_t *parameters = workflow_value_fill(json_object_get(node, "parameters"), scope, &error);
    char time[CLOCK_TEXT_SIZE];
    const struct workflow_input input = {node, parameters, scope, time};

    clock_format(domain_wall_ms(run->domain), time);
    if (json_is_true(json_object_get(node, "disabled")))
        workflow_record(run, id, json_pack("{s:b}", "disabled", 1), NULL);
    else if (!parameters || !kind || kind->missing)
        workflow_record(run, id, NULL, parameters ? "there is no such node here" : error.message);
    else if (kind->work == WORKFLOW_COMPUTE)
        workflow_do_compute(run, kind, &input, id);
    else if (kind->work == WORKFLOW_WAIT)
        workflow_do_wait(run, parameters, id);
    else if (kind->work == WORKFLOW_APPROVE)
        workflow_do_approve(run, parameters, id);
    else
        workflow_ask_begin(run, node, parameters);
}

void workflow_ask_again(struct workflow_run *run, const char *id)
{
    json_t *node = workflow_node_of(run, id);
    AUTO(json)
    json_t *scope = json_pack("{s:O, s:O}", "trigger", run->trigger, "steps", run->steps);
    struct error error = ERROR_INIT;
    AUTO(json)
    json_t *parameters = workflow_value_fill(json_object_get(node, "parameters"), scope, &error);

    if (parameters)
        workflow_ask_begin(run, node, parameters);
    else
        workflow_record(run, id, NULL, error.message);
}

static void workflow_begin(struct workflow_run *run)
{
    if (run->state != WORKFLOW_QUEUED)
        return;
    run->state = WORKFLOW_RUNNING;
    run->event = "workflow.execution.started";
    run->is_dirty = true;
}

/* Whether something was done. */
static bool workflow_pass(struct workflow_run *run)
{
    bool has_changed = false;
    json_t *node;
    size_t i;

    json_array_foreach (json_object_get(run->graph, "nodes"), i, node) {
        const char *id = json_string_value(json_object_get(node, "id"));
        enum workflow_readiness readiness;

        if (run->state != WORKFLOW_RUNNING)
            return has_changed;
        if (json_object_get(run->steps, id) || json_object_get(run->marks, id))
            continue;
        readiness = workflow_readiness_of(run, id);
        if (readiness == WORKFLOW_SKIP)
            workflow_record(run, id, json_pack("{s:b}", "skipped", 1), NULL);
        else if (readiness == WORKFLOW_READY)
            workflow_do(run, node, id);
        has_changed = has_changed || readiness != WORKFLOW_NOT_YET;
    }
    return has_changed;
}

void workflow_advance(struct workflow_run *run)
{
    if (run->is_advancing || run->is_gone || !run->is_kept || run->domain->stage != DOMAIN_OPEN)
        return;
    run->is_advancing = true;
    workflow_begin(run);
    while (run->state == WORKFLOW_RUNNING && workflow_pass(run))
        ;
    run->is_advancing = false;
    if (run->state == WORKFLOW_RUNNING &&
        json_object_size(run->steps) == json_array_size(json_object_get(run->graph, "nodes")))
        workflow_finish(run, WORKFLOW_COMPLETE, NULL);
    else if (run->is_dirty)
        workflow_keep(run);
}
