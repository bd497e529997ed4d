/* A disk that is stored comes back:
 *
 *     what is left here is deleted ──► fetched, without the layers that a snapshot here has
 *       ──► a snapshot of it, where that costs nothing
 *       ──► commit (stored: nothing; the snapshot has the layers) ──► the wish goes on
 *
 * Until that commit the stored disk is the one that counts, so whatever happens before leaves it
 * untouched; after it the disk that is here does, so that nothing that a sandbox writes from then
 * on can be lost to an older copy. The snapshot is what the next offload tells apart from
 * (snapshot_base.c); it keeps the layers in use. Without one they are left to the collector. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/auto.h"
#include "base/crash_point.h"
#include "base/memory.h"
#include "domain/event/event.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandbox_wish.h"
#include "domain/snapshot/snapshot_internal.h"
#include "domain/snapshot/snapshot_set.h"
#include "domain/stored_disk.h"

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S  UINT64_C(1000000000)

struct restore {
    struct sandbox_wish *wish;
    struct stored_disk disk;
    void (*next)(struct sandbox_wish *wish);
    struct snapshot *start; /* pinned: it is what the first layers make; NULL: all are fetched */
    size_t start_layers;
    struct id copy;
    struct snapshot *base; /* of the set, not kept yet; NULL: none is made */
};

static void drop_start(struct restore *restore)
{
    struct snapshot *start = TAKE_PTR(restore->start);

    if (start)
        snapshot_unpin(restore->wish->domain, start);
}

static void restore_free(struct restore *restore)
{
    drop_start(restore);
    stored_disk_done(&restore->disk);
    free(restore);
}

static void drop_base(struct restore *restore)
{
    struct snapshot *base = TAKE_PTR(restore->base);

    if (!base)
        return;
    snapshot_doom(restore->wish->domain, &base->id);
    snapshot_set_remove(restore->wish->domain, base);
}

/* An object that is not there is no reason to say that there is no such sandbox. */
static struct error describe(const struct error *failure)
{
    struct error err = *failure;

    if (err.code == ERR_NOT_FOUND)
        err.code = ERR_GONE;
    (void) error_wrap(&err, "its disk could not be brought back from the object store");
    return err;
}

static void fail(struct restore *restore, const struct error *failure)
{
    struct sandbox_wish *wish = restore->wish;
    struct domain *domain = wish->domain;
    struct sandbox *sandbox = wish->sandbox;
    struct error err = describe(failure);

    LOG_ERROR(domain->options.log, "the disk of a sandbox did not come back",
              log_text("sandbox", sandbox->id.text), log_text("error", err.message));
    drop_base(restore);
    restore_free(restore);
    sandbox->is_held = false;
    sandbox->restore_ns = domain_now_ns(domain) + SANDBOX_RESTORE_AGAIN_MS * NS_PER_MS;
    sandbox->restore_code = err.code;
    domain->counters.restore_failures++;
    sandbox_set_reason(sandbox, "%s", err.message);
    sandbox_set_status(domain, sandbox, wish->before);
    if (domain->stage == DOMAIN_OPEN)
        sandbox_keep(domain, sandbox, "sandbox.restore_failed");
    wish_provider_failed(wish, &err);
}

static bool is_cut_short(struct restore *restore)
{
    struct error err = ERROR_INIT;

    if (domain_is_open(restore->wish->domain, &err))
        return false;
    fail(restore, &err);
    return true;
}

/* The same with a disk that is here. */
static bool is_closing(struct restore *restore)
{
    if (restore->wish->domain->stage == DOMAIN_OPEN)
        return false;
    restore->wish->sandbox->is_disk_left = true;
    return is_cut_short(restore);
}

/* --- kept ------------------------------------------------------------------------------------ */

static void on_kept(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    struct restore *restore = context;
    struct sandbox_wish *wish = restore->wish;
    struct sandbox *sandbox = wish->sandbox;
    void (*next)(struct sandbox_wish * wish) = restore->next;

    if (failure) {
        sandbox->is_disk_left = true;
        fail(restore, failure);
        return;
    }
    event_kept(wish->domain, receipt);
    if (restore->base) {
        sandbox->base = restore->base->id;
        snapshot_set_list(wish->domain, TAKE_PTR(restore->base));
    }
    free(sandbox->stored);
    sandbox->stored = NULL;
    sandbox->asleep_ns = domain_now_ns(wish->domain); /* it does not go again at once */
    if (is_cut_short(restore))
        return;
    sandbox->is_held = false;
    restore_free(restore);
    next(wish);
}

/* The row shows what shall be, and the status that it goes back to when this fails. */
static void keep(struct restore *restore)
{
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
    domain_commit(domain, change, on_kept, restore);
}

/* --- what it is told apart from later -------------------------------------------------------- */

static void on_copied(void *context, const struct error *failure, const struct snapshot_made *how)
{
    struct restore *restore = context;
    struct domain *domain = restore->wish->domain;
    struct sandbox *sandbox = restore->wish->sandbox;

    if (failure) {
        LOG_WARNING(domain->options.log, "a disk that came back will be stored whole",
                    log_text("sandbox", sandbox->id.text), log_text("error", failure->message));
    } else {
        CRASH_POINT("restore.copied");
        sandbox->is_copied = how->is_copied;
    }
    if (!failure && how->is_copied) /* as large as the disk itself: too dear */
        snapshot_doom(domain, &restore->copy);
    else if (!failure)
        restore->base = snapshot_base_add(domain, sandbox, &restore->copy, restore->disk.bytes);
    if (is_closing(restore))
        return;
    keep(restore);
}

/* --- fetched --------------------------------------------------------------------------------- */

static void fetch(struct restore *restore);

static void on_fetched(void *context, const struct error *failure)
{
    struct restore *restore = context;
    struct domain *domain = restore->wish->domain;

    if (failure && restore->start && domain->stage == DOMAIN_OPEN) {
        drop_start(restore); /* what is here may be at fault; the store has all of it */
        fetch(restore);
        return;
    }
    if (failure) {
        restore->wish->sandbox->is_disk_left = true; /* perhaps half of it */
        fail(restore, failure);
        return;
    }
    CRASH_POINT("restore.fetched");
    if (is_closing(restore))
        return;
    if (snapshot_base_is_wanted(domain, restore->wish->sandbox, restore->disk.bytes))
        provider_snapshot(domain->options.provider, &restore->wish->sandbox->id, &restore->copy,
                          false, on_copied, restore);
    else
        keep(restore);
}

static void fetch(struct restore *restore)
{
    const struct sandbox *sandbox = restore->wish->sandbox;
    const struct vault *vault = restore->wish->domain->options.vault;
    struct vault_fetch what = {.target = sandbox->id,
                               .owner = sandbox->owner,
                               .disk_bytes = sandbox->spec.limits.disk_bytes,
                               .layers = restore->disk.layers,
                               .count = restore->disk.count};

    if (restore->start) {
        what.start = (struct disk_ref){DISK_OF_SNAPSHOT, restore->start->id};
        what.layers += restore->start_layers;
        what.count -= restore->start_layers;
    }
    vault->fetch_disk(vault->self, &what, NULL, on_fetched, restore);
}

static void on_dropped(void *context, const struct error *failure)
{
    struct restore *restore = context;

    if (failure && failure->code != ERR_NOT_FOUND) {
        fail(restore, failure);
        return;
    }
    restore->wish->sandbox->is_disk_left = false;
    if (!is_cut_short(restore))
        fetch(restore);
}

/* --- the beginning --------------------------------------------------------------------------- */

/* It failed a moment ago: a client that asks again and again is no reason to ask the store as
 * often. The reason is still that of the failure. */
static bool is_too_early(struct sandbox_wish *wish)
{
    const struct sandbox *sandbox = wish->sandbox;
    uint64_t now = domain_now_ns(wish->domain);
    struct error err = ERROR_INIT;

    if (now >= sandbox->restore_ns)
        return false;
    (void) error_set(&err, sandbox->restore_code, 0, "%s; it is tried again in %" PRIu64 " s",
                     sandbox->reason, (sandbox->restore_ns - now + NS_PER_S - 1) / NS_PER_S);
    wish_provider_failed(wish, &err);
    return true;
}

void sandbox_bring_back(struct sandbox_wish *wish, void (*next)(struct sandbox_wish *wish))
{
    struct domain *domain = wish->domain;
    struct sandbox *sandbox = wish->sandbox;
    struct restore *restore;
    struct error err = ERROR_INIT;

    if (!sandbox_status_is_busy(sandbox->status)) /* else `before` is the status before that */
        wish->before = sandbox->status;
    if (is_too_early(wish))
        return;
    restore = mem_alloc(sizeof(*restore));
    restore->wish = wish;
    restore->next = next;
    restore->copy = id_new();
    sandbox->is_held = true;
    if (!domain->options.vault) {
        (void) error_set(&err, ERR_UNAVAILABLE, 0, "there is no object store");
        fail(restore, &err);
    } else if (stored_disk_read(sandbox->stored, &restore->disk, &err) < 0) {
        fail(restore, &err);
    } else {
        restore->start = snapshot_start_take(domain, sandbox, &restore->start_layers);
        if (sandbox->is_disk_left)
            provider_destroy(domain->options.provider, &sandbox->id, on_dropped, restore);
        else
            fetch(restore);
    }
}
