#include "domain/workflow/workflow.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/domain_change.h"
#include "domain/domain_modules.h"
#include "domain/domain_share.h"
#include "domain/event/event.h"
#include "domain/workflow/workflow_graph.h"
#include "domain/workflow/workflow_internal.h"
#include "json/json_read.h"

#define HOUR_NS UINT64_C(3600000000000)

/* --- in memory ------------------------------------------------------------------------------- */

struct workflow_run *workflow_run_new(struct domain *domain)
{
    struct workflow_run *run = mem_alloc(sizeof(*run));

    run->domain = domain;
    run->graph = json_object();
    run->trigger = json_object();
    run->steps = json_object();
    run->marks = json_object();
    run->news = json_array();
    list_init(&run->link);
    list_init(&run->asks);
    return run;
}

void workflow_run_free(struct workflow_run *run)
{
    json_t *const values[] = {run->graph, run->trigger, run->steps, run->marks, run->news};

    workflow_asks_leave(run);
    list_remove(&run->link);
    share_release(&run->claim);
    for (size_t i = 0; i < ARRAY_COUNT(values); i++)
        json_decref(values[i]);
    free(run->name);
    free(run->workflow_id);
    free(run->error);
    free(run);
}

AUTO_DEFINE_PTR(workflow_run, struct workflow_run, workflow_run_free);

/* Executions are of no sandbox: whoever may see but one sees none of them. */
static bool workflow_is_narrow(const struct caller *caller)
{
    return caller->scope == CALLER_SANDBOX || caller->scope == CALLER_PORT;
}

struct workflow_run *workflow_run_find(const struct domain *domain, const struct caller *caller,
                                       const char *name)
{
    if (workflow_is_narrow(caller))
        return NULL;
    LIST_EACH (&domain->workflows->all, at) {
        struct workflow_run *run = CONTAINER_OF(at, struct workflow_run, link);

        if (run->is_kept && caller_sees_owner(caller, &run->owner) &&
            ((strcmp(run->name, name) == 0 && id_equal(&run->owner, &caller->owner)) ||
             strcmp(run->id.text, name) == 0))
            return run;
    }
    return NULL;
}

static struct workflow_shown workflow_show(const struct workflow_run *run)
{
    return (struct workflow_shown){.id = run->id,
                                   .name = run->name,
                                   .state = run->state,
                                   .steps = run->steps,
                                   .error = run->error};
}

/* --- begun ----------------------------------------------------------------------------------- */

void workflow_check(json_t *workflow, json_t *errors)
{
    AUTO(json) json_t *graph = workflow_graph_normal(workflow);

    workflow_graph_check(graph, errors);
}

struct workflow_starting {
    struct domain_change base;
    struct workflow_run *run; /* NULL when it is refused */
    workflow_done *done;
    void *context;
};

static void workflow_started(struct domain_change *base, const struct error *failure,
                             const struct store_receipt *receipt)
{
    AUTO(free)
    struct workflow_starting *starting = CONTAINER_OF(base, struct workflow_starting, base);
    struct workflow_run *run = starting->run;
    struct error error;
    struct workflow_shown shown;

    (void) receipt;
    if (failure) {
        error = *failure;
        if (error.code == ERR_CONFLICT)
            (void) error_set(&error, ERR_CONFLICT, 0,
                             "there is an execution of that id already: give another executionId");
        if (run)
            workflow_run_free(run);
        starting->done(starting->context, &error, NULL);
        return;
    }
    run->is_kept = true;
    shown = workflow_show(run);
    starting->done(starting->context, NULL, &shown);
    workflow_advance(run);
}

static int workflow_start_check(struct domain *domain, const struct caller *caller,
                                const struct workflow_spec *spec, json_t *graph, struct error *err)
{
    AUTO(json) json_t *errors = json_array();

    if (!domain_is_open(domain, err) ||
        domain_check_name(spec->name, WORKFLOW_NAME_MAX, "executionId", err) < 0)
        return -1;
    if (!caller_may_write(caller))
        return error_set(err, ERR_FORBIDDEN, 0, "this key may not run workflows");
    workflow_graph_check(graph, errors);
    if (json_array_size(errors))
        return error_set(err, ERR_INVALID, 0, "%s", json_string_value(json_array_get(errors, 0)));
    if (workflow_json_size(graph) + (spec->trigger ? workflow_json_size(spec->trigger) : 0) >
        WORKFLOW_SPEC_MAX)
        return error_set(err, ERR_TOO_LARGE, 0,
                         "a workflow and its triggerData may have %zu kB together",
                         WORKFLOW_SPEC_MAX / 1024);
    return domain_check_share(domain, &caller->owner, SHARE_LIVE_WORKFLOWS, 1, err);
}

static struct workflow_run *workflow_start_run(struct domain *domain, const struct caller *caller,
                                               const struct workflow_spec *spec, json_t *graph)
{
    struct workflow_run *run = workflow_run_new(domain);

    run->id = id_new();
    run->owner = caller->owner;
    run->name = mem_copy_text(spec->name);
    run->workflow_id = mem_copy_text(spec->workflow_id ? spec->workflow_id : "");
    json_decref(run->graph);
    run->graph = json_incref(graph);
    (void) json_object_set_new(run->trigger, "type",
                               json_string(spec->trigger_type ? spec->trigger_type : "manual"));
    (void) json_object_set_new(run->trigger, "data",
                               spec->trigger ? json_deep_copy(spec->trigger) : json_object());
    run->created_ms = run->updated_ms = domain_wall_ms(domain);
    domain_claim_anyway(domain, &run->owner, SHARE_LIVE_WORKFLOWS, 1, &run->claim);
    list_append(&domain->workflows->all, &run->link);
    return run;
}

void workflow_start(struct domain *domain, const struct caller *caller,
                    const struct workflow_spec *spec, workflow_done *done, void *context)
{
    struct workflow_starting *starting =
        domain_change_new(sizeof(*starting), domain, caller, workflow_started);
    AUTO(json) json_t *graph = workflow_graph_normal(spec->workflow);
    struct store_transaction *rows;

    starting->done = done;
    starting->context = context;
    if (workflow_start_check(domain, caller, spec, graph, &starting->base.failure) < 0) {
        domain_change_refuse(&starting->base);
        return;
    }
    starting->run = workflow_start_run(domain, caller, spec, graph);
    rows = store_begin(domain->options.store);
    workflow_put(rows, starting->run);
    domain_change_commit(&starting->base, rows);
}

/* --- read ------------------------------------------------------------------------------------ */

struct workflow_reading {
    struct domain *domain;
    struct caller caller;
    workflow_done *done;
    void *context;
    struct error failure; /* for an answer that is known at once */
    char *name;           /* owned; of one in memory */
    struct domain_task task;
};

static void workflow_reading_free(struct workflow_reading *reading)
{
    free(reading->name);
    free(reading);
}

AUTO_DEFINE_PTR(workflow_reading, struct workflow_reading, workflow_reading_free);

static void workflow_read_rows(void *context, const struct error *failure,
                               const struct store_rows *rows)
{
    AUTO(workflow_reading) struct workflow_reading *reading = context;
    AUTO(workflow_run) struct workflow_run *run = workflow_run_new(reading->domain);
    struct error error = ERROR_INIT;
    struct workflow_shown shown;

    if (failure)
        error = *failure;
    else if (!rows->count)
        (void) error_set(&error, ERR_NOT_FOUND, 0, "Workflow instance not found");
    if (error.code != ERR_NONE || workflow_from_row(run, rows->rows[0], &error) < 0) {
        reading->done(reading->context, &error, NULL);
        return;
    }
    shown = workflow_show(run);
    reading->done(reading->context, NULL, &shown);
}

static void workflow_read_stored(struct workflow_reading *reading)
{
    const struct store_condition conditions[] = {
        {STORE_WORKFLOW_OWNER, STORE_EQUAL, store_text(reading->caller.owner.text)},
        {STORE_WORKFLOW_NAME, STORE_EQUAL, store_text(reading->name)},
    };
    const struct store_query query = {.kind = STORE_WORKFLOW,
                                      .conditions = conditions,
                                      .condition_count = ARRAY_COUNT(conditions),
                                      .order = STORE_WORKFLOW_ID,
                                      .limit = 1};

    domain_find(reading->domain, &query, workflow_read_rows, reading);
}

/* It may have ended since it was asked for: then its row says how. */
static void workflow_read_now(struct domain_task *task)
{
    struct workflow_reading *reading = CONTAINER_OF(task, struct workflow_reading, task);
    struct workflow_run *run = workflow_run_find(reading->domain, &reading->caller, reading->name);
    struct workflow_shown shown;

    if (reading->failure.code != ERR_NONE) {
        reading->done(reading->context, &reading->failure, NULL);
        workflow_reading_free(reading);
        return;
    }
    if (!run) {
        workflow_read_stored(reading);
        return;
    }
    shown = workflow_show(run);
    reading->done(reading->context, NULL, &shown);
    workflow_reading_free(reading);
}

static struct workflow_reading *workflow_reading_new(struct domain *domain,
                                                     const struct caller *caller, const char *name,
                                                     workflow_done *done, void *context)
{
    struct workflow_reading *reading = mem_alloc(sizeof(*reading));

    reading->domain = domain;
    reading->caller = *caller;
    reading->done = done;
    reading->context = context;
    reading->name = mem_copy_text(name);
    return reading;
}

void workflow_read(struct domain *domain, const struct caller *caller, const char *name,
                   workflow_done *done, void *context)
{
    struct workflow_reading *reading = workflow_reading_new(domain, caller, name, done, context);

    if (domain_is_open(domain, &reading->failure) && workflow_is_narrow(caller))
        (void) error_set(&reading->failure, ERR_NOT_FOUND, 0, "Workflow instance not found");
    domain_defer(domain, &reading->task, workflow_read_now);
}

/* --- changed --------------------------------------------------------------------------------- */

static void workflow_approve(struct workflow_run *run, const struct caller *caller)
{
    char time[CLOCK_TEXT_SIZE];
    const char *node;
    json_t *mark;
    void *next;

    clock_format(domain_wall_ms(run->domain), time);
    json_object_foreach_safe(run->marks, next, node, mark)
    {
        AUTO(free) char *id = mem_copy_text(node);

        if (json_is_true(json_object_get(mark, "approval")))
            workflow_record(run, id,
                            json_pack("{s:s, s:b, s:s, s:s}", "status", "resolved", "approved", 1,
                                      "approvedBy", caller->owner.text, "resolvedAt", time),
                            NULL);
    }
}

static void workflow_change_run(struct workflow_run *run, const struct caller *caller,
                                enum workflow_wish wish)
{
    if (wish == WORKFLOW_TERMINATE) {
        workflow_finish(run, WORKFLOW_TERMINATED, "terminated");
        return;
    }
    if (wish == WORKFLOW_PAUSE) {
        run->state = WORKFLOW_PAUSED;
        workflow_keep(run);
        return;
    }
    workflow_approve(run, caller);
    if (run->state == WORKFLOW_PAUSED)
        run->state = WORKFLOW_RUNNING;
    workflow_keep(run);
}

/* What is over says so; what is nowhere is not found. */
static void workflow_change_late(void *context, const struct error *failure,
                                 const struct workflow_shown *shown)
{
    AUTO(workflow_reading) struct workflow_reading *reading = context;
    struct error error = failure ? *failure : (struct error) ERROR_INIT;

    if (!failure)
        (void) error_set(&error, ERR_CONFLICT, 0, "the execution is over: it is %s",
                         workflow_state_text(shown->state));
    reading->done(reading->context, &error, NULL);
}

void workflow_change(struct domain *domain, const struct caller *caller, const char *name,
                     enum workflow_wish wish, workflow_done *done, void *context)
{
    struct workflow_reading *reading = workflow_reading_new(domain, caller, name, done, context);
    struct workflow_run *run =
        domain_is_open(domain, &reading->failure) ? workflow_run_find(domain, caller, name) : NULL;

    if (run && !caller_may_write(caller))
        (void) error_set(&reading->failure, ERR_FORBIDDEN, 0, "this key may not change workflows");
    else if (run && !workflow_state_is_over(run->state))
        workflow_change_run(run, caller, wish);
    else if (reading->failure.code == ERR_NONE) {
        workflow_read(domain, caller, name, workflow_change_late, reading);
        return;
    }
    domain_defer(domain, &reading->task, workflow_read_now);
}

/* --- life ------------------------------------------------------------------------------------ */

static void workflows_begin(struct domain *domain)
{
    domain->workflows = mem_alloc(sizeof(*domain->workflows));
    list_init(&domain->workflows->all);
    domain->workflows->old = (struct retention){.kind = STORE_WORKFLOW,
                                                .time = STORE_WORKFLOW_ENDED,
                                                .kept_ms = WORKFLOW_KEPT_MS,
                                                .every_ns = HOUR_NS};
}

static int workflows_load_one(struct domain *domain, const struct store_value *row,
                              struct error *err)
{
    AUTO(workflow_run) struct workflow_run *run = workflow_run_new(domain);

    if (workflow_from_row(run, row, err) < 0)
        return -1;
    if (workflow_state_is_over(run->state))
        return 0;
    run->is_kept = true;
    domain_claim_anyway(domain, &run->owner, SHARE_LIVE_WORKFLOWS, 1, &run->claim);
    list_append(&domain->workflows->all, &run->link);
    (void) TAKE_PTR(run);
    return 0;
}

static void workflows_load(struct domain *domain, domain_done *done, void *context)
{
    domain_load(domain, STORE_WORKFLOW, STORE_WORKFLOW_ID, workflows_load_one, done, context);
}

/* Whether this mark is to be forgotten, so that its node is begun again: it asks for the task that it
 * asked for before the restart, or for the next one. */
static void workflow_wake(struct workflow_run *run, bool is_restart)
{
    const int64_t now = domain_wall_ms(run->domain);
    const char *node;
    json_t *mark;
    void *next;

    json_object_foreach_safe(run->marks, next, node, mark)
    {
        AUTO(free) char *id = mem_copy_text(node);
        json_t *wake = json_object_get(mark, "wakeAt"), *attempt = json_object_get(mark, "attempt");

        if (wake && json_integer_value(wake) <= now)
            workflow_record(
                run, id, json_pack("{s:O}", "waitedMs", json_object_get(mark, "waitedMs")), NULL);
        else if (attempt && (is_restart || json_object_get(mark, "due")))
            workflow_ask_again(run, id);
    }
}

static void workflows_tick(struct domain *domain)
{
    struct workflows *workflows = domain->workflows;
    const bool is_restart = !workflows->is_recovered;

    workflows->is_recovered = true;
    LIST_EACH (&workflows->all, at) {
        struct workflow_run *run = CONTAINER_OF(at, struct workflow_run, link);

        if (!run->is_kept || run->is_keeping)
            continue;
        if (run->retry_ns && domain_now_ns(domain) >= run->retry_ns)
            workflow_keep(run);
        else if (run->state == WORKFLOW_RUNNING || run->state == WORKFLOW_QUEUED) {
            workflow_wake(run, is_restart);
            workflow_advance(run);
        }
    }
    retention_tick(domain, &workflows->old);
}

static void workflows_owner_deleting(struct domain *domain, struct store_transaction *change,
                                     const struct id *owner)
{
    (void) domain;
    domain_delete_rows(change, STORE_WORKFLOW, STORE_WORKFLOW_OWNER, owner);
}

static void workflows_owner_deleted(struct domain *domain, const struct id *owner)
{
    LIST_EACH (&domain->workflows->all, at) {
        struct workflow_run *run = CONTAINER_OF(at, struct workflow_run, link);

        if (!id_equal(&run->owner, owner))
            continue;
        run->is_gone = true;
        if (!run->is_keeping)
            workflow_run_free(run);
    }
}

/* Tasks go on: they are found again. */
static void workflows_closing(struct domain *domain)
{
    LIST_EACH (&domain->workflows->all, at)
        workflow_asks_leave(CONTAINER_OF(at, struct workflow_run, link));
}

static void workflows_end(struct domain *domain)
{
    if (!domain->workflows)
        return;
    LIST_EACH (&domain->workflows->all, at)
        workflow_run_free(CONTAINER_OF(at, struct workflow_run, link));
    free(TAKE_PTR(domain->workflows));
}

const struct domain_module domain_workflows = {
    .name = "workflows",
    .begin = workflows_begin,
    .load = workflows_load,
    .owner_deleting = workflows_owner_deleting,
    .owner_deleted = workflows_owner_deleted,
    .tick = workflows_tick,
    .closing = workflows_closing,
    .end = workflows_end,
};
