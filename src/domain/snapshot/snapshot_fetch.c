/* A snapshot that is in the object store only comes back when somebody needs its disk:
 *
 *     what is left of it here is deleted ──► layers onto a new disk ──► snapshot of that disk
 *       ──► commit (state ready) ──► those who wait; the new disk goes
 *
 * The disk has an id of its own and no row: after a crash recovery takes it down. Until the commit
 * the snapshot is stored, whatever happens here; its layers are named all the time. */
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/crash_point.h"
#include "base/memory.h"
#include "domain/domain_internal.h"
#include "domain/domain_share.h"
#include "domain/event/event.h"
#include "domain/sandbox/sandbox_wish.h"
#include "domain/snapshot/snapshot_internal.h"
#include "domain/snapshot/snapshot_set.h"
#include "domain/stored_disk.h"

struct fetch {
    struct domain_task task;
    struct domain *domain;
    struct snapshot *snapshot; /* pinned */
    struct stored_disk disk;
    struct id scratch; /* the disk that the layers are put onto */
    bool has_scratch;
    struct error failure;
};

static void end(struct fetch *fetch, const struct error *failure)
{
    struct domain *domain = fetch->domain;
    struct snapshot *snapshot = fetch->snapshot;

    if (fetch->has_scratch)
        sandbox_orphan(domain, &fetch->scratch, NULL, NULL);
    snapshot_moved(domain, snapshot, failure);
    stored_disk_done(&fetch->disk);
    free(fetch);
    snapshot_unpin(domain, snapshot);
    domain->works--;
    domain_check_gone(domain);
}

static void on_told(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    struct fetch *fetch = context;

    if (!failure)
        event_kept(fetch->domain, receipt);
    end(fetch, &fetch->failure);
}

/* An object that is not there is no reason to say that there is no such snapshot. */
static void fail(struct fetch *fetch, const struct error *failure)
{
    struct domain *domain = fetch->domain;
    struct caller system = caller_system();
    struct store_transaction *change;

    fetch->failure = *failure;
    if (failure->code == ERR_NOT_FOUND)
        fetch->failure.code = ERR_GONE;
    error_prefix(&fetch->failure, "snapshot %s could not be brought back from the object store",
                 fetch->snapshot->id.text);
    LOG_ERROR(domain->options.log, "a snapshot did not come back",
              log_text("snapshot", fetch->snapshot->id.text), log_text("error", failure->message));
    domain->counters.restore_failures++;
    if (domain->stage != DOMAIN_OPEN) {
        end(fetch, &fetch->failure);
        return;
    }
    change = store_begin(domain->options.store);
    snapshot_add_event(domain, change, &system, fetch->snapshot, "snapshot.fetch_failed");
    domain_commit(domain, change, on_told, fetch);
}

/* Whether the next step may begin. */
static bool goes_on(struct fetch *fetch, const struct error *failure)
{
    struct error err = ERROR_INIT;

    if (!failure && !domain_is_open(fetch->domain, &err))
        failure = &err;
    if (!failure && snapshot_check_ready(fetch->snapshot, &err) < 0)
        failure = &err;
    if (failure)
        fail(fetch, failure);
    return !failure;
}

/* --- steps ----------------------------------------------------------------------------------- */

static void on_kept(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    struct fetch *fetch = context;

    if (failure) {
        fail(fetch, failure);
        return;
    }
    event_kept(fetch->domain, receipt);
    fetch->snapshot->state = SNAPSHOT_IS_READY;
    end(fetch, NULL);
}

static void on_copied(void *context, const struct error *failure, const struct snapshot_made *how)
{
    struct fetch *fetch = context;
    struct snapshot *snapshot = fetch->snapshot;
    struct caller system = caller_system();
    struct store_value values[STORE_SNAPSHOT_COLUMN_COUNT];
    struct store_transaction *change;

    (void) how;
    if (!goes_on(fetch, failure))
        return;
    CRASH_POINT("snapshot.fetch.copied");
    change = store_begin(fetch->domain->options.store);
    snapshot_row(snapshot, values);
    values[STORE_SNAPSHOT_STATE] = store_text(snapshot_state_text(SNAPSHOT_IS_READY));
    store_update(change, STORE_SNAPSHOT, values);
    snapshot_add_event(fetch->domain, change, &system, snapshot, "snapshot.fetched");
    domain_commit(fetch->domain, change, on_kept, fetch);
}

static void on_fetched(void *context, const struct error *failure)
{
    struct fetch *fetch = context;

    fetch->has_scratch = !failure;
    if (!goes_on(fetch, failure))
        return;
    CRASH_POINT("snapshot.fetch.fetched");
    provider_snapshot(fetch->domain->options.provider, &fetch->scratch, &fetch->snapshot->id, false,
                      on_copied, fetch);
}

static void on_deleted(void *context, const struct error *failure)
{
    struct fetch *fetch = context;
    const struct vault *vault = fetch->domain->options.vault;
    const struct vault_asker asker = {
        .who = domain_asker_of(fetch->domain, &fetch->snapshot->owner), .haste = VAULT_ASKED};
    const struct vault_fetch what = {.asker = asker,
                                     .target = fetch->scratch,
                                     .layers = fetch->disk.layers,
                                     .count = fetch->disk.count};

    if (goes_on(fetch, failure))
        vault->fetch_disk(vault->self, &what, NULL, on_fetched, fetch);
}

/* --- the beginning --------------------------------------------------------------------------- */

/* From the loop, for the one that came first. */
static void begin(struct domain_task *task)
{
    struct fetch *fetch = CONTAINER_OF(task, struct fetch, task);
    struct domain *domain = fetch->domain;
    struct snapshot *snapshot = fetch->snapshot;
    struct error err = ERROR_INIT;

    if (snapshot->state == SNAPSHOT_IS_READY || snapshot_check_ready(snapshot, &err) < 0) {
        end(fetch, err.code == ERR_NONE ? NULL : &err);
    } else if (!domain->options.vault || !domain->options.vault->fetch_disk) {
        (void) error_set(&err, ERR_UNAVAILABLE, 0, "there is no object store");
        fail(fetch, &err);
    } else if (!snapshot->layers || stored_disk_read(snapshot->layers, &fetch->disk, &err) < 0) {
        if (err.code == ERR_NONE)
            (void) error_set(&err, ERR_GONE, 0, "no layer of it is known");
        fail(fetch, &err);
    } else if (goes_on(fetch, NULL)) {
        provider_delete_snapshot(domain->options.provider, &snapshot->id, on_deleted, fetch);
    }
}

bool snapshot_is_here(const struct domain *domain, struct snapshot *snapshot)
{
    snapshot->used_ms = domain_wall_ms(domain);
    return snapshot->state != SNAPSHOT_IS_STORED;
}

void snapshot_fetch(struct domain *domain, struct snapshot *snapshot,
                    struct snapshot_waiter *waiter)
{
    struct fetch *fetch;

    list_append(&snapshot->waiters, &waiter->link);
    if (snapshot->is_moving)
        return;
    fetch = mem_alloc(sizeof(*fetch));
    *fetch = (struct fetch){.domain = domain, .snapshot = snapshot, .scratch = id_new()};
    snapshot_pin(snapshot);
    snapshot->is_moving = true;
    domain->works++;
    domain_defer(domain, &fetch->task, begin);
}
