/* Finding, listing, deleting and collecting backups; backup_make.c and backup_restore.c have the
 * rest. */
#include "domain/backup/backup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/crash_point.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"
#include "domain/backup/backup_internal.h"
#include "domain/domain_internal.h"
#include "domain/domain_modules.h"
#include "domain/domain_share.h"
#include "domain/event/audit.h"
#include "domain/event/event.h"
#include "domain/vault.h"
#include "json/json_write.h"

#define EVENT_DATA_MAX   STORE_EVENT_DATA_MAX
#define COLLECT_EVERY_NS ((uint64_t) 30 * 1000000000)
#define COLLECT_SLICE    100

const char *const backup_folders[] = {"/workspace", "/home", "/tmp", "/var/tmp", "/app", NULL};

void backup_key(char ret_key[static BACKUP_KEY_SIZE], const char *id, const char *name)
{
    (void) snprintf(ret_key, BACKUP_KEY_SIZE, "backups/%s/%s", id, name);
}

/* --- rules ----------------------------------------------------------------------------------- */

static bool has_dots(const char *path)
{
    for (const char *at = path; (at = strstr(at, "/..")); at += 3)
        if (at[3] == '\0' || at[3] == '/')
            return true;
    return false;
}

int backup_check_dir(const char *dir, struct error *err)
{
    if (dir[0] != '/' || strlen(dir) > BACKUP_DIR_MAX)
        return error_set(err, ERR_BACKUP_INVALID, 0,
                         "dir must be an absolute path of at most %d bytes", BACKUP_DIR_MAX);
    if (has_dots(dir))
        return error_set(err, ERR_BACKUP_INVALID, 0, "dir must not contain '..'");
    for (size_t i = 0; backup_folders[i]; i++)
        if (path_is_inside(dir, backup_folders[i]))
            return 0;
    return error_set(err, ERR_BACKUP_INVALID, 0,
                     "dir must be in /workspace, /home, /tmp, /var/tmp or /app");
}

/* --- rows ------------------------------------------------------------------------------------ */

struct backup backup_of_row(const struct store_value *row)
{
    struct backup backup = {
        .owner = domain_row_id(&row[STORE_BACKUP_OWNER]),
        .sandbox = domain_row_id(&row[STORE_BACKUP_SANDBOX]),
        .dir = row[STORE_BACKUP_DIR].bytes,
        .name = row[STORE_BACKUP_NAME].is_null ? NULL : row[STORE_BACKUP_NAME].bytes,
        .size = (uint64_t) row[STORE_BACKUP_SIZE].integer,
        .ttl = row[STORE_BACKUP_TTL].integer,
        .created_ms = row[STORE_BACKUP_CREATED].integer,
        .expires_ms = row[STORE_BACKUP_EXPIRES].integer,
    };

    (void) snprintf(backup.id, sizeof(backup.id), "%s", row[STORE_BACKUP_ID].bytes);
    return backup;
}

void backup_add_event(struct domain *domain, struct store_transaction *change,
                      const struct caller *caller, const struct backup *backup, const char *type)
{
    AUTO(text) struct text data = TEXT_INIT(EVENT_DATA_MAX);
    struct json_writer json;

    json_writer_init_text(&json, &data);
    json_begin_object(&json);
    json_add_text(&json, "sandboxId", backup->sandbox.text);
    json_add_text(&json, "backupId", backup->id);
    json_add_text(&json, "dir", backup->dir);
    json_add_integer(&json, "sizeBytes", (int64_t) backup->size);
    json_end_object(&json);
    if (json_writer_finish(&json) == 0)
        event_add(domain, change, caller, &backup->owner, backup->sandbox.text, type,
                  text_string(&data));
}

/* --- finding --------------------------------------------------------------------------------- */

struct asking {
    struct domain *domain;
    struct caller caller;
    backup_done *done;
    backup_list_done *list_done;
    size_t limit; /* of a list */
    void *context;
};

static struct asking *asking_new(struct domain *domain, const struct caller *caller, void *context)
{
    struct asking *asking = mem_alloc(sizeof(*asking));

    *asking = (struct asking){.domain = domain, .caller = *caller, .context = context};
    return asking;
}

static bool is_ready(const struct store_value *row)
{
    return strcmp(row[STORE_BACKUP_STATE].bytes, "ready") == 0;
}

static bool is_seen(const struct caller *caller, const struct store_value *row)
{
    struct backup backup = backup_of_row(row);

    return is_ready(row) && caller_sees_sandbox(caller, &backup.owner, &backup.sandbox);
}

int backup_check_seen(struct domain *domain, const struct caller *caller,
                      const struct store_value *row, struct error *err)
{
    if (row && is_seen(caller, row))
        return 0;
    (void) error_set(err, ERR_BACKUP_NOT_FOUND, 0, "there is no such backup");
    if (row && is_ready(row))
        audit_add(domain, caller, "backup.find", backup_of_row(row).id, err);
    return -1;
}

static void found_one(void *context, const struct error *failure, const struct store_rows *rows)
{
    AUTO(free) struct asking *asking = context;
    struct error err = ERROR_INIT;
    struct backup backup;

    if (!failure && backup_check_seen(asking->domain, &asking->caller,
                                      rows->count ? rows->rows[0] : NULL, &err) < 0)
        failure = &err;
    if (!failure)
        backup = backup_of_row(rows->rows[0]);
    asking->done(asking->context, failure, failure ? NULL : &backup);
}

/* A UUID is asked for as it is; anything else finds nothing, in the same way. */
void backup_find(struct domain *domain, const struct caller *caller, const char *id,
                 backup_done *done, void *context)
{
    struct asking *asking = asking_new(domain, caller, context);
    const struct store_condition condition = {
        .column = STORE_BACKUP_ID,
        .comparison = STORE_EQUAL,
        .value = store_text(uuid_is_valid(id) ? id : ""),
    };
    const struct store_query query = {
        .kind = STORE_BACKUP, .conditions = &condition, .condition_count = 1, .limit = 1};

    asking->done = done;
    domain_find(domain, &query, found_one, asking);
}

static void found_page(void *context, const struct error *failure, const struct store_rows *rows)
{
    AUTO(free) struct asking *asking = context;
    AUTO(free) struct backup *backups = NULL;
    const char *next = NULL;
    size_t count = 0;

    if (!failure && rows->count)
        backups = mem_alloc_array(rows->count, sizeof(*backups));
    for (size_t i = 0; !failure && i < rows->count; i++)
        if (is_seen(&asking->caller, rows->rows[i]))
            backups[count++] = backup_of_row(rows->rows[i]);
    if (!failure && rows->count && rows->count == asking->limit)
        next = rows->rows[rows->count - 1][STORE_BACKUP_ID].bytes;
    asking->list_done(asking->context, failure, backups, count, next);
}

void backup_list(struct domain *domain, const struct caller *caller, const struct id *sandbox,
                 const char *after, size_t limit, backup_list_done *done, void *context)
{
    struct asking *asking = asking_new(domain, caller, context);
    struct store_condition conditions[3] = {
        {.column = STORE_BACKUP_STATE, .comparison = STORE_EQUAL, .value = store_text("ready")}};
    struct store_query query = {.kind = STORE_BACKUP,
                                .conditions = conditions,
                                .condition_count = 1,
                                .order = STORE_BACKUP_ID,
                                .limit = limit < BACKUP_PAGE_MAX ? limit : BACKUP_PAGE_MAX};
    struct store_condition *next = &conditions[1];

    if (sandbox)
        *next++ = (struct store_condition){.column = STORE_BACKUP_SANDBOX,
                                           .comparison = STORE_EQUAL,
                                           .value = store_text(sandbox->text)};
    else if (caller->scope < CALLER_ADMIN)
        *next++ = (struct store_condition){.column = STORE_BACKUP_OWNER,
                                           .comparison = STORE_EQUAL,
                                           .value = store_text(caller->owner.text)};
    if (after)
        *next++ = (struct store_condition){
            .column = STORE_BACKUP_ID, .comparison = STORE_GREATER, .value = store_text(after)};
    query.condition_count = (size_t) (next - conditions);
    asking->list_done = done;
    asking->limit = query.limit;
    domain_find(domain, &query, found_page, asking);
}

/* --- away with them -------------------------------------------------------------------------- */

struct purge {
    struct list link; /* of backups.purging */
    struct domain *domain;
    struct caller caller;
    struct backup backup; /* dir is owned, name is not kept */
    const char *event;
    bool is_gone; /* for everybody: what is left is ours to do */
    backup_purged *done;
    void *context;
};

/* Two may have been asked to delete the same one: it is given back once, by the last. */
static void purge_give_back(const struct purge *purge)
{
    struct domain *domain = purge->domain;

    LIST_EACH (&domain->backups->purging, at) {
        const struct purge *other = CONTAINER_OF(at, struct purge, link);

        if (other != purge && strcmp(other->backup.id, purge->backup.id) == 0)
            return;
    }
    domain_drop(domain, &purge->backup.owner, SHARE_BACKUPS, 1);
    domain_drop(domain, &purge->backup.owner, SHARE_STORAGE, purge->backup.size);
}

static void purge_end(struct purge *purge, const struct error *failure)
{
    struct domain *domain = purge->domain;

    if (failure)
        LOG_WARNING(domain->options.log, "a backup could not be removed and is tried again later",
                    log_text("backup", purge->backup.id), log_text("error", failure->message));
    else
        purge_give_back(purge);
    list_remove(&purge->link);
    if (purge->done)
        purge->done(purge->context, purge->is_gone ? NULL : failure);
    free((char *) purge->backup.dir);
    free(purge);
    domain->works--;
    domain_check_gone(domain);
}

static void row_gone(void *context, const struct error *failure,
                     const struct store_receipt *receipt)
{
    (void) receipt;
    purge_end(context, failure);
}

static void objects_gone(void *context, const struct error *failure)
{
    struct purge *purge = context;
    struct store_condition condition = {.column = STORE_BACKUP_ID, .comparison = STORE_EQUAL};
    struct store_transaction *change;

    if (failure) {
        purge_end(purge, failure);
        return;
    }
    CRASH_POINT("backup.delete.objects");
    condition.value = store_text(purge->backup.id);
    change = store_begin(purge->domain->options.store);
    store_delete(change, STORE_BACKUP, &condition, 1);
    domain_commit(purge->domain, change, row_gone, purge);
}

static void remove_objects(struct purge *purge)
{
    const struct vault *vault = purge->domain->options.vault;
    char prefix[BACKUP_KEY_SIZE];

    backup_key(prefix, purge->backup.id, "");
    vault->remove_prefix(vault->self, prefix, objects_gone, purge);
}

static void marked(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    struct purge *purge = context;
    struct error err = ERROR_INIT;

    if (failure && failure->code != ERR_NOT_FOUND) { /* somebody else was faster */
        purge_end(purge, failure);
        return;
    }
    purge->is_gone = true;
    if (!failure)
        event_kept(purge->domain, receipt);
    CRASH_POINT("backup.delete.kept");
    if (domain_is_open(purge->domain, &err))
        remove_objects(purge);
    else
        purge_end(purge, &err);
}

/* As one that was never finished, by a daemon of long ago: nobody sees it from now on, and what is
 * not removed now is collected, also after a restart. */
static void mark(struct purge *purge)
{
    struct store_transaction *change = store_begin(purge->domain->options.store);
    const struct backup *backup = &purge->backup;
    static const uint8_t no_sum[VAULT_SUM_SIZE];
    struct store_value values[STORE_BACKUP_COLUMN_COUNT];

    values[STORE_BACKUP_ID] = store_text(backup->id);
    values[STORE_BACKUP_OWNER] = store_text(backup->owner.text);
    values[STORE_BACKUP_SANDBOX] = store_text(backup->sandbox.text);
    values[STORE_BACKUP_DIR] = store_text(backup->dir);
    values[STORE_BACKUP_NAME] = store_null();
    values[STORE_BACKUP_SIZE] = store_integer((int64_t) backup->size);
    values[STORE_BACKUP_SHA256] = store_bytes(no_sum, sizeof(no_sum));
    values[STORE_BACKUP_TTL] = store_integer(backup->ttl);
    values[STORE_BACKUP_STATE] = store_text("making");
    values[STORE_BACKUP_DETAIL] = store_text("deleted");
    values[STORE_BACKUP_CREATED] = store_integer(0);
    values[STORE_BACKUP_EXPIRES] = store_integer(backup->expires_ms);
    store_update(change, STORE_BACKUP, values);
    backup_add_event(purge->domain, change, &purge->caller, backup, purge->event);
    domain_commit(purge->domain, change, marked, purge);
}

void backup_purge(struct domain *domain, const struct caller *caller, const struct backup *backup,
                  const char *event, backup_purged *done, void *context)
{
    struct purge *purge = mem_alloc(sizeof(*purge));

    *purge = (struct purge){.domain = domain,
                            .caller = *caller,
                            .backup = *backup,
                            .event = event,
                            .done = done,
                            .context = context};
    purge->backup.dir = mem_copy_text(backup->dir);
    domain->works++;
    list_append(&domain->backups->purging, &purge->link);
    if (event)
        mark(purge);
    else
        remove_objects(purge);
}

static void deleted(void *context, const struct error *failure)
{
    AUTO(free) struct asking *asking = context;

    asking->done(asking->context, failure, NULL);
}

static void found_to_delete(void *context, const struct error *failure, const struct backup *backup)
{
    struct asking *asking = context;
    struct domain *domain = asking->domain;
    struct error err = ERROR_INIT;

    if (!failure && !domain_is_open(domain, &err))
        failure = &err;
    if (!failure && !domain->options.vault) {
        (void) error_set(&err, ERR_NOT_IMPLEMENTED, 0, "there is no object store here");
        failure = &err;
    }
    if (failure) {
        deleted(asking, failure);
        return;
    }
    backup_purge(domain, &asking->caller, backup, "backup.deleted", deleted, asking);
}

void backup_delete(struct domain *domain, const struct caller *caller, const char *id,
                   backup_done *done, void *context)
{
    struct asking *asking = asking_new(domain, caller, context);

    asking->done = done;
    backup_find(domain, caller, id, found_to_delete, asking);
}

/* --- collecting ------------------------------------------------------------------------------ */

static void found_old(void *context, const struct error *failure, const struct store_rows *rows)
{
    struct domain *domain = context;

    domain->backups->looking--;
    if (failure || domain->stage != DOMAIN_OPEN)
        return;
    for (size_t i = 0; i < rows->count; i++) {
        bool was_ready = strcmp(rows->rows[i][STORE_BACKUP_STATE].bytes, "ready") == 0;
        struct backup backup = backup_of_row(rows->rows[i]);
        struct caller caller = caller_system();
        bool was_deleted = backup.created_ms == 0;

        LOG_INFO(domain->options.log, "a backup is collected", log_text("backup", backup.id),
                 log_text("why", was_ready     ? "it expired"
                                 : was_deleted ? "it was deleted"
                                               : "it was never finished"));
        backup_purge(domain, &caller, &backup, was_ready ? "backup.expired" : NULL, NULL, NULL);
    }
}

static void collect(struct domain *domain, const struct store_condition *conditions, size_t count)
{
    const struct store_query query = {.kind = STORE_BACKUP,
                                      .conditions = conditions,
                                      .condition_count = count,
                                      .order = STORE_BACKUP_EXPIRES,
                                      .limit = COLLECT_SLICE};

    domain->backups->looking++;
    domain_find(domain, &query, found_old, domain);
}

/* --- of nobody ------------------------------------------------------------------------------- */

/* Their rows stay until their objects are gone. */
struct leaving_owner {
    struct list link;
    struct id id;
};

void backups_leave(struct domain *domain, const struct id *owner)
{
    struct leaving_owner *leaving;

    LIST_EACH (&domain->backups->leaving, at)
        if (id_equal(&CONTAINER_OF(at, struct leaving_owner, link)->id, owner))
            return;
    leaving = mem_alloc(sizeof(*leaving));
    leaving->id = *owner;
    list_append(&domain->backups->leaving, &leaving->link);
    domain->backups->due_ns = 0;
}

static void found_leaving(void *context, const struct error *failure, const struct store_rows *rows)
{
    struct domain *domain = context;
    struct list *first = list_first(&domain->backups->leaving);

    domain->backups->looking--;
    if (failure || domain->stage != DOMAIN_OPEN || !first)
        return;
    if (rows->count == 0) {
        list_remove(first);
        free(CONTAINER_OF(first, struct leaving_owner, link));
    }
    for (size_t i = 0; i < rows->count; i++) {
        struct backup backup = backup_of_row(rows->rows[i]);
        struct caller caller = caller_system();

        backup_purge(domain, &caller, &backup, NULL, NULL, NULL);
    }
    domain->backups->due_ns = 0; /* the others, or the next owner */
}

/* One owner after the other. */
static void collect_leaving(struct domain *domain)
{
    struct list *first = list_first(&domain->backups->leaving);
    struct store_condition condition = {.column = STORE_BACKUP_OWNER, .comparison = STORE_EQUAL};
    const struct store_query query = {.kind = STORE_BACKUP,
                                      .conditions = &condition,
                                      .condition_count = 1,
                                      .order = STORE_BACKUP_CREATED,
                                      .limit = COLLECT_SLICE};

    if (!first)
        return;
    condition.value = store_text(CONTAINER_OF(first, struct leaving_owner, link)->id.text);
    domain->backups->looking++;
    domain_find(domain, &query, found_leaving, domain);
}

static void tick(struct domain *domain)
{
    struct backups *backups = domain->backups;
    uint64_t now = domain_now_ns(domain);
    int64_t wall = domain_wall_ms(domain);
    /* One that is being made may expire before it is there: whoever makes it needs its row. */
    const struct store_condition expired[] = {
        {.column = STORE_BACKUP_STATE, .comparison = STORE_EQUAL, .value = store_text("ready")},
        {.column = STORE_BACKUP_EXPIRES, .comparison = STORE_LESS, .value = store_integer(wall)}};
    const struct store_condition unfinished[] = {
        {.column = STORE_BACKUP_STATE, .comparison = STORE_EQUAL, .value = store_text("making")},
        {.column = STORE_BACKUP_CREATED,
         .comparison = STORE_LESS,
         .value = store_integer(backups->opened_ms)}};

    if (backups->looking || !list_is_empty(&backups->purging) || now < backups->due_ns ||
        !domain->options.vault)
        return;
    backups->due_ns = now + COLLECT_EVERY_NS;
    collect(domain, unfinished, ARRAY_COUNT(unfinished));
    collect(domain, expired, ARRAY_COUNT(expired));
    collect_leaving(domain);
}

static void begin(struct domain *domain)
{
    domain->backups = mem_alloc(sizeof(*domain->backups));
    domain->backups->opened_ms = domain_wall_ms(domain);
    list_init(&domain->backups->restoring);
    list_init(&domain->backups->purging);
    list_init(&domain->backups->leaving);
}

static void backups_owner_deleted(struct domain *domain, const struct id *owner)
{
    backups_leave(domain, owner);
}

/* Nothing of them is kept in memory but how much they are; those that are still to be collected
 * take room as well. */
static int backup_load_one(struct domain *domain, const struct store_value *row, struct error *err)
{
    const struct backup backup = backup_of_row(row);

    (void) err;
    domain_hold_anyway(domain, &backup.owner, SHARE_BACKUPS, 1);
    domain_hold_anyway(domain, &backup.owner, SHARE_STORAGE, backup.size);
    return 0;
}

static void backups_load(struct domain *domain, domain_done *done, void *context)
{
    domain_load(domain, STORE_BACKUP, STORE_BACKUP_ID, backup_load_one, done, context);
}

static void end(struct domain *domain)
{
    if (domain->backups)
        LIST_EACH (&domain->backups->leaving, at)
            free(CONTAINER_OF(at, struct leaving_owner, link));
    free(domain->backups);
}

const struct domain_module domain_backups = {
    .begin = begin,
    .load = backups_load,
    .tick = tick,
    .owner_deleted = backups_owner_deleted,
    .end = end,
};
