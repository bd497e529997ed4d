/* Syncs and restores of workspaces.
 *
 *     order ──(its sandbox has a disk here)──► waits ──► run: all syncs that wait share one
 *
 * An order that has to wake its sandbox does so before it waits, so that nothing that waits holds
 * up a sandbox which falls asleep and has an order of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/crash_point.h"
#include "base/encoding/encode.h"
#include "base/memory.h"
#include "base/number.h"
#include "domain/backup/backup.h"
#include "domain/domain_internal.h"
#include "domain/domain_share.h"
#include "domain/event/event.h"
#include "domain/identity/owner.h"
#include "domain/sandbox/sandbox_quota.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/snapshot/snapshot_internal.h"
#include "domain/workspace/workspace_internal.h"

#define EVENT_DATA_MAX 512

enum order_kind { ORDER_SYNC, ORDER_RESTORE };

struct order {
    struct domain_task task; /* for an answer that is known at once */
    struct list link;        /* of workspace.orders or run.orders */
    struct domain *domain;
    struct caller caller;
    struct sandbox *sandbox; /* a reference */
    struct sandbox_use use;  /* while it must not fall asleep */
    enum order_kind kind;
    bool freeze;
    const char *reason; /* static: why, for the event */
    domain_done *slept; /* one of these three */
    workspace_sync_done *synced;
    workspace_restore_done *restored;
    void *context;
    struct error failure;
};

struct run {
    struct list link; /* of workspaces.runs */
    struct domain *domain;
    struct workspace *workspace;
    enum order_kind kind;
    struct list orders; /* of struct order; the first one counts as whoever asked */
    struct id snapshot;
    bool freeze; /* one order that wants it is enough */
    bool has_snapshot;
    uint64_t begun_ns;
    uint64_t bytes_max; /* 0: no limit */
    struct workspace_synced synced;
    uint64_t files, bytes; /* restored */
};

/* --- the end --------------------------------------------------------------------------------- */

static void order_end(struct order *order, const struct error *failure, const struct run *run)
{
    struct domain *domain = order->domain;

    list_remove(&order->link);
    sandbox_use_end(&order->use);
    if (order->slept)
        order->slept(order->context, failure);
    else if (order->synced)
        order->synced(order->context, failure, failure ? NULL : &run->synced);
    else
        order->restored(order->context, failure, failure ? 0 : run->files,
                        failure ? 0 : run->bytes);
    sandbox_unref(order->sandbox);
    free(order);
    domain->works--;
    domain_check_gone(domain);
}

static void refuse(struct domain_task *task)
{
    struct order *order = CONTAINER_OF(task, struct order, task);

    order_end(order, &order->failure, NULL);
}

static void fail_all(struct list *orders, const struct error *failure)
{
    LIST_EACH (orders, at)
        order_end(CONTAINER_OF(at, struct order, link), failure, NULL);
}

void workspace_fail_orders(struct workspace *workspace)
{
    struct error gone = ERROR_INIT;

    (void) error_set(&gone, ERR_NOT_FOUND, 0, "sandbox %s was destroyed", workspace->sandbox.text);
    list_remove(&workspace->due);
    fail_all(&workspace->orders, &gone);
}

static struct order *first_order(const struct run *run)
{
    return CONTAINER_OF(list_first(&run->orders), struct order, link);
}

static void run_gone(struct run *run)
{
    struct domain *domain = run->domain;
    struct workspace *workspace = run->workspace;

    list_remove(&run->link);
    domain->workspaces->run_count--;
    workspace->is_running = false;
    free(run);
    workspace_rest(domain, workspace);
    workspace_go_on(domain);
    domain->works--;
    domain_check_gone(domain);
}

static void on_snapshot_gone(void *context, const struct error *failure)
{
    struct run *run = context;

    /* One that stays has no row: recovery takes it away. */
    if (failure)
        LOG_WARNING(run->domain->options.log, "the snapshot of a sync is still there",
                    log_text("snapshot", run->snapshot.text), log_text("error", failure->message));
    run_gone(run);
}

static void run_end(struct run *run, const struct error *failure)
{
    struct domain *domain = run->domain;

    if (run->kind == ORDER_SYNC && !failure)
        domain_latency_add(domain, &domain->counters.syncs, run->begun_ns);
    else if (run->kind == ORDER_SYNC)
        domain->counters.sync_failures++;
    LIST_EACH (&run->orders, at)
        order_end(CONTAINER_OF(at, struct order, link), failure, run);
    if (run->has_snapshot && domain->stage == DOMAIN_OPEN)
        provider_delete_snapshot(domain->options.provider, &run->snapshot, on_snapshot_gone, run);
    else
        run_gone(run);
}

/* Before each step: whether the domain closes, or the sandbox went meanwhile. */
static bool is_cut_short(struct run *run)
{
    struct error err = ERROR_INIT;

    if (domain_is_open(run->domain, &err) && !run->workspace->is_orphan)
        return false;
    if (run->workspace->is_orphan)
        (void) error_set(&err, ERR_NOT_FOUND, 0, "sandbox %s was destroyed",
                         run->workspace->sandbox.text);
    run_end(run, &err);
    return true;
}

/* --- sync ------------------------------------------------------------------------------------ */

static void add_event(struct run *run, struct store_transaction *change)
{
    const struct order *order = first_order(run);
    const struct workspace_synced *synced = &run->synced;
    char data[EVENT_DATA_MAX];

    if (run->kind == ORDER_SYNC)
        (void) snprintf(data, sizeof(data),
                        "{\"sandboxId\":\"%s\",\"syncedFiles\":%llu,\"skippedFiles\":%llu,"
                        "\"removedFiles\":%llu,\"totalFiles\":%llu,\"totalSize\":%llu,"
                        "\"reason\":\"%s\"}",
                        run->workspace->sandbox.text, (unsigned long long) synced->files,
                        (unsigned long long) synced->skipped, (unsigned long long) synced->removed,
                        (unsigned long long) synced->total_files,
                        (unsigned long long) synced->total_bytes, order->reason);
    else
        (void) snprintf(data, sizeof(data),
                        "{\"sandboxId\":\"%s\",\"restoredFiles\":%llu,\"totalSize\":%llu,"
                        "\"reason\":\"%s\"}",
                        run->workspace->sandbox.text, (unsigned long long) run->files,
                        (unsigned long long) run->bytes, order->reason);
    event_add(run->domain, change, &order->caller, &run->workspace->owner,
              run->workspace->sandbox.text,
              run->kind == ORDER_SYNC ? "workspace.synced" : "workspace.restored", data);
}

static void on_kept(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    struct run *run = context;

    if (!failure) {
        event_kept(run->domain, receipt);
        CRASH_POINT("workspace.sync.kept");
    }
    run_end(run, failure);
}

/* All that the owner has in the store, but for this mirror. */
static uint64_t storage_of_others(const struct run *run)
{
    return shares_held(run->domain->options.shares, &run->workspace->owner, SHARE_STORAGE) -
           run->workspace->state.bytes;
}

static void over_quota(const struct run *run, struct error *ret_err)
{
    uint64_t others = storage_of_others(run);
    char taken[NUMBER_TEXT_SIZE], left[NUMBER_TEXT_SIZE], maximum[NUMBER_TEXT_SIZE];

    number_format_size(others, taken);
    number_format_size(run->bytes_max, left);
    number_format_size(others + run->bytes_max, maximum);
    (void) error_set(
        ret_err, ERR_QUOTA, 0,
        "storage: %s of at most %s are taken by other workspaces, buckets and backups, "
        "and this one holds "
        "more than the %s that are left",
        taken, maximum, left);
}

static void on_synced(void *context, const struct error *failure, const struct vault_synced *synced)
{
    struct run *run = context;
    struct workspace *workspace = run->workspace;
    struct store_value values[STORE_WORKSPACE_COLUMN_COUNT];
    struct store_transaction *change;
    struct error err = ERROR_INIT;

    if (failure && failure->code == ERR_QUOTA) {
        over_quota(run, &err);
        failure = &err;
    }
    if (failure) {
        run_end(run, failure);
        return;
    }
    CRASH_POINT("workspace.sync.stored");
    run->synced = (struct workspace_synced){.files = synced->files,
                                            .skipped = synced->skipped,
                                            .unchanged = synced->unchanged,
                                            .removed = synced->removed,
                                            .total_files = synced->total_files,
                                            .total_bytes = synced->total_bytes,
                                            .time_ms = domain_wall_ms(run->domain),
                                            .pause_us = run->synced.pause_us};
    workspace_set_state(run->domain, workspace,
                        &(struct workspace_state){.files = synced->total_files,
                                                  .bytes = synced->total_bytes,
                                                  .synced_ms = run->synced.time_ms});
    (void) hex_encode(synced->manifest_sum, sizeof(synced->manifest_sum), workspace->manifest);
    if (is_cut_short(run))
        return;
    workspace_fill_row(workspace, values);
    change = store_begin(run->domain->options.store);
    store_update(change, STORE_WORKSPACE, values);
    add_event(run, change);
    domain_commit(run->domain, change, on_kept, run);
}

static const char *folder_of(const struct sandbox *sandbox)
{
    return sandbox->spec.folder ? sandbox->spec.folder : backup_folders[0];
}

static void on_snapshot(void *context, const struct error *failure,
                        const struct snapshot_made *snapshot)
{
    struct run *run = context;
    const struct domain_options *options = &run->domain->options;
    const struct sandbox *sandbox = first_order(run)->sandbox;
    char manifest[WORKSPACE_KEY_SIZE];
    const struct vault_sync what = {
        .asker = {.who = domain_asker_of(run->domain, &sandbox->owner), .haste = VAULT_LATER},
        .disk = {DISK_OF_SNAPSHOT, run->snapshot},
        .image = sandbox->spec.image,
        .folder = folder_of(sandbox),
        .prefix = run->workspace->prefix,
        .manifest = manifest,
        .excludes = run->domain->workspaces->excludes,
        .exclude_count = run->domain->workspaces->exclude_count,
        .bytes_max = run->bytes_max,
    };

    LIST_EACH (&run->orders, at)
        sandbox_use_end(&CONTAINER_OF(at, struct order, link)->use);
    if (failure) {
        run_end(run, failure);
        return;
    }
    run->has_snapshot = true;
    run->synced.pause_us = snapshot->pause_us;
    snapshot_count(run->domain, snapshot);
    if (is_cut_short(run))
        return;
    CRASH_POINT("workspace.sync.snapshot");
    workspace_manifest(manifest, &run->workspace->sandbox);
    options->vault->sync(options->vault->self, &what, NULL, on_synced, run);
}

static void take_snapshot(struct run *run)
{
    struct error err = ERROR_INIT;
    uint64_t others = storage_of_others(run);

    if (is_cut_short(run))
        return;
    if (sandbox_quota_storage(run->domain, &run->workspace->owner, others, &run->bytes_max, &err) <
        0) {
        run_end(run, &err);
        return;
    }
    provider_snapshot(run->domain->options.provider, &run->workspace->sandbox, &run->snapshot,
                      snapshot_freezes(run->domain, !run->freeze), on_snapshot, run);
}

static void on_begun(void *context, const struct error *failure,
                     const struct store_receipt *receipt)
{
    struct run *run = context;

    (void) receipt;
    if (failure) {
        run_end(run, failure);
        return;
    }
    run->workspace->is_kept = true;
    CRASH_POINT("workspace.sync.begun");
    take_snapshot(run);
}

static void begin_sync(struct run *run)
{
    struct store_value values[STORE_WORKSPACE_COLUMN_COUNT];
    struct store_transaction *change;

    if (run->workspace->is_kept) {
        take_snapshot(run);
        return;
    }
    workspace_fill_row(run->workspace, values);
    change = store_begin(run->domain->options.store);
    store_insert(change, STORE_WORKSPACE, values);
    domain_commit(run->domain, change, on_begun, run);
}

/* --- restore --------------------------------------------------------------------------------- */

static void on_told(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    struct run *run = context;

    /* It is restored, whether or not that could be written down. */
    if (!failure)
        event_kept(run->domain, receipt);
    run_end(run, NULL);
}

static void on_restored(void *context, const struct error *failure, uint64_t files, uint64_t bytes)
{
    struct run *run = context;
    struct store_transaction *change;

    run->files = files;
    run->bytes = bytes;
    if (failure || run->domain->stage != DOMAIN_OPEN || run->workspace->is_orphan) {
        run_end(run, failure);
        return;
    }
    CRASH_POINT("workspace.restore.restored");
    change = store_begin(run->domain->options.store);
    add_event(run, change);
    domain_commit(run->domain, change, on_told, run);
}

static void begin_restore(struct run *run)
{
    const struct vault *vault = run->domain->options.vault;
    char manifest[WORKSPACE_KEY_SIZE];
    const struct vault_mirror what = {.prefix = run->workspace->prefix,
                                      .manifest = manifest,
                                      .sandbox = run->workspace->sandbox,
                                      .folder = folder_of(first_order(run)->sandbox)};

    workspace_manifest(manifest, &run->workspace->sandbox);
    vault->restore_mirror(vault->self, &what, NULL, on_restored, run);
}

/* --- turns ----------------------------------------------------------------------------------- */

/* Syncs of an owner whose storage is limited come one after the other: each may take what is
 * left. */
static bool must_wait(const struct domain *domain, const struct workspace *workspace)
{
    if (workspace->is_running || domain->workspaces->run_count >= WORKSPACE_RUNS_MAX)
        return true;
    if (!sandbox_quota_limits_storage(domain, &workspace->owner))
        return false;
    LIST_EACH (&domain->workspaces->runs, at)
        if (id_equal(&CONTAINER_OF(at, struct run, link)->workspace->owner, &workspace->owner))
            return true;
    return false;
}

static void run_begin(struct domain *domain, struct workspace *workspace)
{
    struct run *run = mem_alloc(sizeof(*run));
    struct list *first = list_first(&workspace->orders);

    *run = (struct run){.domain = domain,
                        .workspace = workspace,
                        .kind = CONTAINER_OF(first, struct order, link)->kind,
                        .snapshot = id_new(),
                        .begun_ns = domain_now_ns(domain)};
    list_init(&run->orders);
    LIST_EACH (&workspace->orders, at) {
        if (at != first &&
            (run->kind != ORDER_SYNC || CONTAINER_OF(at, struct order, link)->kind != ORDER_SYNC))
            continue;
        list_remove(at);
        list_append(&run->orders, at);
        run->freeze |= CONTAINER_OF(at, struct order, link)->freeze;
    }
    if (list_is_empty(&workspace->orders))
        list_remove(&workspace->due);
    workspace->is_running = true;
    list_append(&domain->workspaces->runs, &run->link);
    domain->workspaces->run_count++;
    domain->works++;
    if (run->kind == ORDER_SYNC)
        begin_sync(run);
    else
        begin_restore(run);
}

static struct workspace *next_due(const struct domain *domain, bool is_open)
{
    LIST_EACH (&domain->workspaces->due, at) {
        struct workspace *workspace = CONTAINER_OF(at, struct workspace, due);

        if (!is_open || !must_wait(domain, workspace))
            return workspace;
    }
    return NULL;
}

void workspace_go_on(struct domain *domain)
{
    struct error err = ERROR_INIT;
    bool is_open = domain_is_open(domain, &err);

    struct workspace *workspace;

    /* From the start each time: what is begun may end at once, and change the list. */
    while ((workspace = next_due(domain, is_open))) {
        if (is_open) {
            run_begin(domain, workspace);
        } else {
            list_remove(&workspace->due);
            fail_all(&workspace->orders, &err);
        }
    }
}

static void go(struct domain_task *task)
{
    struct order *order = CONTAINER_OF(task, struct order, task);
    struct domain *domain = order->domain;
    struct workspace *workspace;
    struct error err = ERROR_INIT;

    if (order->sandbox->status == SANDBOX_DESTROYED)
        (void) error_set(&err, ERR_NOT_FOUND, 0, "sandbox %s was destroyed",
                         order->sandbox->id.text);
    if (err.code != ERR_NONE || !domain_is_open(domain, &err)) {
        order_end(order, &err, NULL);
        return;
    }
    workspace = workspace_need(domain, order->sandbox);
    if (order->kind == ORDER_RESTORE && !*workspace->manifest) {
        (void) error_set(&err, ERR_NOT_FOUND, 0, "the workspace of sandbox %s was never synced",
                         order->sandbox->id.text);
        order_end(order, &err, NULL);
        workspace_rest(domain, workspace);
        return;
    }
    list_append(&workspace->orders, &order->link);
    if (list_is_empty(&workspace->due))
        list_append(&domain->workspaces->due, &workspace->due);
    workspace_go_on(domain);
}

static void on_awake(struct sandbox_use *use, const struct error *failure)
{
    struct order *order = CONTAINER_OF(use, struct order, use);

    /* Perhaps from inside the call: the rest comes from the loop. */
    if (failure) {
        order->failure = *failure;
        domain_defer(order->domain, &order->task, refuse);
    } else {
        domain_defer(order->domain, &order->task, go);
    }
}

/* --- the beginnings -------------------------------------------------------------------------- */

static struct order *order_new(struct domain *domain, const struct caller *caller,
                               struct sandbox *sandbox, enum order_kind kind, void *context)
{
    struct order *order = mem_alloc(sizeof(*order));

    *order = (struct order){.domain = domain,
                            .caller = *caller,
                            .sandbox = sandbox_ref(sandbox),
                            .kind = kind,
                            .freeze = true,
                            .reason = "request",
                            .context = context};
    list_init(&order->link);
    domain->works++;
    return order;
}

static int check(struct order *order)
{
    const struct domain *domain = order->domain;
    struct error *err = &order->failure;
    struct error why = ERROR_INIT;

    if (!domain_is_open(domain, err))
        return -1;
    if (!caller_may_enter(&order->caller))
        return error_set(err, ERR_FORBIDDEN, 0, "this key may not sync workspaces");
    if (!domain->options.vault || !domain->options.provider ||
        !(provider_capabilities(domain->options.provider) & PROVIDER_SNAPSHOTS))
        return error_set(err, ERR_NOT_IMPLEMENTED, 0, "workspaces cannot be synced here");
    if (backup_check_dir(folder_of(order->sandbox), &why) < 0)
        return error_set(err, ERR_INVALID, 0, "the working folder cannot be synced: %s",
                         why.message);
    return 0;
}

/* One that has its disk here need not wake for a sync; all others do. */
static bool has_disk_here(const struct sandbox *sandbox)
{
    return !sandbox->stored && !sandbox->is_disk_lost &&
           (sandbox->status == SANDBOX_RUNNING || sandbox->status == SANDBOX_FROZEN ||
            sandbox->status == SANDBOX_HIBERNATED || sandbox->status == SANDBOX_STOPPED);
}

void workspace_sync(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                    bool freeze, workspace_sync_done *done, void *context)
{
    struct order *order = order_new(domain, caller, sandbox, ORDER_SYNC, context);

    order->synced = done;
    order->freeze = freeze;
    if (check(order) < 0)
        domain_defer(domain, &order->task, refuse);
    else if (has_disk_here(sandbox))
        domain_defer(domain, &order->task, go);
    else
        sandbox_use_begin(domain, sandbox, &order->use, 0, on_awake);
}

void workspace_restore(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                       workspace_restore_done *done, void *context)
{
    struct order *order = order_new(domain, caller, sandbox, ORDER_RESTORE, context);
    struct workspace_state state;

    order->restored = done;
    if (check(order) < 0) {
        domain_defer(domain, &order->task, refuse);
    } else if (!workspace_find(domain, &sandbox->id, &state)) {
        domain_defer(domain, &order->task, go); /* which says so, without a wake */
    } else {
        sandbox_use_begin(domain, sandbox, &order->use, SANDBOX_USE_START, on_awake);
    }
}

void workspace_sync_to_sleep(struct domain *domain, struct sandbox *sandbox, domain_done *done,
                             void *context)
{
    struct caller caller = caller_system();
    struct order *order;

    if (!sandbox->spec.sync || !domain->options.vault ||
        !(provider_capabilities(domain->options.provider) & PROVIDER_SNAPSHOTS)) {
        done(context, NULL);
        return;
    }
    order = order_new(domain, &caller, sandbox, ORDER_SYNC, context);
    order->slept = done;
    order->reason = "sleep";
    domain_defer(domain, &order->task, check(order) < 0 ? refuse : go);
}

void workspace_restore_to_wake(struct domain *domain, struct sandbox *sandbox,
                               workspace_restore_done *done, void *context)
{
    struct caller caller = caller_system();
    struct order *order = order_new(domain, &caller, sandbox, ORDER_RESTORE, context);

    order->restored = done;
    order->reason = "wake";
    domain_defer(domain, &order->task, check(order) < 0 ? refuse : go);
}
