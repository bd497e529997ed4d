/* Snapshots in the object store: layers of one that is here are put there too; and when those that
 * are in both places hold more than `snapshot_cache_bytes` here, the ones that were not needed for
 * longest stay there only.
 *
 *     store:  packed, put ──► commit (layer, layers) ──► those who wait
 *     evict:  commit (state stored) ──► deleted here
 *
 * So the snapshots of the pool are the cache of what is in the store: there is no other copy of
 * layers on this machine. What is deleted here was read back by nobody, but the store acknowledged
 * it with its sum, and a row says so. */
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/crash_point.h"
#include "base/memory.h"
#include "domain/domain_internal.h"
#include "domain/domain_share.h"
#include "domain/event/event.h"
#include "domain/snapshot/snapshot_internal.h"
#include "domain/snapshot/snapshot_set.h"
#include "domain/stored_disk.h"

struct moving {
    struct domain *domain;
    struct snapshot *snapshot; /* pinned */
    char *layers;              /* owned: what shall be */
};

static struct moving *moving_new(struct domain *domain, struct snapshot *snapshot)
{
    struct moving *moving = mem_alloc(sizeof(*moving));

    *moving = (struct moving){.domain = domain, .snapshot = snapshot};
    snapshot_pin(snapshot);
    snapshot->is_moving = true;
    domain->works++;
    return moving;
}

static void end(struct moving *moving, const struct error *failure)
{
    struct domain *domain = moving->domain;
    struct snapshot *snapshot = moving->snapshot;

    free(moving->layers);
    free(moving);
    snapshot_moved(domain, snapshot, failure);
    snapshot_unpin(domain, snapshot);
    domain->works--;
    domain_check_gone(domain);
}

void snapshot_moved(struct domain *domain, struct snapshot *snapshot, const struct error *failure)
{
    struct list mine, *link;

    snapshot->is_moving = false;
    list_init(&mine);
    while ((link = list_first(&snapshot->waiters))) {
        list_remove(link);
        list_append(&mine, link);
    }
    while ((link = list_first(&mine))) {
        struct snapshot_waiter *waiter = CONTAINER_OF(link, struct snapshot_waiter, link);

        list_remove(link);
        /* It was on its way out when somebody came. */
        if (!failure && snapshot->state == SNAPSHOT_IS_STORED)
            snapshot_fetch(domain, snapshot, waiter);
        else
            waiter->done(waiter, failure);
    }
}

/* --- store ----------------------------------------------------------------------------------- */

static void on_kept(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    struct moving *moving = context;

    if (!failure) {
        CRASH_POINT("snapshot.store.kept");
        event_kept(moving->domain, receipt);
        free(moving->snapshot->layers);
        moving->snapshot->layers = TAKE_PTR(moving->layers);
    }
    end(moving, failure);
}

static void keep(struct moving *moving, const struct vault_layer *layer)
{
    struct domain *domain = moving->domain;
    struct snapshot *snapshot = moving->snapshot;
    struct store_transaction *change = store_begin(domain->options.store);
    struct store_value values[STORE_SNAPSHOT_COLUMN_COUNT];
    AUTO(stored_disk) struct stored_disk disk = {.layers = NULL};
    AUTO(text) struct text text = TEXT_INIT(STORED_DISK_MAX);
    struct caller system = caller_system();

    stored_disk_add(&disk, layer);
    stored_disk_write(&disk, &text);
    moving->layers = mem_copy_text(text_string(&text));
    stored_disk_put_row(change, &snapshot->owner, layer, domain_wall_ms(domain));
    if (layer->bytes > snapshot->size) /* what the pool said may be some seconds old, or nothing */
        snapshot_set_size(domain, snapshot, layer->bytes);
    snapshot_row(snapshot, values);
    values[STORE_SNAPSHOT_LAYERS] = store_text(moving->layers);
    store_update(change, STORE_SNAPSHOT, values);
    snapshot_add_event(domain, change, &system, snapshot, "snapshot.stored");
    domain_commit(domain, change, on_kept, moving);
}

static void on_stored(void *context, const struct error *failure, const struct vault_layer *layer)
{
    struct moving *moving = context;
    struct error err = ERROR_INIT;

    if (!failure && !domain_is_open(moving->domain, &err))
        failure = &err;
    if (!failure && snapshot_check_ready(moving->snapshot, &err) < 0)
        failure = &err;
    if (failure) {
        end(moving, failure);
        return;
    }
    CRASH_POINT("snapshot.store.stored");
    keep(moving, layer);
}

void snapshot_store(struct domain *domain, struct snapshot *snapshot,
                    struct snapshot_waiter *waiter)
{
    const struct vault *vault = domain->options.vault;
    const struct vault_asker asker = {.who = domain_asker_of(domain, &snapshot->owner),
                                      .haste = VAULT_LATER};
    const struct disk_ref disk = {DISK_OF_SNAPSHOT, snapshot->id};

    list_append(&snapshot->waiters, &waiter->link);
    if (!snapshot->is_moving)
        vault->store_disk(vault->self, &asker, &disk, NULL, NULL, on_stored,
                          moving_new(domain, snapshot));
}

/* --- evict ----------------------------------------------------------------------------------- */

static void on_deleted(void *context, const struct error *failure)
{
    struct moving *moving = context;

    /* It is deleted before it is fetched again; after a restart it is as good as ever. */
    if (failure)
        LOG_WARNING(moving->domain->options.log, "a snapshot that is stored cannot be deleted here",
                    log_text("snapshot", moving->snapshot->id.text),
                    log_text("error", failure->message));
    else
        CRASH_POINT("snapshot.evict.deleted");
    end(moving, NULL);
}

static void on_evicted(void *context, const struct error *failure,
                       const struct store_receipt *receipt)
{
    struct moving *moving = context;
    struct domain *domain = moving->domain;
    struct error err = ERROR_INIT;

    if (failure) {
        moving->snapshot->state = SNAPSHOT_IS_READY;
        end(moving, NULL); /* who waits has what it wants */
        return;
    }
    CRASH_POINT("snapshot.evict.kept");
    event_kept(domain, receipt);
    if (domain_is_open(domain, &err))
        provider_delete_snapshot(domain->options.provider, &moving->snapshot->id, on_deleted,
                                 moving);
    else
        end(moving, &err);
}

static void evict(struct domain *domain, struct snapshot *snapshot)
{
    struct moving *moving = moving_new(domain, snapshot);
    struct store_transaction *change = store_begin(domain->options.store);
    struct store_value values[STORE_SNAPSHOT_COLUMN_COUNT];
    struct caller system = caller_system();

    snapshot->state = SNAPSHOT_IS_STORED; /* whoever comes now waits, and fetches it */
    snapshot_row(snapshot, values);
    store_update(change, STORE_SNAPSHOT, values);
    snapshot_add_event(domain, change, &system, snapshot, "snapshot.evicted");
    domain_commit(domain, change, on_evicted, moving);
}

/* One that a sandbox may be told apart from is of no use elsewhere. */
static bool may_go(const struct domain *domain, const struct snapshot *snapshot)
{
    return snapshot->layers && snapshot->state == SNAPSHOT_IS_READY && snapshot->pins == 0 &&
           !snapshot->is_going && !snapshot->is_moving && snapshot->reason != SNAPSHOT_SLEEP &&
           strcmp(snapshot->node, domain->options.node) == 0;
}

void snapshot_evict(struct domain *domain)
{
    struct snapshot *oldest = NULL;
    uint64_t bytes = 0;

    if (!domain->options.vault || !domain->options.snapshot_cache_bytes)
        return;
    LIST_EACH (&domain->snapshots->all, at) {
        struct snapshot *snapshot = CONTAINER_OF(at, struct snapshot, link);

        if (snapshot->layers && snapshot->state == SNAPSHOT_IS_READY &&
            snapshot->reason != SNAPSHOT_SLEEP)
            bytes += snapshot->size;
        if (may_go(domain, snapshot) && (!oldest || snapshot->used_ms < oldest->used_ms))
            oldest = snapshot;
    }
    if (oldest && bytes > domain->options.snapshot_cache_bytes)
        evict(domain, oldest);
}
