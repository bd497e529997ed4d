#include "domain/tiers/collector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/crash_point.h"
#include "base/encoding/uuid.h"
#include "base/memory.h"
#include "domain/backup/backup_internal.h"
#include "domain/domain_internal.h"
#include "domain/domain_modules.h"
#include "domain/identity/owner.h"
#include "domain/snapshot/snapshot_internal.h"
#include "domain/snapshot/snapshot_set.h"
#include "domain/tiers/layer_marks.h"
#include "objects/objects.h"

#define LAYERS    "layers/"
#define BACKUPS   "backups/"
#define PAGE      32 /* a row each: fits a transaction */
#define NS_PER_MS UINT64_C(1000000)

struct collection {
    struct domain_task task;
    struct domain *domain;
    int64_t before_ms; /* younger ones stay */
    struct layer_marks marks;
    bool is_at_backups; /* layers come first */
    char *after;        /* owned: cursor of the next page; NULL: this is the last */
    char *keys[PAGE];   /* owned: garbage of this page; of backups: also what may be */
    uint64_t sizes[PAGE];
    size_t key_count;
    size_t next_key; /* of backups: whose row is asked for */
    bool was_busy;
    struct id leaving; /* a user who is no more, whose buckets go; "": nobody */
    struct collected collected;
    collector_done *done;
    void *context;
    bool is_counted; /* domain->is_collecting is ours */
    struct error failure;
};

/* --- the end --------------------------------------------------------------------------------- */

static void forget_keys(struct collection *collection)
{
    while (collection->key_count)
        free(collection->keys[--collection->key_count]);
}

static void end(struct collection *collection, const struct error *failure)
{
    struct domain *domain = collection->domain;

    if (collection->is_counted)
        domain->is_collecting = false;
    LOG_INFO(domain->options.log, failure ? "garbage was not collected" : "garbage was collected",
             log_text("error", failure ? failure->message : ""),
             log_number("layers", (int64_t) collection->collected.layers),
             log_number("objects", (int64_t) collection->collected.objects),
             log_number("snapshots", (int64_t) collection->collected.snapshots),
             log_number("buckets", (int64_t) collection->collected.buckets),
             log_number("bytes", (int64_t) collection->collected.bytes));
    if (collection->done)
        collection->done(collection->context, failure, failure ? NULL : &collection->collected);
    forget_keys(collection);
    layer_marks_done(&collection->marks);
    free(collection->after);
    free(collection);
    domain->works--;
    domain_check_gone(domain);
}

static void refuse(struct domain_task *task)
{
    struct collection *collection = CONTAINER_OF(task, struct collection, task);

    end(collection, &collection->failure);
}

/* --- a page ---------------------------------------------------------------------------------- */

static void list_page(struct collection *collection);

static void look_at_snapshots(struct collection *collection);

static void remove_buckets(struct collection *collection);

static void on_deleted(void *context, const struct error *failure)
{
    struct collection *collection = context;

    forget_keys(collection);
    if (failure) {
        end(collection, failure);
    } else if (collection->after || !collection->is_at_backups) {
        collection->is_at_backups |= collection->after == NULL;
        list_page(collection);
    } else {
        look_at_snapshots(collection);
    }
}

static void delete_objects(struct collection *collection)
{
    if (collection->key_count)
        (void) objects_delete(collection->domain->options.objects,
                              (const char *const *) collection->keys, collection->key_count,
                              on_deleted, collection);
    else
        on_deleted(collection, NULL);
}

/* --- layers ---------------------------------------------------------------------------------- */

static void on_rows_gone(void *context, const struct error *failure,
                         const struct store_receipt *receipt)
{
    struct collection *collection = context;
    struct error err = ERROR_INIT;

    (void) receipt;
    if (!failure && !domain_is_open(collection->domain, &err))
        failure = &err;
    if (failure) {
        end(collection, failure);
        return;
    }
    CRASH_POINT("gc.rows");
    delete_objects(collection);
}

/* "layers/<owner>/<id>" */
static void delete_row(struct store_transaction *change, const char *key)
{
    const char *owner = key + strlen(LAYERS), *slash = strchr(owner, '/');
    const struct store_condition is_it[] = {
        {.column = STORE_LAYER_OWNER,
         .comparison = STORE_EQUAL,
         .value = {.bytes = owner, .length = slash ? (size_t) (slash - owner) : strlen(owner)}},
        {.column = STORE_LAYER_ID,
         .comparison = STORE_EQUAL,
         .value = store_text(slash ? slash + 1 : "")},
    };

    store_delete(change, STORE_LAYER, is_it, ARRAY_COUNT(is_it));
}

static void delete_layers(struct collection *collection)
{
    struct domain *domain = collection->domain;
    struct store_transaction *change;

    if (collection->key_count == 0) {
        delete_objects(collection);
        return;
    }
    change = store_begin(domain->options.store);
    for (size_t i = 0; i < collection->key_count; i++)
        delete_row(change, collection->keys[i]);
    domain_commit(domain, change, on_rows_gone, collection);
}

static bool is_named(const struct collection *collection, const char *name)
{
    return strlen(name) >= LAYER_MARK_SIZE || layer_marks_have(&collection->marks, name);
}

/* --- backups --------------------------------------------------------------------------------- */

static void ask_rows(struct collection *collection);

/* "backups/<id>/..."; "": none of ours. */
static void backup_of_key(const char *key, char ret_id[static UUID_SIZE])
{
    const char *id = key + strlen(BACKUPS);
    size_t length = strcspn(id, "/");

    (void) snprintf(ret_id, UUID_SIZE, "%.*s", (int) length, length == UUID_LENGTH ? id : "");
    if (!uuid_is_valid(ret_id))
        ret_id[0] = '\0';
}

static void on_backup_row(void *context, const struct error *failure, const struct store_rows *rows)
{
    struct collection *collection = context;
    struct error err = ERROR_INIT;
    size_t at = collection->next_key;

    if (!failure && !domain_is_open(collection->domain, &err))
        failure = &err;
    if (failure) {
        end(collection, failure);
        return;
    }
    if (rows->count && owner_is_gone(collection->domain, rows->rows[0][STORE_BACKUP_OWNER].bytes)) {
        const struct id owner = domain_row_id(&rows->rows[0][STORE_BACKUP_OWNER]);

        backups_leave(collection->domain, &owner);
    }
    if (rows->count == 0) {
        collection->collected.objects++;
        collection->collected.bytes += collection->sizes[at];
        collection->next_key++;
    } else {
        free(collection->keys[at]);
        collection->keys[at] = collection->keys[--collection->key_count];
        collection->sizes[at] = collection->sizes[collection->key_count];
    }
    ask_rows(collection);
}

/* Of keys that may be garbage; those that have one are taken off the page. The row comes before the
 * objects and goes after them: without one they are nobody's, and stay so. */
static void ask_rows(struct collection *collection)
{
    struct store_condition is_it = {.column = STORE_BACKUP_ID, .comparison = STORE_EQUAL};
    const struct store_query query = {
        .kind = STORE_BACKUP, .conditions = &is_it, .condition_count = 1, .limit = 1};
    char id[UUID_SIZE];

    if (collection->next_key == collection->key_count) {
        collection->next_key = 0;
        delete_objects(collection);
        return;
    }
    backup_of_key(collection->keys[collection->next_key], id);
    is_it.value = store_text(id);
    domain_find(collection->domain, &query, on_backup_row, collection);
}

/* --- buckets --------------------------------------------------------------------------------- */

/* The first owner who is no more. */
static void see_bucket(void *context, const struct id *owner, const char *name, uint64_t bytes)
{
    struct collection *collection = context;

    (void) name;
    if (!owner_is_gone(collection->domain, owner->text))
        return;
    if (!*collection->leaving.text)
        collection->leaving = *owner;
    if (id_equal(&collection->leaving, owner)) {
        collection->collected.buckets++;
        collection->collected.bytes += bytes;
    }
}

static void on_buckets_gone(void *context, const struct error *failure)
{
    struct collection *collection = context;
    struct error err = ERROR_INIT;

    if (!failure && !domain_is_open(collection->domain, &err))
        failure = &err;
    if (failure)
        end(collection, failure);
    else
        remove_buckets(collection);
}

/* Of users who were deleted, one after the other. Only when somebody asked for it: what is in a
 * bucket is nobody's but theirs, and a store may hold those of another daemon's users. */
static void remove_buckets(struct collection *collection)
{
    const struct mounter *mounter = collection->domain->options.mounter;
    const struct id before = collection->leaving;

    collection->leaving = (struct id){.text = ""};
    if (collection->done && mounter && mounter->each_bucket &&
        domain_is_open(collection->domain, NULL))
        mounter->each_bucket(mounter->self, see_bucket, collection);
    if (!*collection->leaving.text || id_equal(&before, &collection->leaving))
        end(collection, NULL); /* an owner who is still there is left to the next run */
    else
        mounter->remove_buckets(mounter->self, &collection->leaving, on_buckets_gone, collection);
}

/* --- snapshots ------------------------------------------------------------------------------- */

/* What is under way has snapshots without a row. */
static bool is_busy(const struct collection *collection)
{
    return collection->domain->works > 1;
}

/* Whoever took one in passing failed to delete it, or was answered that it failed when it had not.
 */
static void on_snapshots(void *context, const struct error *failure, const struct id *ids,
                         size_t count)
{
    struct collection *collection = context;
    struct domain *domain = collection->domain;
    bool is_quiet =
        !failure && !collection->was_busy && !is_busy(collection) && domain->stage == DOMAIN_OPEN;

    for (size_t i = 0; is_quiet && i < count; i++)
        if (!snapshot_set_by_id(domain, ids[i].text) && !snapshot_is_orphan(domain, &ids[i])) {
            collection->collected.snapshots++;
            snapshot_orphan(domain, &ids[i]);
        }
    if (failure)
        end(collection, failure);
    else
        remove_buckets(collection);
}

static void look_at_snapshots(struct collection *collection)
{
    struct provider *provider = collection->domain->options.provider;

    collection->was_busy = is_busy(collection);
    if (provider && provider_capabilities(provider) & PROVIDER_SNAPSHOTS && !collection->was_busy)
        provider_list_snapshots(provider, on_snapshots, collection);
    else
        remove_buckets(collection);
}

/* --- pages ----------------------------------------------------------------------------------- */

static void look_at(struct collection *collection, const struct object_entry *entry)
{
    char id[UUID_SIZE] = "";
    bool is_kept = entry->modified_ms >= collection->before_ms;

    if (collection->is_at_backups)
        backup_of_key(entry->key, id);
    else
        is_kept |= is_named(collection, entry->key + strlen(LAYERS));
    if (is_kept || (collection->is_at_backups && !*id)) {
        collection->collected.kept += !collection->is_at_backups; /* also what is none of ours */
        return;
    }
    if (!collection->is_at_backups) {
        collection->collected.layers++;
        collection->collected.bytes += entry->size;
    }
    collection->sizes[collection->key_count] = entry->size;
    collection->keys[collection->key_count++] = mem_copy_text(entry->key);
}

static void on_listed(void *context, const struct error *failure, const struct object_list *list)
{
    struct collection *collection = context;
    struct error err = ERROR_INIT;

    if (!failure && !domain_is_open(collection->domain, &err))
        failure = &err;
    if (failure) {
        end(collection, failure);
        return;
    }
    free(collection->after);
    collection->after = list->next ? mem_copy_text(list->next) : NULL;
    for (size_t i = 0; i < list->count; i++)
        look_at(collection, &list->entries[i]);
    if (collection->is_at_backups)
        ask_rows(collection);
    else
        delete_layers(collection);
}

static void list_page(struct collection *collection)
{
    const struct object_query query = {.prefix = collection->is_at_backups ? BACKUPS : LAYERS,
                                       .after = collection->after,
                                       .limit = PAGE};

    (void) objects_list(collection->domain->options.objects, &query, on_listed, collection);
}

/* --- the beginning --------------------------------------------------------------------------- */

static int check(struct collection *collection, struct error *err)
{
    struct domain *domain = collection->domain;

    if (!domain_is_open(domain, err))
        return -1;
    if (!domain->options.objects)
        return error_set(err, ERR_UNAVAILABLE, 0, "there is no object store");
    if (domain->is_collecting)
        return error_set(err, ERR_UNAVAILABLE, 0, "garbage is being collected already");
    if (domain->saves)
        return error_set(err, ERR_UNAVAILABLE, 0, "a disk is being stored; try again later");
    /* One row that cannot be read and nothing is collected. */
    return layer_marks_read(domain, &collection->marks, err);
}

void collector_run(struct domain *domain, uint64_t grace_ms, collector_done *done, void *context)
{
    struct collection *collection = mem_alloc(sizeof(*collection));

    collection->domain = domain;
    collection->before_ms = domain_wall_ms(domain) - (int64_t) grace_ms;
    collection->done = done;
    collection->context = context;
    domain->works++;
    if (check(collection, &collection->failure) < 0) {
        domain_defer(domain, &collection->task, refuse);
        return;
    }
    collection->is_counted = domain->is_collecting = true;
    list_page(collection);
}

static void tick(struct domain *domain)
{
    uint64_t every_ns = domain->options.gc_every_ms * NS_PER_MS, now = domain_now_ns(domain);

    if (every_ns == 0 || !domain->options.objects)
        return;
    if (domain->collect_ns && now >= domain->collect_ns && !domain->saves)
        collector_run(domain, COLLECTOR_GRACE_MS, NULL, NULL);
    if (domain->collect_ns == 0 || (now >= domain->collect_ns && !domain->saves))
        domain->collect_ns = now + every_ns;
}

const struct domain_module domain_collector = {.name = "collector", .tick = tick};
