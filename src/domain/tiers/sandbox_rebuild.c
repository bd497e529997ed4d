/* Rebuild: a sandbox whose disk is gone, and whose workspace has a mirror, or which was new.
 *
 * Until the workspace is back the mirror is what counts: a half restored one must never be taken
 * for the real one, and be synced. A try that was cut short is found by its row, and begun again. */
#include <stdlib.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/sandbox/new_disks.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandbox_wish.h"
#include "domain/workspace/workspace.h"

struct rebuild {
    struct sequence sequence;
    struct sandbox_wish *wish;
    struct provider_sandbox made;
    bool is_made;      /* it runs */
    bool is_left_over; /* a try that was cut short may have left a disk */
    provider_sandbox_done *started;
    provider_done *cleared;
    struct error failure;
};

/* --- away with what is half of it ------------------------------------------------------------- */

static void on_rebuild_stopped(void *context, const struct error *failure)
{
    struct rebuild *rebuild = context;
    struct domain *domain = rebuild->wish->domain;
    struct error err = ERROR_INIT;

    (void) failure; /* perhaps it does not run, or is not there */
    if (domain_is_open(domain, &err))
        provider_destroy(domain->options.provider, &rebuild->wish->sandbox->id, rebuild->cleared,
                         rebuild);
    else
        rebuild->cleared(rebuild, &err);
}

/* Stopped first: a destroy is answered before its id is free again. */
static void clear_away(struct rebuild *rebuild, provider_done *cleared)
{
    rebuild->cleared = cleared;
    provider_stop(rebuild->wish->domain->options.provider, &rebuild->wish->sandbox->id,
                  on_rebuild_stopped, rebuild);
}

/* --- the end --------------------------------------------------------------------------------- */

static void on_rebuild_cleared(void *context, const struct error *failure)
{
    AUTO(free) struct rebuild *rebuild = context;

    (void) failure; /* the next try takes it down first */
    rebuild->started(rebuild->wish, &rebuild->failure, NULL);
}

static void rebuild_end(void *context, const struct error *failure)
{
    struct rebuild *rebuild = context;
    struct domain *domain = rebuild->wish->domain;
    struct sandbox *sandbox = rebuild->wish->sandbox;

    if (failure) {
        rebuild->failure = *failure;
        if (rebuild->is_made && domain->stage == DOMAIN_OPEN)
            clear_away(rebuild, on_rebuild_cleared);
        else
            on_rebuild_cleared(rebuild, NULL);
        return;
    }
    sandbox->is_disk_lost = false;
    if (sandbox->is_disk_new)
        new_disk_watch(domain, sandbox);
    rebuild->started(rebuild->wish, NULL, &rebuild->made);
    free(rebuild);
}

/* --- the steps ------------------------------------------------------------------------------- */

static bool is_left_over(const void *context)
{
    const struct rebuild *rebuild = context;

    return rebuild->is_left_over;
}

static void on_cleared(void *context, const struct error *failure)
{
    struct rebuild *rebuild = context;

    sequence_next(&rebuild->sequence, failure && failure->code != ERR_NOT_FOUND ? failure : NULL);
}

static void clear_leftover(void *context)
{
    clear_away(context, on_cleared);
}

/* The status is the one that it goes back to when this fails. */
static void keep_rebuild(struct rebuild *rebuild, store_done *done)
{
    struct domain *domain = rebuild->wish->domain;
    AUTO(sandbox_row) struct sandbox_row row;
    struct store_transaction *change = store_begin(domain->options.store);
    struct sandbox_next next = sandbox_next(rebuild->wish->sandbox);

    next.status = rebuild->wish->before;
    sandbox_row_init(&row, rebuild->wish->sandbox, &next);
    store_update(change, STORE_SANDBOX, row.values);
    domain_commit(domain, change, done, rebuild);
}

static bool has_mirror(const void *context)
{
    const struct rebuild *rebuild = context;
    const struct sandbox_wish *wish = rebuild->wish;
    struct workspace_state mirror;

    return !rebuild->is_left_over && (!wish->sandbox->is_disk_new ||
                                      workspace_find(wish->domain, &wish->sandbox->id, &mirror));
}

static void on_rebuild_begun(void *context, const struct error *failure,
                             const struct store_receipt *receipt)
{
    struct rebuild *rebuild = context;

    rebuild->wish->sandbox->is_rebuilding = !failure;
    sequence_kept(&rebuild->sequence, failure, receipt);
}

static void keep_begun(void *context)
{
    struct rebuild *rebuild = context;

    rebuild->wish->sandbox->is_rebuilding = true;
    keep_rebuild(rebuild, on_rebuild_begun);
}

static void on_disk_made(void *context, const struct error *failure,
                         const struct provider_sandbox *made)
{
    struct rebuild *rebuild = context;

    rebuild->is_made = !failure;
    if (!failure)
        rebuild->made = *made;
    sequence_next(&rebuild->sequence, failure);
}

static void make_disk(void *context)
{
    AUTO(sandbox_plan) struct sandbox_plan plan = {.binds = NULL};
    struct rebuild *rebuild = context;
    struct sandbox_wish *wish = rebuild->wish;

    wish->sandbox->has_ended = wish->sandbox->is_unexplained = false;
    sandbox_plan_init(&plan, wish->sandbox);
    plan.spec.keep_id = true;
    provider_create(wish->domain->options.provider, &plan.spec, on_disk_made, rebuild);
}

static bool is_rebuilding(const void *context)
{
    const struct rebuild *rebuild = context;

    return rebuild->wish->sandbox->is_rebuilding;
}

static void on_workspace_restored(void *context, const struct error *failure, uint64_t files,
                                  uint64_t bytes)
{
    struct rebuild *rebuild = context;

    (void) bytes;
    if (!failure)
        rebuild->wish->sandbox->restored_files = files;
    sequence_next(&rebuild->sequence, failure);
}

static void restore_workspace(void *context)
{
    struct rebuild *rebuild = context;

    workspace_restore_to_wake(rebuild->wish->domain, rebuild->wish->sandbox, on_workspace_restored,
                              rebuild);
}

static void on_rebuild_kept(void *context, const struct error *failure,
                            const struct store_receipt *receipt)
{
    struct rebuild *rebuild = context;

    rebuild->wish->sandbox->is_rebuilding = failure != NULL;
    sequence_kept(&rebuild->sequence, failure, receipt);
}

static void keep_restored(void *context)
{
    struct rebuild *rebuild = context;

    rebuild->wish->sandbox->is_rebuilding = false;
    keep_rebuild(rebuild, on_rebuild_kept);
}

static const struct sequence_step rebuild_steps[] = {
    {"delete what the last try has left", clear_leftover, .when = is_left_over},
    {"keep that its workspace is not all there", keep_begun, .when = has_mirror},
    {"make a new disk and start it", make_disk, .point = "rebuild.made"},
    {"restore its workspace", restore_workspace, .when = is_rebuilding,
     .point = "rebuild.restored"},
    {"keep that its workspace is there", keep_restored, .when = is_rebuilding,
     .point = "rebuild.kept"},
    {.text = NULL},
};

const struct sequence_table sandbox_rebuild_sequence = {"sandbox.rebuild", rebuild_steps,
                                                        rebuild_end};

void sandbox_rebuild(struct sandbox_wish *wish, provider_sandbox_done *started)
{
    struct rebuild *rebuild = mem_alloc(sizeof(*rebuild));

    /* Only of a try that was cut short: what is there otherwise is not ours to delete. */
    *rebuild = (struct rebuild){
        .wish = wish, .is_left_over = wish->sandbox->is_rebuilding, .started = started};
    sequence_begin(&rebuild->sequence, wish->domain, &sandbox_rebuild_sequence, &wish->sandbox->id,
                   rebuild);
}
