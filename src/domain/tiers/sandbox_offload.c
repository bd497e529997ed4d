/* Offload: the disk of a hibernated sandbox goes to the object store, then away from here.
 *
 *     copy of the disk ──► stored ──► commit (layer, sandbox.stored, event) ──► disk deleted
 *     [held a moment]      [free]     [held ────────────────────────────────────────────]
 *
 * Where a snapshot is known that the disk was like once (snapshot_base.c), only what differs is
 * packed, and the list is that of the snapshot with one layer more. A snapshot that is not in the
 * store yet is stored first: others that were made from it share its layer. Without one, or when
 * that fails, the disk is one layer.
 *
 * While the copy travels the sandbox is free: a request wakes it from the disk it has, and the copy
 * is forgotten. Providers without snapshots have it held for all that time.
 *
 * The row says "stored" only when the object store has everything, and the disk goes only when the
 * row says so. From then on the stored disk is the one that counts: what is left here after a crash
 * is deleted, never used. A failure before leaves the sandbox as it was, and says why.
 *
 * The collector deletes no layers while something is being stored, and nothing is stored while it
 * does: a layer that is already there, and that no row names yet, could go in between. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/auto.h"
#include "base/crash_point.h"
#include "base/memory.h"
#include "domain/event/event.h"
#include "domain/sandbox/expiry.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandbox_wish.h"
#include "domain/snapshot/snapshot_internal.h"
#include "domain/stored_disk.h"

#define NS_PER_MS      UINT64_C(1000000)
#define EVENT_DATA_MAX 256

struct offload {
    struct sandbox_wish *wish;
    struct id copy; /* a snapshot in passing, without a row */
    bool has_copy;
    uint64_t asleep_ns;            /* of the sleep it is about: another one has another disk */
    struct snapshot *base;         /* pinned; NULL: everything is packed */
    struct snapshot_waiter waiter; /* for the base to be stored */
    struct id base_before;         /* of the sandbox, while the row is being kept */
};

/* --- the end --------------------------------------------------------------------------------- */

static void on_over(void *context, const struct error *failure, struct sandbox *sandbox)
{
    (void) failure, (void) sandbox;
    free(context);
}

static void give_back_base(struct offload *offload)
{
    struct snapshot *base = TAKE_PTR(offload->base);

    if (base)
        snapshot_unpin(offload->wish->domain, base);
}

static void finish(struct offload *offload, const struct error *failure)
{
    struct sandbox_wish *wish = offload->wish;
    struct domain *domain = wish->domain;
    struct sandbox *sandbox = wish->sandbox;

    domain->saves--;
    sandbox->is_saving = sandbox->is_held = false;
    if (offload->has_copy)
        snapshot_doom(domain, &offload->copy);
    give_back_base(offload);
    if (sandbox->status != SANDBOX_DESTROYED)
        expiry_watch(domain, sandbox);
    wish_end(wish, failure);
}

static void fail(struct offload *offload, const struct error *failure)
{
    struct domain *domain = offload->wish->domain;
    struct sandbox *sandbox = offload->wish->sandbox;

    domain->counters.save_failures++;
    LOG_WARNING(domain->options.log, "the disk of a sandbox could not be stored",
                log_text("sandbox", sandbox->id.text), log_text("error", failure->message));
    sandbox->save_ns = domain_now_ns(domain) + EXPIRY_SAVE_AGAIN_MS * NS_PER_MS;
    if (domain->stage == DOMAIN_OPEN && sandbox->status == SANDBOX_HIBERNATED) {
        sandbox_set_reason(sandbox, "its disk could not be stored, and is kept here: %s",
                           failure->message);
        sandbox_keep(domain, sandbox, "sandbox.save_failed");
    }
    finish(offload, failure);
}

/* --- away from here -------------------------------------------------------------------------- */

static void on_dropped(void *context, const struct error *failure)
{
    struct offload *offload = context;

    if (failure && failure->code != ERR_NOT_FOUND) {
        finish(offload, failure); /* it is tried again */
        return;
    }
    CRASH_POINT("offload.dropped");
    offload->wish->sandbox->is_disk_left = false;
    finish(offload, NULL);
}

static void drop(struct offload *offload)
{
    struct domain *domain = offload->wish->domain;
    struct error err = ERROR_INIT;

    if (domain_is_open(domain, &err))
        provider_destroy(domain->options.provider, &offload->wish->sandbox->id, on_dropped,
                         offload);
    else
        finish(offload, &err);
}

/* --- kept ------------------------------------------------------------------------------------ */

static void on_kept(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    struct offload *offload = context;
    struct domain *domain = offload->wish->domain;
    struct sandbox *sandbox = offload->wish->sandbox;
    struct snapshot *own;

    if (failure) {
        free(sandbox->stored);
        sandbox->stored = NULL;
        sandbox->base = offload->base_before;
        fail(offload, failure);
        return;
    }
    CRASH_POINT("offload.kept");
    event_kept(domain, receipt);
    sandbox->base = offload->base_before; /* to find it by */
    own = snapshot_own_base(domain, sandbox);
    if (own)
        snapshot_leave(domain, own);
    sandbox->base = (struct id){.text = ""};
    sandbox->is_disk_left = true;
    domain_latency_add(domain, &domain->counters.saves[SANDBOX_TIER_OFFLOADED],
                       offload->wish->asked_ns);
    drop(offload);
}

/* The layers of the base, and this one. */
static int make_list(const struct offload *offload, const struct vault_layer *layer,
                     struct stored_disk *ret_disk, struct error *err)
{
    if (offload->base && stored_disk_read(offload->base->layers, ret_disk, err) < 0)
        return -1;
    stored_disk_add(ret_disk, layer);
    return 0;
}

/* What was made for the disk alone is of no use without it. */
static void delete_own_base(const struct offload *offload, struct store_transaction *change)
{
    const struct snapshot *own = snapshot_own_base(offload->wish->domain, offload->wish->sandbox);
    const struct store_condition is_it = {.column = STORE_SNAPSHOT_ID,
                                          .comparison = STORE_EQUAL,
                                          .value = store_text(own ? own->id.text : "")};

    if (own)
        store_delete(change, STORE_SNAPSHOT, &is_it, 1);
}

static void add_event(const struct offload *offload, struct store_transaction *change,
                      const struct vault_layer *layer, size_t count)
{
    const struct sandbox *sandbox = offload->wish->sandbox;
    char data[EVENT_DATA_MAX];

    (void) snprintf(data, sizeof(data),
                    "{\"sandboxId\":\"%s\",\"bytes\":%" PRIu64 ",\"storedBytes\":%" PRIu64
                    ",\"layers\":%zu}",
                    sandbox->id.text, layer->bytes, layer->is_new ? layer->size : 0, count);
    event_add(offload->wish->domain, change, &offload->wish->caller, &sandbox->owner,
              sandbox->id.text, "sandbox.offloaded", data);
}

static void keep(struct offload *offload, const struct vault_layer *layer,
                 const struct stored_disk *disk)
{
    struct domain *domain = offload->wish->domain;
    struct sandbox *sandbox = offload->wish->sandbox;
    struct store_transaction *change = store_begin(domain->options.store);
    AUTO(text) struct text stored = TEXT_INIT(STORED_DISK_MAX);
    AUTO(sandbox_row) struct sandbox_row row;

    stored_disk_write(disk, &stored);
    delete_own_base(offload, change);
    offload->base_before = sandbox->base;
    sandbox->base = (struct id){.text = ""};
    sandbox->stored = mem_copy_text(text_string(&stored));
    domain->counters.offloaded_bytes += layer->size;
    sandbox->updated_ms = domain_wall_ms(domain);
    sandbox_row_init(&row, sandbox, NULL);
    store_update(change, STORE_SANDBOX, row.values);
    stored_disk_put_row(change, &sandbox->owner, layer, sandbox->updated_ms);
    add_event(offload, change, layer, disk->count);
    list_remove(&sandbox->unkept); /* this is newer than what was lost */
    domain_commit(domain, change, on_kept, offload);
}

/* --- stored ---------------------------------------------------------------------------------- */

/* It woke meanwhile, or is about to: the copy is of no use. */
static bool is_overtaken(const struct offload *offload)
{
    const struct sandbox *sandbox = offload->wish->sandbox;

    return sandbox->status != SANDBOX_HIBERNATED || sandbox->asleep_ns != offload->asleep_ns ||
           (offload->has_copy && sandbox->is_held);
}

static void forget(struct offload *offload)
{
    offload->wish->sandbox->is_saving = false;
    offload->wish->domain->saves--;
    snapshot_doom(offload->wish->domain, &offload->copy);
    give_back_base(offload);
    wish_end(offload->wish, NULL);
}

static void on_stored(void *context, const struct error *failure, const struct vault_layer *layer);

static void store(struct offload *offload, const struct disk_ref *disk)
{
    const struct vault *vault = offload->wish->domain->options.vault;
    const struct disk_ref base = {DISK_OF_SNAPSHOT,
                                  offload->base ? offload->base->id : offload->copy};

    vault->store_disk(vault->self, disk, offload->base ? &base : NULL,
                      &offload->wish->sandbox->owner, NULL, on_stored, offload);
}

static void store_copy(struct offload *offload)
{
    store(offload, &(struct disk_ref){DISK_OF_SNAPSHOT, offload->copy});
}

/* What is wrong may be the base: the disk is there as a whole. */
static bool may_go_whole(const struct offload *offload, const struct error *failure)
{
    return offload->base && failure->code != ERR_UNAVAILABLE &&
           offload->wish->domain->stage == DOMAIN_OPEN;
}

static void on_stored(void *context, const struct error *failure, const struct vault_layer *layer)
{
    struct offload *offload = context;
    AUTO(stored_disk) struct stored_disk disk = {.layers = NULL};
    struct error err = ERROR_INIT;

    if (!failure && (!domain_is_open(offload->wish->domain, &err) ||
                     make_list(offload, layer, &disk, &err) < 0))
        failure = &err;
    if (is_overtaken(offload)) {
        forget(offload);
    } else if (failure && may_go_whole(offload, failure)) {
        give_back_base(offload);
        store_copy(offload);
    } else if (failure) {
        fail(offload, failure);
    } else {
        CRASH_POINT("offload.stored");
        offload->wish->sandbox->is_held = true;
        keep(offload, layer, &disk);
    }
}

static void on_base_stored(struct snapshot_waiter *waiter, const struct error *failure)
{
    struct offload *offload = CONTAINER_OF(waiter, struct offload, waiter);
    struct error err = ERROR_INIT;

    if (is_overtaken(offload)) {
        forget(offload);
        return;
    }
    if (!domain_is_open(offload->wish->domain, &err)) {
        fail(offload, &err);
        return;
    }
    if (failure)
        give_back_base(offload);
    store_copy(offload);
}

static void on_copied(void *context, const struct error *failure, const struct snapshot_made *how)
{
    struct offload *offload = context;
    struct domain *domain = offload->wish->domain;
    struct sandbox *sandbox = offload->wish->sandbox;
    struct error err = ERROR_INIT;

    offload->has_copy = !failure;
    if (!failure && !domain_is_open(domain, &err))
        failure = &err;
    if (failure) {
        fail(offload, failure);
        return;
    }
    sandbox->is_copied = how->is_copied;
    offload->base = snapshot_base_take(domain, sandbox);
    offload->waiter.done = on_base_stored;
    if (offload->base && !offload->base->layers)
        snapshot_store(domain, offload->base, &offload->waiter);
    else
        store_copy(offload);
    sandbox->is_held = false;
    expiry_watch(domain, sandbox);
    sandbox_settle(domain, sandbox);
}

/* --- the beginning --------------------------------------------------------------------------- */

static void act(struct sandbox_wish *wish)
{
    struct offload *offload = wish->context;
    struct domain *domain = wish->domain;
    struct sandbox *sandbox = wish->sandbox;

    domain->saves++;
    sandbox->is_saving = sandbox->is_held = true;
    if (sandbox->stored)
        drop(offload);
    else if (provider_capabilities(domain->options.provider) & PROVIDER_SNAPSHOTS)
        provider_snapshot(domain->options.provider, &sandbox->id, &offload->copy, false, on_copied,
                          offload);
    else
        store(offload, &(struct disk_ref){DISK_OF_SANDBOX, sandbox->id});
}

void sandbox_offload(struct domain *domain, struct sandbox *sandbox)
{
    struct offload *offload;

    if (domain->is_collecting) {
        expiry_postpone(domain, sandbox);
        return;
    }
    offload = mem_alloc(sizeof(*offload));
    offload->copy = id_new();
    offload->asleep_ns = sandbox->asleep_ns;
    offload->wish = wish_make(domain, NULL, sandbox, SANDBOX_ACTION_SLEEP, act, on_over, offload);
    offload->wish->why = "asleep for long";
    wish_begin_anyway(offload->wish);
}
