#include "domain/collector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/crash_point.h"
#include "base/memory.h"
#include "domain/domain_internal.h"
#include "domain/domain_life.h"
#include "domain/domain_modules.h"
#include "domain/sandbox_set.h"
#include "domain/snapshot_set.h"
#include "domain/stored_disk.h"
#include "json/json_read.h"

#define PREFIX    "layers/"
#define PAGE      32 /* a row each: fits a transaction */
#define MARK_SIZE (ID_LENGTH + 1 + VAULT_LAYER_SIZE)
#define NS_PER_MS UINT64_C(1000000)

struct mark {
    char text[MARK_SIZE]; /* "<owner>/<id>" */
};

struct collection {
    struct domain_task task;
    struct domain *domain;
    int64_t before_ms;  /* younger ones stay */
    struct mark *marks; /* owned, sorted: what is named */
    size_t mark_count;
    char *after;      /* owned: cursor of the next page; NULL: this is the last */
    char *keys[PAGE]; /* owned: garbage of this page */
    size_t key_count;
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
    LOG_INFO(domain->options.log, failure ? "layers were not collected" : "layers were collected",
             log_text("error", failure ? failure->message : ""),
             log_number("layers", (int64_t) collection->collected.layers),
             log_number("bytes", (int64_t) collection->collected.bytes));
    if (collection->done)
        collection->done(collection->context, failure, failure ? NULL : &collection->collected);
    forget_keys(collection);
    free(collection->marks);
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

/* --- marks ----------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct mark *) a)->text, ((const struct mark *) b)->text);
}

static void add_marks(struct collection *collection, const struct id *owner,
                      const struct stored_disk *disk)
{
    size_t count = collection->mark_count;

    collection->marks =
        mem_resize(collection->marks, (count + disk->count) * sizeof(*collection->marks));
    for (size_t i = 0; i < disk->count; i++)
        (void) snprintf(collection->marks[count + i].text, MARK_SIZE, "%s/%s", owner->text,
                        disk->layers[i].id);
    collection->mark_count += disk->count;
}

/* A JSON array of ids. */
static int mark_snapshot(struct collection *collection, const struct snapshot *snapshot,
                         struct error *err)
{
    const struct json_limits limits = {
        .size = STORED_DISK_MAX, .depth = 2, .values = JSON_VALUES_MAX};
    AUTO(json) json_t *ids = json_read(snapshot->layers, strlen(snapshot->layers), &limits, err);
    json_t *id;
    size_t i;

    if (!ids || !json_is_array(ids))
        return error_set(err, ERR_INTERNAL, 0, "the layers of snapshot %s cannot be read",
                         snapshot->id.text);
    json_array_foreach (ids, i, id) {
        struct vault_layer layer = {.id = ""};

        (void) snprintf(layer.id, sizeof(layer.id), "%s",
                        json_is_string(id) ? json_string_value(id) : "");
        add_marks(collection, &snapshot->owner,
                  &(struct stored_disk){.layers = &layer, .count = 1});
    }
    return 0;
}

static int mark_snapshots(struct collection *collection, struct error *err)
{
    LIST_EACH (&collection->domain->snapshots->all, at) {
        const struct snapshot *snapshot = CONTAINER_OF(at, struct snapshot, link);

        if (snapshot->layers && mark_snapshot(collection, snapshot, err) < 0)
            return -1;
    }
    return 0;
}

/* One row that cannot be read and nothing is collected: who knows what it names. */
static int mark_all(struct collection *collection, struct error *err)
{
    LIST_EACH (&collection->domain->sandboxes->all, at) {
        const struct sandbox *sandbox = CONTAINER_OF(at, struct sandbox, link);
        AUTO(stored_disk) struct stored_disk disk = {.layers = NULL};

        if (!sandbox->stored)
            continue;
        if (stored_disk_read(sandbox->stored, &disk, err) < 0)
            return -1;
        add_marks(collection, &sandbox->owner, &disk);
    }
    if (mark_snapshots(collection, err) < 0)
        return -1;
    if (collection->mark_count)
        qsort(collection->marks, collection->mark_count, sizeof(*collection->marks), compare);
    return 0;
}

static bool is_marked(const struct collection *collection, const char *name)
{
    struct mark wanted;

    (void) snprintf(wanted.text, sizeof(wanted.text), "%s", name);
    return collection->mark_count && bsearch(&wanted, collection->marks, collection->mark_count,
                                             sizeof(*collection->marks), compare);
}

/* --- a page ---------------------------------------------------------------------------------- */

static void list_page(struct collection *collection);

static void on_deleted(void *context, const struct error *failure)
{
    struct collection *collection = context;
    bool is_last = collection->after == NULL;

    forget_keys(collection);
    if (failure || is_last)
        end(collection, failure);
    else
        list_page(collection);
}

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
    (void) objects_delete(collection->domain->options.objects,
                          (const char *const *) collection->keys, collection->key_count, on_deleted,
                          collection);
}

/* "layers/<owner>/<id>" */
static void delete_row(struct store_transaction *change, const char *key)
{
    const char *owner = key + strlen(PREFIX), *slash = strchr(owner, '/');
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

static void delete_garbage(struct collection *collection)
{
    struct domain *domain = collection->domain;
    struct store_transaction *change;

    if (collection->key_count == 0) {
        on_deleted(collection, NULL);
        return;
    }
    change = store_begin(domain->options.store);
    for (size_t i = 0; i < collection->key_count; i++)
        delete_row(change, collection->keys[i]);
    domain_commit(domain, change, on_rows_gone, collection);
}

static void look_at(struct collection *collection, const struct object_entry *entry)
{
    const char *name = entry->key + strlen(PREFIX);

    if (strlen(name) >= MARK_SIZE || entry->modified_ms >= collection->before_ms ||
        is_marked(collection, name)) {
        collection->collected.kept++; /* also what is none of ours */
        return;
    }
    collection->collected.layers++;
    collection->collected.bytes += entry->size;
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
    delete_garbage(collection);
}

static void list_page(struct collection *collection)
{
    const struct object_query query = {.prefix = PREFIX, .after = collection->after, .limit = PAGE};

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
        return error_set(err, ERR_UNAVAILABLE, 0, "layers are being collected already");
    if (domain->saves)
        return error_set(err, ERR_UNAVAILABLE, 0, "a disk is being stored; try again later");
    return mark_all(collection, err);
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
