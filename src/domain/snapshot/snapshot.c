#include "domain/snapshot/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/domain_modules.h"
#include "domain/event/audit.h"
#include "domain/list_cursor.h"
#include "domain/snapshot/snapshot_internal.h"
#include "domain/snapshot/snapshot_set.h"

/* --- looking --------------------------------------------------------------------------------- */

static bool is_seen(const struct caller *caller, const struct snapshot *snapshot)
{
    return snapshot && snapshot->is_kept &&
           caller_sees_sandbox(caller, &snapshot->owner, &snapshot->sandbox);
}

struct snapshot *snapshot_find(struct domain *domain, const struct caller *caller,
                               const char *name_or_id, struct error *err)
{
    struct snapshot *snapshot = snapshot_set_by_id(domain, name_or_id);
    bool is_hidden = snapshot && snapshot->is_kept;

    if (is_seen(caller, snapshot))
        return snapshot;
    snapshot = snapshot_set_by_name(domain, &caller->owner, name_or_id);
    if (is_seen(caller, snapshot))
        return snapshot;
    (void) error_set(err, ERR_NOT_FOUND, 0, "no such snapshot '%.128s'", name_or_id);
    if (is_hidden && err)
        audit_add(domain, caller, "snapshot.find", name_or_id, err);
    return NULL;
}

static bool matches(const struct snapshot *snapshot, const struct caller *caller,
                    const struct snapshot_filter *filter)
{
    return is_seen(caller, snapshot) &&
           (!filter->sandbox || id_equal(filter->sandbox, &snapshot->sandbox)) &&
           (!filter->owner || id_equal(filter->owner, &snapshot->owner));
}

int snapshot_list(struct domain *domain, const struct caller *caller,
                  const struct snapshot_filter *filter, struct pool *pool,
                  void (*each)(void *context, struct snapshot *snapshot), void *context,
                  const char **ret_next, struct error *err)
{
    const struct list *all = &domain->snapshots->all;
    const struct snapshot *last = NULL;
    struct list_cursor cursor = {.created_ms = INT64_MAX};
    size_t count = 0;

    if (filter->limit < 1 || filter->limit > SNAPSHOT_LIST_MAX)
        return error_set(err, ERR_INVALID, 0, "a page has 1 to %d snapshots", SNAPSHOT_LIST_MAX);
    if (filter->after && list_cursor_read(&cursor, filter->after, err) < 0)
        return -1;
    *ret_next = NULL;
    for (const struct list *at = all->previous; at != all; at = at->previous) {
        struct snapshot *snapshot = CONTAINER_OF(at, struct snapshot, link);

        if (!list_cursor_precedes(&cursor, snapshot->created_ms, &snapshot->id) ||
            !matches(snapshot, caller, filter))
            continue;
        if (count == filter->limit ||
            (count && filter->is_full && filter->is_full(filter->full_context))) {
            *ret_next = list_cursor_write(last->created_ms, &last->id, pool);
            break;
        }
        last = snapshot;
        count++;
        each(context, snapshot);
    }
    return 0;
}

/* --- the module ------------------------------------------------------------------------------ */

/* What goes with a sandbox: made by itself, and without a time to be kept for. */
static const enum snapshot_reason goes_with_sandbox[] = {SNAPSHOT_INTERVAL, SNAPSHOT_TASK,
                                                         SNAPSHOT_ROLLBACK, SNAPSHOT_SLEEP};
_Static_assert(ARRAY_COUNT(goes_with_sandbox) <= DOMAIN_MODULE_CHANGES_MAX, "a delete each");

static void begin(struct domain *domain)
{
    domain->snapshots = mem_alloc(sizeof(*domain->snapshots));
    domain->snapshots->next_expiry_ms = INT64_MAX;
    list_init(&domain->snapshots->all);
    list_init(&domain->snapshots->orphans);
}

struct loading {
    struct domain *domain;
    domain_done *done;
    void *context;
};

static void on_loaded(void *context, const struct error *failure)
{
    struct loading loading = *(struct loading *) context;

    free(context);
    snapshot_set_sort(loading.domain);
    loading.done(loading.context, failure);
}

static void load(struct domain *domain, domain_done *done, void *context)
{
    struct loading *loading = mem_alloc(sizeof(*loading));

    *loading = (struct loading){.domain = domain, .done = done, .context = context};
    domain_load(domain, STORE_SNAPSHOT, STORE_SNAPSHOT_ID, snapshot_load_row, on_loaded, loading);
}

static void destroying(struct domain *domain, struct store_transaction *change,
                       const struct sandbox *sandbox)
{
    (void) domain;
    for (size_t i = 0; i < ARRAY_COUNT(goes_with_sandbox); i++) {
        const struct store_condition conditions[] = {
            {STORE_SNAPSHOT_SANDBOX, STORE_EQUAL, store_text(sandbox->id.text)},
            {STORE_SNAPSHOT_REASON, STORE_EQUAL,
             store_text(snapshot_reason_text(goes_with_sandbox[i]))},
            {STORE_SNAPSHOT_EXPIRES, STORE_IS_NULL, store_null()},
        };

        store_delete(change, STORE_SNAPSHOT, conditions, ARRAY_COUNT(conditions));
    }
}

static void leave_with_sandbox(struct domain *domain, struct snapshot *snapshot, void *context)
{
    (void) context;
    for (size_t i = 0; i < ARRAY_COUNT(goes_with_sandbox); i++)
        if (snapshot->reason == goes_with_sandbox[i] && !snapshot->expires_ms) {
            snapshot_leave(domain, snapshot);
            return;
        }
}

static void destroyed(struct domain *domain, const struct id *sandbox)
{
    snapshot_set_each_of(domain, sandbox, leave_with_sandbox, NULL);
}

static void tick(struct domain *domain)
{
    if (!domain->options.provider || domain->is_provider_lost)
        return;
    snapshot_orphans_retry(domain);
    snapshot_prune_expired(domain);
    snapshot_evict(domain);
}

static void free_all(struct snapshots *snapshots)
{
    for (size_t i = 0; i < snapshots->by_id.bucket_count; i++)
        for (struct table_link *at = snapshots->by_id.buckets[i], *next; at; at = next) {
            next = at->next;
            snapshot_unref(CONTAINER_OF(at, struct snapshot, by_id));
        }
    for (size_t i = 0; i < snapshots->usages.bucket_count; i++)
        for (struct table_link *at = snapshots->usages.buckets[i], *next; at; at = next) {
            next = at->next;
            free(CONTAINER_OF(at, struct snapshot_usage, by_owner));
        }
    table_done(&snapshots->by_id);
    table_done(&snapshots->by_name);
    table_done(&snapshots->by_sandbox);
    table_done(&snapshots->usages);
}

static void end(struct domain *domain)
{
    if (!domain->snapshots)
        return;
    snapshot_orphans_end(domain);
    free_all(domain->snapshots);
    free(domain->snapshots);
    domain->snapshots = NULL;
}

static uint64_t disk_bytes(const struct domain *domain, const struct id *owner)
{
    const struct snapshot_usage *usage = snapshot_set_usage(domain, owner);

    return usage ? usage->bytes : 0;
}

/* Sandboxes of a user keep him from being deleted, so nobody works with these. */
static void owner_deleting(struct domain *domain, struct store_transaction *change,
                           const struct id *owner)
{
    (void) domain;
    domain_delete_rows(change, STORE_SNAPSHOT, STORE_SNAPSHOT_OWNER, owner);
}

static void owner_deleted(struct domain *domain, const struct id *owner)
{
    LIST_EACH (&domain->snapshots->all, at) {
        struct snapshot *snapshot = CONTAINER_OF(at, struct snapshot, link);

        if (id_equal(&snapshot->owner, owner))
            snapshot_leave(domain, snapshot);
    }
}

const struct domain_module domain_snapshots = {
    .name = "snapshots",
    .begin = begin,
    .load = load,
    .destroying = destroying,
    .destroyed = destroyed,
    .due = snapshot_due,
    .act = snapshot_make_due,
    .disk_bytes = disk_bytes,
    .owner_deleting = owner_deleting,
    .owner_deleted = owner_deleted,
    .tick = tick,
    .end = end,
};
