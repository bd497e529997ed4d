/* Offload: the disk of a hibernated sandbox goes to the object store, then away from here.
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
#include "base/memory.h"
#include "domain/domain_share.h"
#include "domain/event/event.h"
#include "domain/sandbox/expiry.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandbox_wish.h"
#include "domain/snapshot/snapshot_internal.h"
#include "domain/stored_disk.h"

#define NS_PER_MS      UINT64_C(1000000)
#define EVENT_DATA_MAX 256

struct offload {
    struct sequence sequence;
    struct sandbox_wish *wish;
    struct id copy; /* a snapshot in passing, without a row */
    bool has_copy;
    bool is_overtaken;             /* it woke meanwhile, or is about to: the copy is of no use */
    uint64_t asleep_ns;            /* of the sleep it is about: another one has another disk */
    struct snapshot *base;         /* pinned; NULL: everything is packed */
    struct snapshot_waiter waiter; /* for the base to be stored */
    struct vault_layer layer;      /* what was stored */
    struct stored_disk disk;       /* the layers of the base, and that one */
    struct id base_before;         /* of the sandbox, while the row is being kept */
};

static void give_back_base(struct offload *offload)
{
    struct snapshot *base = TAKE_PTR(offload->base);

    if (base)
        snapshot_unpin(offload->wish->domain, base);
}

/* --- the end --------------------------------------------------------------------------------- */

static void on_offload_over(void *context, const struct error *failure, struct sandbox *sandbox)
{
    struct offload *offload = context;

    (void) failure, (void) sandbox;
    stored_disk_done(&offload->disk);
    free(offload);
}

static void offload_fail(struct offload *offload, const struct error *failure)
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
}

/* Once the store has it, what is left here is only tried again to be deleted. */
static void offload_end(void *context, const struct error *failure)
{
    struct offload *offload = context;
    struct sandbox_wish *wish = offload->wish;
    struct domain *domain = wish->domain;
    struct sandbox *sandbox = wish->sandbox;

    domain->saves--;
    sandbox->is_saving = false;
    if (!offload->is_overtaken) /* else who holds it, if anybody, is not us */
        sandbox->is_held = false;
    if (failure && !offload->is_overtaken && !sandbox->stored)
        offload_fail(offload, failure);
    if (offload->has_copy)
        snapshot_orphan(domain, &offload->copy);
    give_back_base(offload);
    if (!offload->is_overtaken && sandbox->status != SANDBOX_DESTROYED)
        expiry_watch(domain, sandbox);
    wish_end(wish, offload->is_overtaken ? NULL : failure);
}

/* Of what took long: whether it is still about this sleep. Then the sequence goes on, or ends. */
static bool is_overtaken(struct offload *offload)
{
    const struct sandbox *sandbox = offload->wish->sandbox;

    offload->is_overtaken = sandbox->status != SANDBOX_HIBERNATED ||
                            sandbox->asleep_ns != offload->asleep_ns ||
                            (offload->has_copy && sandbox->is_held);
    if (offload->is_overtaken)
        offload_end(offload, NULL);
    return offload->is_overtaken;
}

/* --- the steps ------------------------------------------------------------------------------- */

static bool is_here_only(const void *context)
{
    const struct offload *offload = context;

    return !offload->wish->sandbox->stored;
}

static bool can_copy(const void *context)
{
    const struct offload *offload = context;

    return is_here_only(offload) &&
           provider_capabilities(offload->wish->domain->options.provider) & PROVIDER_SNAPSHOTS;
}

static void on_copied_to_store(void *context, const struct error *failure,
                               const struct snapshot_made *how)
{
    struct offload *offload = context;
    struct domain *domain = offload->wish->domain;
    struct sandbox *sandbox = offload->wish->sandbox;

    offload->has_copy = !failure;
    if (!failure && domain->stage == DOMAIN_OPEN) {
        sandbox->is_copied = how->is_copied;
        offload->base = snapshot_base_take(domain, sandbox);
        sandbox->is_held = false;
        expiry_watch(domain, sandbox);
    }
    sequence_next(&offload->sequence, failure);
    if (!failure)
        sandbox_settle(domain, sandbox);
}

static void copy_to_store(void *context)
{
    struct offload *offload = context;

    provider_snapshot(offload->wish->domain->options.provider, &offload->wish->sandbox->id,
                      &offload->copy, false, on_copied_to_store, offload);
}

static bool has_unstored_base(const void *context)
{
    const struct offload *offload = context;

    return offload->base && !offload->base->layers;
}

static void on_base_stored(struct snapshot_waiter *waiter, const struct error *failure)
{
    struct offload *offload = CONTAINER_OF(waiter, struct offload, waiter);

    if (is_overtaken(offload))
        return;
    if (failure) /* then the disk is stored whole */
        give_back_base(offload);
    sequence_next(&offload->sequence, NULL);
}

static void store_base(void *context)
{
    struct offload *offload = context;

    offload->waiter.done = on_base_stored;
    snapshot_store(offload->wish->domain, offload->base, &offload->waiter);
}

static int make_list(struct offload *offload, struct error *err)
{
    if (offload->base && stored_disk_read(offload->base->layers, &offload->disk, err) < 0)
        return -1;
    stored_disk_add(&offload->disk, &offload->layer);
    return 0;
}

static void store_disk(void *context);

static void on_disk_stored(void *context, const struct error *failure,
                           const struct vault_layer *layer)
{
    struct offload *offload = context;
    struct error err = ERROR_INIT;

    if (is_overtaken(offload))
        return;
    if (!failure) {
        offload->layer = *layer;
        if (make_list(offload, &err) < 0)
            failure = &err;
    }
    /* What is wrong may be the base: the disk is there as a whole. */
    if (failure && offload->base && failure->code != ERR_UNAVAILABLE &&
        offload->wish->domain->stage == DOMAIN_OPEN) {
        give_back_base(offload);
        store_disk(offload);
        return;
    }
    offload->wish->sandbox->is_held = !failure;
    sequence_next(&offload->sequence, failure);
}

static void store_disk(void *context)
{
    struct offload *offload = context;
    const struct vault *vault = offload->wish->domain->options.vault;
    const struct sandbox *sandbox = offload->wish->sandbox;
    const struct vault_asker asker = {
        .who = domain_asker_of(offload->wish->domain, &sandbox->owner), .haste = VAULT_LATER};
    const struct disk_ref copy = {DISK_OF_SNAPSHOT, offload->copy};
    const struct disk_ref here = {DISK_OF_SANDBOX, sandbox->id};
    const struct disk_ref base = {DISK_OF_SNAPSHOT,
                                  offload->base ? offload->base->id : offload->copy};

    vault->store_disk(vault->self, &asker, offload->has_copy ? &copy : &here,
                      offload->base ? &base : NULL, NULL, on_disk_stored, offload);
}

static void on_offload_kept(void *context, const struct error *failure,
                            const struct store_receipt *receipt)
{
    struct offload *offload = context;
    struct domain *domain = offload->wish->domain;
    struct sandbox *sandbox = offload->wish->sandbox;
    struct snapshot *own;

    sandbox->base = offload->base_before;
    if (failure) {
        free(sandbox->stored);
        sandbox->stored = NULL;
    } else {
        own = snapshot_own_base(domain, sandbox);
        if (own)
            snapshot_leave(domain, own);
        sandbox->base = (struct id){.text = ""};
        sandbox->is_disk_left = true;
        domain_latency_add(domain, &domain->counters.saves[SANDBOX_TIER_OFFLOADED],
                           offload->wish->asked_ns);
    }
    sequence_kept(&offload->sequence, failure, receipt);
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

static void add_offload_event(const struct offload *offload, struct store_transaction *change)
{
    const struct sandbox *sandbox = offload->wish->sandbox;
    char data[EVENT_DATA_MAX];

    (void) snprintf(data, sizeof(data),
                    "{\"sandboxId\":\"%s\",\"bytes\":%" PRIu64 ",\"storedBytes\":%" PRIu64
                    ",\"layers\":%zu}",
                    sandbox->id.text, offload->layer.bytes,
                    offload->layer.is_new ? offload->layer.size : 0, offload->disk.count);
    event_add(offload->wish->domain, change, &offload->wish->caller, &sandbox->owner,
              sandbox->id.text, "sandbox.offloaded", data);
}

static void keep_offload(void *context)
{
    struct offload *offload = context;
    struct domain *domain = offload->wish->domain;
    struct sandbox *sandbox = offload->wish->sandbox;
    struct store_transaction *change = store_begin(domain->options.store);
    AUTO(text) struct text stored = TEXT_INIT(STORED_DISK_MAX);
    AUTO(sandbox_row) struct sandbox_row row;

    stored_disk_write(&offload->disk, &stored);
    delete_own_base(offload, change);
    offload->base_before = sandbox->base;
    sandbox->base = (struct id){.text = ""};
    sandbox->stored = mem_copy_text(text_string(&stored));
    domain->counters.offloaded_bytes += offload->layer.size;
    sandbox->updated_ms = domain_wall_ms(domain);
    sandbox_row_init(&row, sandbox, NULL);
    store_update(change, STORE_SANDBOX, row.values);
    stored_disk_put_row(change, &sandbox->owner, &offload->layer, sandbox->updated_ms);
    add_offload_event(offload, change);
    list_remove(&sandbox->unkept); /* this is newer than what was lost */
    domain_commit(domain, change, on_offload_kept, offload);
}

static void on_disk_dropped(void *context, const struct error *failure)
{
    struct offload *offload = context;

    if (failure && failure->code == ERR_NOT_FOUND)
        failure = NULL;
    if (!failure)
        offload->wish->sandbox->is_disk_left = false;
    sequence_next(&offload->sequence, failure);
}

static void drop_disk(void *context)
{
    struct offload *offload = context;

    provider_destroy(offload->wish->domain->options.provider, &offload->wish->sandbox->id,
                     on_disk_dropped, offload);
}

static const struct sequence_step offload_steps[] = {
    {"copy its disk", copy_to_store, .when = can_copy},
    {"store what it is told apart from", store_base, .when = has_unstored_base},
    {"store its disk", store_disk, .when = is_here_only, .point = "offload.stored"},
    {"keep that its disk is stored", keep_offload, .when = is_here_only, .point = "offload.kept"},
    {"delete its disk here", drop_disk, .point = "offload.dropped"},
    {.text = NULL},
};

const struct sequence_table sandbox_offload_sequence = {"disk.offload", offload_steps, offload_end};

/* --- the beginning --------------------------------------------------------------------------- */

static void offload_act(struct sandbox_wish *wish)
{
    struct offload *offload = wish->context;

    wish->domain->saves++;
    wish->sandbox->is_saving = wish->sandbox->is_held = true;
    sequence_begin(&offload->sequence, wish->domain, &sandbox_offload_sequence, &wish->sandbox->id,
                   offload);
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
    offload->wish = wish_make(domain, NULL, sandbox, SANDBOX_ACTION_SLEEP, offload_act,
                              on_offload_over, offload);
    offload->wish->why = "asleep for long";
    wish_begin_anyway(offload->wish);
}
