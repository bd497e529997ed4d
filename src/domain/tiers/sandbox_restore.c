/* A disk that is stored comes back: restore_steps below. Layers that a snapshot here has are copied
 * from it instead of fetched.
 *
 * Until it is kept that the disk is here the stored disk is the one that counts, so whatever happens before leaves it
 * untouched; after it the disk that is here does, so that nothing that a sandbox writes from then
 * on can be lost to an older copy. The snapshot is what the next offload tells apart from
 * (snapshot_base.c); it keeps the layers in use. Without one they are left to the collector. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/domain_share.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandbox_wish.h"
#include "domain/snapshot/snapshot_internal.h"
#include "domain/snapshot/snapshot_set.h"
#include "domain/stored_disk.h"

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S  UINT64_C(1000000000)

struct restore {
    struct sequence sequence;
    struct sandbox_wish *wish;
    struct stored_disk disk;
    domain_done *done;
    void *context;
    struct snapshot *start; /* pinned: it is what the first layers make; NULL: all are fetched */
    size_t start_layers;
    bool may_be_here; /* all of the disk, or half of it */
    struct id copy;
    struct snapshot *base; /* of the set, not kept yet; NULL: none is made */
};

static void drop_start(struct restore *restore)
{
    struct snapshot *start = TAKE_PTR(restore->start);

    if (start)
        snapshot_unpin(restore->wish->domain, start);
}

static void drop_base(struct restore *restore)
{
    struct snapshot *base = TAKE_PTR(restore->base);

    if (!base)
        return;
    snapshot_orphan(restore->wish->domain, &base->id);
    snapshot_set_remove(restore->wish->domain, base);
}

/* --- the end --------------------------------------------------------------------------------- */

static void restore_fail(struct restore *restore, struct error *failure)
{
    struct sandbox_wish *wish = restore->wish;
    struct domain *domain = wish->domain;
    struct sandbox *sandbox = wish->sandbox;

    /* An object that is not there is no reason to say that there is no such sandbox. */
    if (failure->code == ERR_NOT_FOUND)
        failure->code = ERR_GONE;
    error_prefix(failure, "its disk could not be brought back from the object store");
    LOG_ERROR(domain->options.log, "the disk of a sandbox did not come back",
              log_text("sandbox", sandbox->id.text), log_text("error", failure->message));
    drop_base(restore);
    sandbox->is_disk_left |= sandbox->stored && restore->may_be_here;
    sandbox->restore_ns = domain_now_ns(domain) + SANDBOX_RESTORE_AGAIN_MS * NS_PER_MS;
    sandbox->restore_code = failure->code;
    domain->counters.restore_failures++;
    sandbox_set_reason(sandbox, "%s", failure->message);
    sandbox_set_status(domain, sandbox, wish->before);
    if (domain->stage == DOMAIN_OPEN)
        sandbox_keep(domain, sandbox, "sandbox.restore_failed");
}

static void restore_end(void *context, const struct error *failure)
{
    struct restore *restore = context;
    domain_done *done = restore->done;
    void *done_context = restore->context;
    struct error err = ERROR_INIT;

    restore->wish->sandbox->is_held = false;
    if (failure) {
        err = *failure;
        restore_fail(restore, &err);
    }
    drop_start(restore);
    stored_disk_done(&restore->disk);
    free(restore);
    done(done_context, failure ? &err : NULL);
}

/* --- the steps ------------------------------------------------------------------------------- */

static bool is_disk_left(const void *context)
{
    const struct restore *restore = context;

    return restore->wish->sandbox->is_disk_left;
}

static void on_leftover_dropped(void *context, const struct error *failure)
{
    struct restore *restore = context;

    if (failure && failure->code == ERR_NOT_FOUND)
        failure = NULL;
    if (!failure)
        restore->wish->sandbox->is_disk_left = false;
    sequence_next(&restore->sequence, failure);
}

static void drop_leftover(void *context)
{
    struct restore *restore = context;

    provider_destroy(restore->wish->domain->options.provider, &restore->wish->sandbox->id,
                     on_leftover_dropped, restore);
}

static void fetch_layers(void *context);

static void on_layers_fetched(void *context, const struct error *failure)
{
    struct restore *restore = context;

    if (failure && restore->start && restore->wish->domain->stage == DOMAIN_OPEN) {
        drop_start(restore); /* what is here may be at fault; the store has all of it */
        fetch_layers(restore);
        return;
    }
    sequence_next(&restore->sequence, failure);
}

static void fetch_layers(void *context)
{
    struct restore *restore = context;
    const struct sandbox *sandbox = restore->wish->sandbox;
    const struct vault *vault = restore->wish->domain->options.vault;
    struct vault_fetch what = {
        .asker = {.who = domain_asker_of(restore->wish->domain, &sandbox->owner),
                  .haste = VAULT_WAKE},
        .target = sandbox->id,
        .disk_bytes = sandbox->spec.limits.disk_bytes,
        .layers = restore->disk.layers,
        .count = restore->disk.count};

    if (restore->start) {
        what.start = (struct disk_ref){DISK_OF_SNAPSHOT, restore->start->id};
        what.layers += restore->start_layers;
        what.count -= restore->start_layers;
    }
    restore->may_be_here = true;
    vault->fetch_disk(vault->self, &what, NULL, on_layers_fetched, restore);
}

static bool is_base_wanted(const void *context)
{
    const struct restore *restore = context;

    return snapshot_base_is_wanted(restore->wish->domain, restore->wish->sandbox,
                                   restore->disk.bytes);
}

static void on_base_copied(void *context, const struct error *failure,
                           const struct snapshot_made *how)
{
    struct restore *restore = context;
    struct domain *domain = restore->wish->domain;
    struct sandbox *sandbox = restore->wish->sandbox;

    if (!failure)
        sandbox->is_copied = how->is_copied;
    if (!failure && how->is_copied) /* as large as the disk itself: too dear */
        snapshot_orphan(domain, &restore->copy);
    else if (!failure)
        restore->base = snapshot_base_add(domain, sandbox, &restore->copy, restore->disk.bytes);
    sequence_next(&restore->sequence, failure);
}

/* Without it the disk will be stored whole. */
static void copy_as_base(void *context)
{
    struct restore *restore = context;

    provider_snapshot(restore->wish->domain->options.provider, &restore->wish->sandbox->id,
                      &restore->copy, false, on_base_copied, restore);
}

static void on_disk_kept(void *context, const struct error *failure,
                         const struct store_receipt *receipt)
{
    struct restore *restore = context;
    struct sandbox_wish *wish = restore->wish;
    struct sandbox *sandbox = wish->sandbox;

    if (!failure && restore->base) {
        sandbox->base = restore->base->id;
        snapshot_set_list(wish->domain, TAKE_PTR(restore->base));
    }
    if (!failure) {
        free(sandbox->stored);
        sandbox->stored = NULL;
        sandbox->asleep_ns = domain_now_ns(wish->domain); /* it does not go again at once */
    }
    sequence_kept(&restore->sequence, failure, receipt);
}

/* The row shows what shall be, and the status that it goes back to when this fails. */
static void keep_restored_disk(void *context)
{
    struct restore *restore = context;
    struct domain *domain = restore->wish->domain;
    struct sandbox *sandbox = restore->wish->sandbox;
    struct store_transaction *change = store_begin(domain->options.store);
    struct sandbox_next next = sandbox_next(sandbox);
    struct store_value values[STORE_SNAPSHOT_COLUMN_COUNT];
    AUTO(sandbox_row) struct sandbox_row row;

    sandbox->updated_ms = domain_wall_ms(domain);
    sandbox->is_disk_new = false; /* what was fetched is on disk */
    sandbox->base = (struct id){.text = ""};
    next.status = restore->wish->before;
    next.stored = NULL;
    next.base = restore->base ? restore->base->id : sandbox->base;
    sandbox_row_init(&row, sandbox, &next);
    store_update(change, STORE_SANDBOX, row.values);
    if (restore->base) {
        snapshot_row(restore->base, values);
        store_insert(change, STORE_SNAPSHOT, values);
    }
    sandbox_add_event(domain, change, &restore->wish->caller, sandbox, &next, "sandbox.restored");
    list_remove(&sandbox->unkept); /* this is newer than what was lost */
    domain_commit(domain, change, on_disk_kept, restore);
}

static const struct sequence_step restore_steps[] = {
    {"delete what is left of it here", drop_leftover, .when = is_disk_left},
    {"fetch its layers", fetch_layers, .point = "restore.fetched"},
    {"copy it, to tell apart what changes", copy_as_base, .when = is_base_wanted,
     .point = "restore.copied", .on_failure = SEQUENCE_WARNS},
    {"keep that it is here", keep_restored_disk, .point = "restore.kept"},
    {.text = NULL},
};

const struct sequence_table sandbox_restore_sequence = {"disk.restore", restore_steps, restore_end};

/* --- the beginning --------------------------------------------------------------------------- */

/* It failed a moment ago: a client that asks again and again is no reason to ask the store as
 * often. The reason is still that of the failure. */
static bool is_too_early(const struct sandbox_wish *wish, struct error *err)
{
    const struct sandbox *sandbox = wish->sandbox;
    uint64_t now = domain_now_ns(wish->domain);

    if (now >= sandbox->restore_ns)
        return false;
    (void) error_set(err, sandbox->restore_code, 0, "%s; it is tried again in %" PRIu64 " s",
                     sandbox->reason, (sandbox->restore_ns - now + NS_PER_S - 1) / NS_PER_S);
    return true;
}

void sandbox_bring_back(struct sandbox_wish *wish, domain_done *done, void *context)
{
    struct domain *domain = wish->domain;
    struct sandbox *sandbox = wish->sandbox;
    struct restore *restore;
    struct error err = ERROR_INIT;

    if (!sandbox_status_is_busy(sandbox->status)) /* else `before` is the status before that */
        wish->before = sandbox->status;
    if (is_too_early(wish, &err)) {
        done(context, &err);
        return;
    }
    restore = mem_alloc(sizeof(*restore));
    *restore = (struct restore){.wish = wish, .done = done, .context = context, .copy = id_new()};
    sandbox->is_held = true;
    if (!domain->options.vault)
        (void) error_set(&err, ERR_UNAVAILABLE, 0, "there is no object store");
    if (!domain->options.vault || stored_disk_read(sandbox->stored, &restore->disk, &err) < 0) {
        restore_end(restore, &err);
        return;
    }
    restore->start = snapshot_start_take(domain, sandbox, &restore->start_layers);
    sequence_begin(&restore->sequence, domain, &sandbox_restore_sequence, &sandbox->id, restore);
}
