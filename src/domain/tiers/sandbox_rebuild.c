/* Rebuild: a sandbox whose disk is gone, and whose workspace has a mirror, or which was new.
 *
 *     row "rebuilding" ──► new disk, it runs ──► workspace restored ──► row ──► as any other wake
 *     was new:             new disk, it runs ─────────────────────────────────►
 *
 * Until the last step the mirror is what counts: a half restored workspace must never be taken for
 * the real one, and be synced. A try that was cut short is found by its row, and begun again. */
#include <stdlib.h>

#include "base/auto.h"
#include "base/crash_point.h"
#include "base/memory.h"
#include "domain/sandbox/new_disks.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandbox_wish.h"
#include "domain/workspace/workspace.h"

struct rebuild {
    struct sandbox_wish *wish;
    struct provider_sandbox made;
    provider_sandbox_done *started;
    provider_done *cleared;
    struct error failure;
};

/* --- away with what is half of it ------------------------------------------------------------- */

static void on_stopped(void *context, const struct error *failure)
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
    provider_stop(rebuild->wish->domain->options.provider, &rebuild->wish->sandbox->id, on_stopped,
                  rebuild);
}

/* --- the end --------------------------------------------------------------------------------- */

static void on_gone(void *context, const struct error *failure)
{
    AUTO(free) struct rebuild *rebuild = context;

    (void) failure; /* the next try takes it down first */
    wish_provider_failed(rebuild->wish, &rebuild->failure);
}

static void fail(struct rebuild *rebuild, const struct error *failure)
{
    struct domain *domain = rebuild->wish->domain;

    rebuild->failure = *failure;
    if (domain->stage == DOMAIN_OPEN)
        clear_away(rebuild, on_gone);
    else
        on_gone(rebuild, NULL);
}

static void keep(struct rebuild *rebuild, store_done *done)
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

static void finish(struct rebuild *rebuild)
{
    struct sandbox *sandbox = rebuild->wish->sandbox;

    sandbox->is_disk_lost = false;
    if (sandbox->is_disk_new)
        new_disk_watch(rebuild->wish->domain, sandbox);
    rebuild->started(rebuild->wish, NULL, &rebuild->made);
    free(rebuild);
}

static void on_kept(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    struct rebuild *rebuild = context;
    struct sandbox *sandbox = rebuild->wish->sandbox;

    (void) receipt;
    if (failure) {
        sandbox->is_rebuilding = true;
        fail(rebuild, failure);
        return;
    }
    CRASH_POINT("rebuild.kept");
    finish(rebuild);
}

/* --- the steps ------------------------------------------------------------------------------- */

static void on_restored(void *context, const struct error *failure, uint64_t files, uint64_t bytes)
{
    struct rebuild *rebuild = context;
    struct sandbox *sandbox = rebuild->wish->sandbox;

    (void) bytes;
    if (failure) {
        fail(rebuild, failure);
        return;
    }
    CRASH_POINT("rebuild.restored");
    sandbox->restored_files = files;
    sandbox->is_rebuilding = false;
    keep(rebuild, on_kept);
}

static void on_made(void *context, const struct error *failure, const struct provider_sandbox *made)
{
    struct rebuild *rebuild = context;

    if (failure) {
        rebuild->failure = *failure;
        on_gone(rebuild, NULL);
        return;
    }
    CRASH_POINT("rebuild.made");
    rebuild->made = *made;
    if (!rebuild->wish->sandbox->is_rebuilding) {
        finish(rebuild);
        return;
    }
    workspace_restore_to_wake(rebuild->wish->domain, rebuild->wish->sandbox, on_restored, rebuild);
}

static void make(struct rebuild *rebuild)
{
    AUTO(sandbox_plan) struct sandbox_plan plan = {.binds = NULL};
    struct sandbox_wish *wish = rebuild->wish;

    if (!domain_is_open(wish->domain, &rebuild->failure)) {
        on_gone(rebuild, NULL);
        return;
    }
    wish->sandbox->has_ended = wish->sandbox->is_unexplained = false;
    sandbox_plan_init(&plan, wish->sandbox);
    plan.spec.keep_id = true;
    provider_create(wish->domain->options.provider, &plan.spec, on_made, rebuild);
}

static void on_leftover_gone(void *context, const struct error *failure)
{
    struct rebuild *rebuild = context;

    if (failure && failure->code != ERR_NOT_FOUND) {
        rebuild->failure = *failure;
        on_gone(rebuild, NULL);
    } else {
        make(rebuild);
    }
}

static void on_begun(void *context, const struct error *failure,
                     const struct store_receipt *receipt)
{
    struct rebuild *rebuild = context;

    (void) receipt;
    if (failure) {
        rebuild->wish->sandbox->is_rebuilding = false;
        rebuild->failure = *failure;
        on_gone(rebuild, NULL);
    } else {
        make(rebuild);
    }
}

void sandbox_rebuild(struct sandbox_wish *wish, provider_sandbox_done *started)
{
    struct rebuild *rebuild = mem_alloc(sizeof(*rebuild));
    struct sandbox *sandbox = wish->sandbox;
    struct workspace_state mirror;

    *rebuild = (struct rebuild){.wish = wish, .started = started};
    /* Only of a try that was cut short: what is there otherwise is not ours to delete. */
    if (sandbox->is_rebuilding) {
        clear_away(rebuild, on_leftover_gone);
        return;
    }
    if (sandbox->is_disk_new && !workspace_find(wish->domain, &sandbox->id, &mirror)) {
        make(rebuild);
        return;
    }
    sandbox->is_rebuilding = true;
    keep(rebuild, on_begun);
}
