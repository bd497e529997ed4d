#include "domain/snapshot/snapshot_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/domain_share.h"

static const char *const reason_texts[SNAPSHOT_REASON_COUNT] = {
#define X(name, text) [SNAPSHOT_##name] = text,
    SNAPSHOT_REASONS(X)
#undef X
};

static const char *const state_texts[SNAPSHOT_STATE_COUNT] = {
#define X(name, text) [SNAPSHOT_IS_##name] = text,
    SNAPSHOT_STATES(X)
#undef X
};

const char *snapshot_reason_text(enum snapshot_reason reason)
{
    return reason_texts[reason];
}

const char *snapshot_state_text(enum snapshot_state state)
{
    return state_texts[state];
}

/* --- references ------------------------------------------------------------------------------ */

struct snapshot *snapshot_ref(struct snapshot *snapshot)
{
    snapshot->references++;
    return snapshot;
}

void snapshot_unref(struct snapshot *snapshot)
{
    if (!snapshot || --snapshot->references > 0)
        return;
    free(snapshot->name);
    free(snapshot->spec);
    free(snapshot->inside);
    free(snapshot->layers);
    free(snapshot);
}

/* --- counting -------------------------------------------------------------------------------- */

static struct snapshot_usage *find_usage(const struct domain *domain, const struct id *owner)
{
    struct table_link *at = table_find(&domain->snapshots->usages, domain_id_hash(domain, owner));

    for (; at; at = table_next(at)) {
        struct snapshot_usage *usage = CONTAINER_OF(at, struct snapshot_usage, by_owner);

        if (id_equal(&usage->owner, owner))
            return usage;
    }
    return NULL;
}

const struct snapshot_usage *snapshot_set_usage(const struct domain *domain, const struct id *owner)
{
    return find_usage(domain, owner);
}

static void count_in(struct domain *domain, const struct snapshot *snapshot)
{
    struct snapshot_usage *usage = find_usage(domain, &snapshot->owner);

    if (!usage) {
        usage = mem_alloc(sizeof(*usage));
        usage->owner = snapshot->owner;
        usage->by_owner.hash = domain_id_hash(domain, &snapshot->owner);
        table_add(&domain->snapshots->usages, &usage->by_owner);
    }
    usage->count++;
    usage->bases += snapshot->reason == SNAPSHOT_SLEEP;
    usage->bytes += snapshot->size;
}

static void count_out(struct domain *domain, const struct snapshot *snapshot)
{
    struct snapshot_usage *usage = find_usage(domain, &snapshot->owner);

    usage->bytes -= snapshot->size;
    usage->bases -= snapshot->reason == SNAPSHOT_SLEEP;
    if (--usage->count > 0)
        return;
    table_remove(&domain->snapshots->usages, &usage->by_owner);
    free(usage);
}

void snapshot_set_size(struct domain *domain, struct snapshot *snapshot, uint64_t size)
{
    count_out(domain, snapshot);
    snapshot->size = size;
    count_in(domain, snapshot);
}

/* --- the tables ------------------------------------------------------------------------------ */

static uint64_t name_hash(const struct domain *domain, const struct id *owner, const char *name)
{
    return table_hash(domain_id_hash(domain, owner), name, strlen(name));
}

static char *copy_text(const char *text)
{
    return text ? mem_copy_text(text) : NULL;
}

struct snapshot *snapshot_set_add(struct domain *domain, const struct snapshot *like)
{
    struct snapshots *set = domain->snapshots;
    struct snapshot *snapshot = mem_alloc(sizeof(*snapshot));

    *snapshot = *like;
    snapshot->name = copy_text(like->name);
    snapshot->spec = copy_text(like->spec);
    snapshot->inside = copy_text(like->inside);
    snapshot->layers = copy_text(like->layers);
    snapshot->references = 1;
    snapshot->used_ms = like->created_ms;
    list_init(&snapshot->link);
    list_init(&snapshot->waiters);
    snapshot->by_id.hash = domain_id_hash(domain, &snapshot->id);
    table_add(&set->by_id, &snapshot->by_id);
    snapshot->by_sandbox.hash = domain_id_hash(domain, &snapshot->sandbox);
    table_add(&set->by_sandbox, &snapshot->by_sandbox);
    if (snapshot->name) {
        snapshot->by_name.hash = name_hash(domain, &snapshot->owner, snapshot->name);
        table_add(&set->by_name, &snapshot->by_name);
    }
    count_in(domain, snapshot);
    snapshot->claim = (struct share_claim) SHARE_CLAIM_NONE;
    domain_claim_anyway(domain, &snapshot->owner, SHARE_SNAPSHOTS, 1, &snapshot->claim);
    return snapshot;
}

static bool is_older(const struct snapshot *a, const struct snapshot *b)
{
    if (a->created_ms != b->created_ms)
        return a->created_ms < b->created_ms;
    return strcmp(a->id.text, b->id.text) < 0;
}

static void note_expiry(struct snapshots *set, const struct snapshot *snapshot)
{
    if (snapshot->expires_ms && snapshot->expires_ms < set->next_expiry_ms)
        set->next_expiry_ms = snapshot->expires_ms;
}

void snapshot_set_list(struct domain *domain, struct snapshot *snapshot)
{
    struct snapshots *set = domain->snapshots;
    struct list *behind = set->all.previous;

    while (behind != &set->all && is_older(snapshot, CONTAINER_OF(behind, struct snapshot, link)))
        behind = behind->previous;
    list_append(behind->next, &snapshot->link); /* before the next one is behind this one */
    snapshot->is_kept = true;
    note_expiry(set, snapshot);
}

static int compare(const void *a, const void *b)
{
    const struct snapshot *first = *(struct snapshot *const *) a;
    const struct snapshot *second = *(struct snapshot *const *) b;

    return is_older(first, second) ? -1 : is_older(second, first) ? 1 : 0;
}

void snapshot_set_sort(struct domain *domain)
{
    struct list *all = &domain->snapshots->all;
    AUTO(free)
    struct snapshot **sorted =
        mem_alloc_array(domain->snapshots->by_id.count + 1, sizeof(struct snapshot *));
    size_t count = 0;

    LIST_EACH (all, at)
        sorted[count++] = CONTAINER_OF(at, struct snapshot, link);
    qsort(sorted, count, sizeof(struct snapshot *), compare);
    list_init(all);
    for (size_t i = 0; i < count; i++)
        list_append(all, &sorted[i]->link);
}

void snapshot_set_remove(struct domain *domain, struct snapshot *snapshot)
{
    struct snapshots *set = domain->snapshots;

    count_out(domain, snapshot);
    share_release(&snapshot->claim);
    table_remove(&set->by_id, &snapshot->by_id);
    table_remove(&set->by_sandbox, &snapshot->by_sandbox);
    if (snapshot->name)
        table_remove(&set->by_name, &snapshot->by_name);
    list_remove(&snapshot->link);
    snapshot->is_kept = false;
    snapshot->is_gone = true;
    snapshot_unref(snapshot);
}

struct snapshot *snapshot_set_by_id(const struct domain *domain, const char *id)
{
    uint64_t hash = table_hash(domain->seed, id, strlen(id));

    for (struct table_link *at = table_find(&domain->snapshots->by_id, hash); at;
         at = table_next(at)) {
        struct snapshot *snapshot = CONTAINER_OF(at, struct snapshot, by_id);

        if (strcmp(snapshot->id.text, id) == 0)
            return snapshot;
    }
    return NULL;
}

struct snapshot *snapshot_set_by_name(const struct domain *domain, const struct id *owner,
                                      const char *name)
{
    uint64_t hash = name_hash(domain, owner, name);

    for (struct table_link *at = table_find(&domain->snapshots->by_name, hash); at;
         at = table_next(at)) {
        struct snapshot *snapshot = CONTAINER_OF(at, struct snapshot, by_name);

        if (id_equal(&snapshot->owner, owner) && strcmp(snapshot->name, name) == 0)
            return snapshot;
    }
    return NULL;
}

void snapshot_set_each_of(struct domain *domain, const struct id *sandbox,
                          void (*each)(struct domain *domain, struct snapshot *snapshot,
                                       void *context),
                          void *context)
{
    struct table_link *at =
        table_find(&domain->snapshots->by_sandbox, domain_id_hash(domain, sandbox));

    for (struct table_link *next; at; at = next) {
        struct snapshot *snapshot = CONTAINER_OF(at, struct snapshot, by_sandbox);

        next = table_next(at);
        if (snapshot->is_kept && id_equal(&snapshot->sandbox, sandbox))
            each(domain, snapshot, context);
    }
}

/* --- rows ------------------------------------------------------------------------------------ */

void snapshot_row(const struct snapshot *snapshot,
                  struct store_value ret_values[static STORE_SNAPSHOT_COLUMN_COUNT])
{
    ret_values[STORE_SNAPSHOT_ID] = store_text(snapshot->id.text);
    ret_values[STORE_SNAPSHOT_OWNER] = store_text(snapshot->owner.text);
    ret_values[STORE_SNAPSHOT_NODE] = store_text(snapshot->node);
    ret_values[STORE_SNAPSHOT_SANDBOX] = store_text(snapshot->sandbox.text);
    ret_values[STORE_SNAPSHOT_NAME] = store_text(snapshot->name);
    ret_values[STORE_SNAPSHOT_REASON] = store_text(snapshot_reason_text(snapshot->reason));
    ret_values[STORE_SNAPSHOT_STATE] = store_text(snapshot_state_text(snapshot->state));
    ret_values[STORE_SNAPSHOT_SPEC] = store_text(snapshot->spec);
    ret_values[STORE_SNAPSHOT_INSIDE] = store_text(snapshot->inside);
    ret_values[STORE_SNAPSHOT_SIZE] = store_integer((int64_t) snapshot->size);
    ret_values[STORE_SNAPSHOT_LAYERS] = store_text(snapshot->layers);
    ret_values[STORE_SNAPSHOT_CREATED] = store_integer(snapshot->created_ms);
    ret_values[STORE_SNAPSHOT_EXPIRES] =
        snapshot->expires_ms ? store_integer(snapshot->expires_ms) : store_null();
}

static int find_text(const char *const *texts, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(texts[i], text) == 0)
            return (int) i;
    return -1;
}

static char *row_text(const struct store_value *value)
{
    return value->is_null ? NULL : (char *) value->bytes;
}

int snapshot_load_row(struct domain *domain, const struct store_value *row, struct error *err)
{
    int reason = find_text(reason_texts, SNAPSHOT_REASON_COUNT, row[STORE_SNAPSHOT_REASON].bytes);
    int state = find_text(state_texts, SNAPSHOT_STATE_COUNT, row[STORE_SNAPSHOT_STATE].bytes);
    struct snapshot like = {.id = domain_row_id(&row[STORE_SNAPSHOT_ID]),
                            .owner = domain_row_id(&row[STORE_SNAPSHOT_OWNER]),
                            .sandbox = domain_row_id(&row[STORE_SNAPSHOT_SANDBOX]),
                            .name = row_text(&row[STORE_SNAPSHOT_NAME]),
                            .spec = row_text(&row[STORE_SNAPSHOT_SPEC]),
                            .inside = row_text(&row[STORE_SNAPSHOT_INSIDE]),
                            .layers = row_text(&row[STORE_SNAPSHOT_LAYERS]),
                            .size = (uint64_t) row[STORE_SNAPSHOT_SIZE].integer,
                            .created_ms = row[STORE_SNAPSHOT_CREATED].integer,
                            .is_kept = true};
    struct snapshot *snapshot;

    if (reason < 0 || state < 0 || !id_is_valid(like.id.text))
        return error_set(err, ERR_INTERNAL, 0,
                         "the row of snapshot '%.26s': its id, reason or state is none",
                         row[STORE_SNAPSHOT_ID].bytes);
    like.reason = (enum snapshot_reason) reason;
    like.state = (enum snapshot_state) state;
    like.expires_ms = row[STORE_SNAPSHOT_EXPIRES].is_null ? 0 : row[STORE_SNAPSHOT_EXPIRES].integer;
    (void) snprintf(like.node, sizeof(like.node), "%s", row[STORE_SNAPSHOT_NODE].bytes);
    snapshot = snapshot_set_add(domain, &like);
    list_append(&domain->snapshots->all, &snapshot->link);
    note_expiry(domain->snapshots, snapshot);
    return 0;
}
