/* Offload: the disk of a hibernated sandbox goes to the object store, then away from here.
 *
 *     copy of the disk ──► stored ──► commit (layer, sandbox.stored, event) ──► disk deleted
 *     [held a moment]      [free]     [held ────────────────────────────────────────────]
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
#include "domain/event.h"
#include "domain/expiry.h"
#include "domain/sandbox_set.h"
#include "domain/sandbox_wish.h"
#include "domain/snapshot_internal.h"
#include "domain/stored_disk.h"

#define NS_PER_MS      UINT64_C(1000000)
#define EVENT_DATA_MAX 256

struct offload {
    struct sandbox_wish *wish;
    struct id copy; /* a snapshot in passing, without a row */
    bool has_copy;
    uint64_t asleep_ns; /* of the sleep it is about: another one has another disk */
};

/* --- the end --------------------------------------------------------------------------------- */

static void on_over(void *context, const struct error *failure, struct sandbox *sandbox)
{
    (void) failure, (void) sandbox;
    free(context);
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

    if (failure) {
        free(sandbox->stored);
        sandbox->stored = NULL;
        fail(offload, failure);
        return;
    }
    CRASH_POINT("offload.kept");
    event_kept(domain, receipt);
    sandbox->is_disk_left = true;
    domain_latency_add(domain, &domain->counters.saves[SANDBOX_TIER_OFFLOADED],
                       offload->wish->asked_ns);
    drop(offload);
}

static void add_layer(struct store_transaction *change, const struct sandbox *sandbox,
                      const struct vault_layer *layer, int64_t now_ms)
{
    struct store_value values[STORE_LAYER_COLUMN_COUNT];

    values[STORE_LAYER_OWNER] = store_text(sandbox->owner.text);
    values[STORE_LAYER_ID] = store_text(layer->id);
    values[STORE_LAYER_SIZE] = store_integer((int64_t) layer->size);
    values[STORE_LAYER_BYTES] = store_integer((int64_t) layer->bytes);
    values[STORE_LAYER_SHA256] = store_bytes(layer->sum, sizeof(layer->sum));
    values[STORE_LAYER_CREATED] = store_integer(now_ms);
    values[STORE_LAYER_USED] = store_integer(now_ms);
    store_put(change, STORE_LAYER, values);
}

static void keep(struct offload *offload, const struct vault_layer *layer)
{
    struct domain *domain = offload->wish->domain;
    struct sandbox *sandbox = offload->wish->sandbox;
    struct vault_layer copy = *layer;
    const struct stored_disk disk = {.layers = &copy, .count = 1, .bytes = layer->bytes};
    struct store_transaction *change = store_begin(domain->options.store);
    AUTO(text) struct text stored = TEXT_INIT(STORED_DISK_MAX);
    AUTO(sandbox_row) struct sandbox_row row;
    char data[EVENT_DATA_MAX];

    stored_disk_write(&disk, &stored);
    sandbox->stored = mem_copy_text(text_string(&stored));
    domain->counters.offloaded_bytes += layer->size;
    sandbox->updated_ms = domain_wall_ms(domain);
    sandbox_row_init(&row, sandbox);
    store_update(change, STORE_SANDBOX, row.values);
    add_layer(change, sandbox, layer, sandbox->updated_ms);
    (void) snprintf(data, sizeof(data),
                    "{\"sandboxId\":\"%s\",\"bytes\":%" PRIu64 ",\"storedBytes\":%" PRIu64 "}",
                    sandbox->id.text, layer->bytes, layer->is_new ? layer->size : 0);
    event_add(domain, change, &offload->wish->caller, &sandbox->owner, sandbox->id.text,
              "sandbox.offloaded", data);
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

static void on_stored(void *context, const struct error *failure, const struct vault_layer *layer)
{
    struct offload *offload = context;
    struct error err = ERROR_INIT;

    if (!failure && !domain_is_open(offload->wish->domain, &err))
        failure = &err;
    if (is_overtaken(offload)) {
        offload->wish->sandbox->is_saving = false;
        offload->wish->domain->saves--;
        snapshot_doom(offload->wish->domain, &offload->copy);
        wish_end(offload->wish, NULL);
        return;
    }
    if (failure) {
        fail(offload, failure);
        return;
    }
    CRASH_POINT("offload.stored");
    offload->wish->sandbox->is_held = true;
    keep(offload, layer);
}

static void store(struct offload *offload, const struct provider_disk *disk)
{
    const struct vault *vault = offload->wish->domain->options.vault;

    vault->store_disk(vault->self, disk, NULL, &offload->wish->sandbox->owner, NULL, on_stored,
                      offload);
}

static void on_copied(void *context, const struct error *failure,
                      const struct provider_snapshot *how)
{
    struct offload *offload = context;
    struct domain *domain = offload->wish->domain;
    struct sandbox *sandbox = offload->wish->sandbox;
    struct error err = ERROR_INIT;

    (void) how;
    offload->has_copy = !failure;
    if (!failure && !domain_is_open(domain, &err))
        failure = &err;
    if (failure) {
        fail(offload, failure);
        return;
    }
    store(offload, &(struct provider_disk){PROVIDER_OF_SNAPSHOT, offload->copy});
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
        store(offload, &(struct provider_disk){PROVIDER_OF_SANDBOX, sandbox->id});
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
