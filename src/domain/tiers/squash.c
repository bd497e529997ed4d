#include "domain/tiers/squash.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/crash_point.h"
#include "base/memory.h"
#include "domain/domain_internal.h"
#include "domain/domain_modules.h"
#include "domain/domain_share.h"
#include "domain/event/event.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandbox_wish.h"
#include "domain/snapshot/snapshot_internal.h"
#include "domain/snapshot/snapshot_set.h"
#include "domain/stored_disk.h"

#define NS_PER_MS UINT64_C(1000000)

struct squash {
    struct domain *domain;
    struct sandbox *sandbox;   /* a reference; NULL: it is of a snapshot */
    struct snapshot *snapshot; /* pinned */
    struct id owner;
    struct stored_disk disk;
    char *before, *after; /* owned: the list as it was, as it shall be */
    struct id scratch;    /* a disk without a row */
    bool has_scratch;
};

/* --- the end --------------------------------------------------------------------------------- */

/* One list that cannot be squashed does not keep others from it. */
static void put_off(const struct squash *squash)
{
    struct domain *domain = squash->domain;
    uint64_t now = domain_now_ns(domain);
    uint64_t *of_it = squash->sandbox ? &squash->sandbox->squash_ns : &squash->snapshot->squash_ns;

    *of_it = now + SQUASH_AGAIN_MS * NS_PER_MS;
    domain->squash_ns = now + SQUASH_PAUSE_MS * NS_PER_MS;
}

static void end(struct squash *squash, const struct error *failure)
{
    struct domain *domain = squash->domain;

    if (failure && domain->stage == DOMAIN_OPEN)
        LOG_WARNING(domain->options.log, "a long list of layers could not be squashed",
                    log_text("error", failure->message));
    if (failure)
        put_off(squash);
    if (squash->has_scratch)
        sandbox_orphan(domain, &squash->scratch, NULL, NULL);
    if (squash->snapshot)
        snapshot_unpin(domain, squash->snapshot);
    sandbox_unref(squash->sandbox);
    stored_disk_done(&squash->disk);
    free(squash->before);
    free(squash->after);
    free(squash);
    domain->is_squashing = false;
    domain->saves--;
    domain->works--;
    domain_check_gone(domain);
}

/* --- kept ------------------------------------------------------------------------------------ */

static void on_snapshot_kept(void *context, const struct error *failure,
                             const struct store_receipt *receipt)
{
    struct squash *squash = context;

    if (!failure) {
        CRASH_POINT("squash.kept");
        event_kept(squash->domain, receipt);
        free(squash->snapshot->layers);
        squash->snapshot->layers = TAKE_PTR(squash->after);
    }
    snapshot_moved(squash->domain, squash->snapshot, NULL);
    end(squash, failure);
}

static void on_sandbox_kept(void *context, const struct error *failure,
                            const struct store_receipt *receipt)
{
    struct squash *squash = context;
    struct sandbox *sandbox = squash->sandbox;

    if (failure) {
        free(sandbox->stored);
        sandbox->stored = TAKE_PTR(squash->before);
    } else {
        CRASH_POINT("squash.kept");
        event_kept(squash->domain, receipt);
    }
    snapshot_release(squash->domain, sandbox);
    end(squash, failure);
}

static void keep_snapshot(struct squash *squash, struct store_transaction *change)
{
    struct store_value values[STORE_SNAPSHOT_COLUMN_COUNT];

    squash->snapshot->is_moving = true;
    snapshot_row(squash->snapshot, values);
    values[STORE_SNAPSHOT_LAYERS] = store_text(squash->after);
    store_update(change, STORE_SNAPSHOT, values);
    domain_commit(squash->domain, change, on_snapshot_kept, squash);
}

/* Held, so that nobody begins with the list that is about to be another. */
static void keep_sandbox(struct squash *squash, struct store_transaction *change)
{
    struct sandbox *sandbox = squash->sandbox;
    struct caller system = caller_system();
    AUTO(sandbox_row) struct sandbox_row row;

    sandbox->is_held = true;
    free(sandbox->stored);
    sandbox->stored = mem_copy_text(squash->after);
    sandbox_row_init(&row, sandbox, NULL);
    store_update(change, STORE_SANDBOX, row.values);
    sandbox_add_event(squash->domain, change, &system, sandbox, NULL, "sandbox.squashed");
    domain_commit(squash->domain, change, on_sandbox_kept, squash);
}

/* --- stored ---------------------------------------------------------------------------------- */

static const char *list_of(const struct squash *squash)
{
    return squash->snapshot ? squash->snapshot->layers : squash->sandbox->stored;
}

static bool is_overtaken(const struct squash *squash)
{
    const char *now = list_of(squash);
    bool is_busy = squash->sandbox ? sandbox_is_busy(squash->sandbox) ||
                                         squash->sandbox->status == SANDBOX_DESTROYED
                                   : !squash->snapshot->is_kept || squash->snapshot->is_going ||
                                         squash->snapshot->is_moving;

    return is_busy || !now || strcmp(now, squash->before) != 0;
}

static void on_stored(void *context, const struct error *failure, const struct vault_layer *layer)
{
    struct squash *squash = context;
    struct domain *domain = squash->domain;
    AUTO(stored_disk) struct stored_disk disk = {.layers = NULL};
    AUTO(text) struct text text = TEXT_INIT(STORED_DISK_MAX);
    struct store_transaction *change;
    struct error err = ERROR_INIT;

    if (!failure && !domain_is_open(domain, &err))
        failure = &err;
    if (failure || is_overtaken(squash)) {
        end(squash, failure);
        return;
    }
    CRASH_POINT("squash.stored");
    stored_disk_add(&disk, layer);
    stored_disk_write(&disk, &text);
    squash->after = mem_copy_text(text_string(&text));
    change = store_begin(domain->options.store);
    stored_disk_put_row(change, &squash->owner, layer, domain_wall_ms(domain));
    if (squash->sandbox)
        keep_sandbox(squash, change);
    else
        keep_snapshot(squash, change);
}

static void store(struct squash *squash, struct disk_ref disk)
{
    const struct vault *vault = squash->domain->options.vault;
    const struct vault_asker asker = {.who = domain_asker_of(squash->domain, &squash->owner),
                                      .haste = VAULT_LATER};

    vault->store_disk(vault->self, &asker, &disk, NULL, NULL, on_stored, squash);
}

/* --- fetched --------------------------------------------------------------------------------- */

static void on_fetched(void *context, const struct error *failure)
{
    struct squash *squash = context;
    struct error err = ERROR_INIT;

    squash->has_scratch = !failure;
    if (!failure && !domain_is_open(squash->domain, &err))
        failure = &err;
    if (failure)
        end(squash, failure);
    else
        store(squash, (struct disk_ref){DISK_OF_SANDBOX, squash->scratch});
}

static void fetch(struct squash *squash)
{
    const struct vault *vault = squash->domain->options.vault;
    const struct vault_asker asker = {.who = domain_asker_of(squash->domain, &squash->owner),
                                      .haste = VAULT_LATER};
    const struct vault_fetch what = {.asker = asker,
                                     .target = squash->scratch,
                                     .layers = squash->disk.layers,
                                     .count = squash->disk.count};

    vault->fetch_disk(vault->self, &what, NULL, on_fetched, squash);
}

/* --- the beginning --------------------------------------------------------------------------- */

static bool is_long(const struct domain *domain, const char *list, struct stored_disk *ret_disk)
{
    struct error err = ERROR_INIT;

    if (!list || stored_disk_is_short(list, domain->options.squash_above))
        return false;
    stored_disk_done(ret_disk);
    return stored_disk_read(list, ret_disk, &err) == 0 &&
           ret_disk->count > domain->options.squash_above;
}

static struct sandbox *find_sandbox(const struct domain *domain, struct stored_disk *ret_disk)
{
    uint64_t now = domain_now_ns(domain);

    LIST_EACH (&domain->sandboxes->all, at) {
        struct sandbox *sandbox = CONTAINER_OF(at, struct sandbox, link);

        if (!sandbox_is_busy(sandbox) && now >= sandbox->squash_ns &&
            is_long(domain, sandbox->stored, ret_disk))
            return sandbox;
    }
    return NULL;
}

static struct snapshot *find_snapshot(const struct domain *domain, struct stored_disk *ret_disk)
{
    uint64_t now = domain_now_ns(domain);

    LIST_EACH (&domain->snapshots->all, at) {
        struct snapshot *snapshot = CONTAINER_OF(at, struct snapshot, link);

        if (!snapshot->is_moving && !snapshot->is_going && now >= snapshot->squash_ns &&
            strcmp(snapshot->node, domain->options.node) == 0 &&
            is_long(domain, snapshot->layers, ret_disk))
            return snapshot;
    }
    return NULL;
}

static struct squash *squash_new(struct domain *domain, struct sandbox *sandbox,
                                 struct snapshot *snapshot, struct stored_disk *disk)
{
    struct squash *squash = mem_alloc(sizeof(*squash));

    *squash = (struct squash){.domain = domain,
                              .sandbox = sandbox ? sandbox_ref(sandbox) : NULL,
                              .snapshot = snapshot,
                              .owner = sandbox ? sandbox->owner : snapshot->owner,
                              .disk = *disk,
                              .scratch = id_new()};
    *disk = (struct stored_disk){.layers = NULL};
    if (snapshot)
        snapshot_pin(snapshot);
    squash->before = mem_copy_text(list_of(squash));
    domain->is_squashing = true;
    domain->saves++;
    domain->works++;
    return squash;
}

static bool may_begin(const struct domain *domain)
{
    return domain->options.squash_above && domain->options.vault && domain->options.provider &&
           !domain->is_provider_lost && domain->stage == DOMAIN_OPEN && !domain->is_squashing &&
           !domain->is_collecting && domain_now_ns(domain) >= domain->squash_ns;
}

static void tick(struct domain *domain)
{
    AUTO(stored_disk) struct stored_disk disk = {.layers = NULL};
    struct sandbox *sandbox;
    struct snapshot *snapshot;
    struct squash *squash;

    if (!may_begin(domain))
        return;
    sandbox = find_sandbox(domain, &disk);
    snapshot = sandbox ? NULL : find_snapshot(domain, &disk);
    if (!sandbox && !snapshot)
        return;
    squash = squash_new(domain, sandbox, snapshot, &disk);
    if (snapshot && snapshot->state == SNAPSHOT_IS_READY)
        store(squash, (struct disk_ref){DISK_OF_SNAPSHOT, snapshot->id});
    else
        fetch(squash);
}

const struct domain_module domain_squash = {.name = "squash", .tick = tick};
