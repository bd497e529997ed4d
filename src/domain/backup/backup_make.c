/* Making a backup: backup_steps below. After a failure everything that was begun is taken back
 * behind the answer; what a crash leaves is found by the row that says "making". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/encoding/utf8.h"
#include "base/memory.h"
#include "base/text.h"
#include "domain/backup/backup_internal.h"
#include "domain/domain_internal.h"
#include "domain/domain_share.h"
#include "domain/event/event.h"
#include "domain/sandbox/sandbox_quota.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandbox_use.h"
#include "domain/snapshot/snapshot_internal.h"
#include "domain/vault.h"
#include "json/json_write.h"

#define META_MAX          ((size_t) 64 * 1024)
#define PROGRESS_EVERY_NS ((uint64_t) 2 * 1000000000)
#define PROGRESS_DATA_MAX 512

struct backup_making {
    struct domain_task task; /* for an answer that is known at once */
    struct sequence sequence;
    struct domain *domain;
    struct caller caller;
    struct sandbox *sandbox; /* a reference */
    struct sandbox_use use;  /* when it has to settle first */
    struct backup backup;    /* dir and name are owned */
    char *compression;       /* owned, may be NULL */
    bool gitignore, no_freeze;
    char **excludes; /* owned */
    size_t exclude_count;
    struct id snapshot;
    bool has_row, has_snapshot;
    bool is_held;           /* one backup more, in its owner's name */
    struct share_claim job; /* claimed before anything is done: a refusal costs nothing */
    uint64_t bytes_max;
    uint8_t sum[VAULT_SUM_SIZE];
    uint64_t told_ns; /* progress, the last time */
    backup_done *done;
    void *context;
    struct error failure;
};

/* --- the end --------------------------------------------------------------------------------- */

static void backup_making_free(struct backup_making *making)
{
    struct domain *domain = making->domain;

    share_release(&making->job);
    for (size_t i = 0; i < making->exclude_count; i++)
        free(making->excludes[i]);
    free(making->excludes);
    free(making->compression);
    free((char *) making->backup.dir);
    free((char *) making->backup.name);
    sandbox_unref(making->sandbox);
    free(making);
    domain->works--;
    domain_check_gone(domain);
}

static void on_snapshot_dropped(void *context, const struct error *failure)
{
    struct backup_making *making = context;

    /* One that stays has no row: recovery takes it away. */
    if (failure)
        LOG_WARNING(making->domain->options.log, "the snapshot of a backup is still there",
                    log_text("snapshot", making->snapshot.text),
                    log_text("error", failure->message));
    backup_making_free(making);
}

/* What was claimed for it; a row that stays is given back with the row. */
static void give_back(struct backup_making *making)
{
    const struct id *owner = &making->backup.owner;

    domain_drop(making->domain, owner, SHARE_STORAGE, making->backup.size);
    making->backup.size = 0;
    if (making->is_held && !making->has_row)
        domain_drop(making->domain, owner, SHARE_BACKUPS, 1);
}

/* What was begun goes behind the answer. */
static void backup_end(void *context, const struct error *failure)
{
    struct backup_making *making = context;
    bool is_open = making->domain->stage == DOMAIN_OPEN;

    sandbox_use_end(&making->use);
    making->done(making->context, failure, failure ? NULL : &making->backup);
    if (failure)
        give_back(making);
    if (failure && making->has_row && is_open)
        backup_purge(making->domain, &making->caller, &making->backup, NULL, NULL, NULL);
    if (making->has_snapshot && is_open)
        provider_delete_snapshot(making->domain->options.provider, &making->snapshot,
                                 on_snapshot_dropped, making);
    else
        backup_making_free(making);
}

static void refuse_backup(struct domain_task *task)
{
    struct backup_making *making = CONTAINER_OF(task, struct backup_making, task);

    backup_end(making, &making->failure);
}

/* --- the row --------------------------------------------------------------------------------- */

static void fill_row(const struct backup_making *making, const char *state,
                     struct store_value values[static STORE_BACKUP_COLUMN_COUNT])
{
    const struct backup *backup = &making->backup;

    values[STORE_BACKUP_ID] = store_text(backup->id);
    values[STORE_BACKUP_OWNER] = store_text(backup->owner.text);
    values[STORE_BACKUP_SANDBOX] = store_text(backup->sandbox.text);
    values[STORE_BACKUP_DIR] = store_text(backup->dir);
    values[STORE_BACKUP_NAME] = store_text(backup->name);
    values[STORE_BACKUP_SIZE] = store_integer((int64_t) backup->size);
    values[STORE_BACKUP_SHA256] = store_bytes(making->sum, sizeof(making->sum));
    values[STORE_BACKUP_TTL] = store_integer(backup->ttl);
    values[STORE_BACKUP_STATE] = store_text(state);
    values[STORE_BACKUP_DETAIL] = store_text("");
    values[STORE_BACKUP_CREATED] = store_integer(backup->created_ms);
    values[STORE_BACKUP_EXPIRES] = store_integer(backup->expires_ms);
}

static void on_begun(void *context, const struct error *failure,
                     const struct store_receipt *receipt)
{
    struct backup_making *making = context;

    making->has_row = !failure;
    sequence_kept(&making->sequence, failure, receipt);
}

static void keep_begun(void *context)
{
    struct backup_making *making = context;
    struct store_value values[STORE_BACKUP_COLUMN_COUNT];
    struct store_transaction *change = store_begin(making->domain->options.store);

    fill_row(making, "making", values);
    store_insert(change, STORE_BACKUP, values);
    domain_commit(making->domain, change, on_begun, making);
}

static void keep_ready(void *context)
{
    struct backup_making *making = context;
    struct store_value values[STORE_BACKUP_COLUMN_COUNT];
    struct store_transaction *change = store_begin(making->domain->options.store);

    fill_row(making, "ready", values);
    store_update(change, STORE_BACKUP, values);
    backup_add_event(making->domain, change, &making->caller, &making->backup, "backup.created");
    domain_commit(making->domain, change, sequence_kept, &making->sequence);
}

/* --- its copy -------------------------------------------------------------------------------- */

/* One that has its disk here need not wake for it; all others do. */
static bool must_settle(const void *context)
{
    const struct backup_making *making = context;
    const struct sandbox *sandbox = making->sandbox;

    return sandbox->stored ||
           (sandbox->status != SANDBOX_RUNNING && sandbox->status != SANDBOX_FROZEN &&
            sandbox->status != SANDBOX_HIBERNATED && sandbox->status != SANDBOX_STOPPED);
}

static void on_settled(struct sandbox_use *use, const struct error *failure)
{
    sequence_next(&CONTAINER_OF(use, struct backup_making, use)->sequence, failure);
}

static void settle(void *context)
{
    struct backup_making *making = context;

    sandbox_use_begin(making->domain, making->sandbox, &making->use, 0, on_settled);
}

static void on_snapshot(void *context, const struct error *failure,
                        const struct snapshot_made *snapshot)
{
    struct backup_making *making = context;

    sandbox_use_end(&making->use);
    making->has_snapshot = !failure;
    if (!failure) {
        making->backup.pause_us = snapshot->pause_us;
        snapshot_count(making->domain, snapshot);
    }
    sequence_next(&making->sequence, failure);
}

static void take_snapshot(void *context)
{
    struct backup_making *making = context;

    provider_snapshot(making->domain->options.provider, &making->sandbox->id, &making->snapshot,
                      snapshot_freezes(making->domain, making->no_freeze), on_snapshot, making);
}

/* --- into the store -------------------------------------------------------------------------- */

static void on_progress_told(void *context, const struct error *failure,
                             const struct store_receipt *receipt)
{
    if (!failure)
        event_kept(context, receipt);
}

static void on_progress(void *context, const struct vault_progress *progress)
{
    struct backup_making *making = context;
    struct domain *domain = making->domain;
    uint64_t now = domain_now_ns(domain);
    char data[PROGRESS_DATA_MAX];
    struct store_transaction *change;

    if (now < making->told_ns + PROGRESS_EVERY_NS || domain->stage != DOMAIN_OPEN)
        return;
    making->told_ns = now;
    (void) snprintf(data, sizeof(data),
                    "{\"sandboxId\":\"%s\",\"backupId\":\"%s\",\"files\":%llu,\"bytes\":%llu,"
                    "\"storedBytes\":%llu}",
                    making->sandbox->id.text, making->backup.id,
                    (unsigned long long) progress->files, (unsigned long long) progress->bytes,
                    (unsigned long long) progress->stored_bytes);
    change = store_begin(domain->options.store);
    event_add(domain, change, &making->caller, &making->backup.owner, making->sandbox->id.text,
              "backup.progress", data);
    domain_commit(domain, change, on_progress_told, domain);
}

static void on_archived(void *context, const struct error *failure,
                        const struct vault_archived *archived)
{
    struct backup_making *making = context;
    struct error err = ERROR_INIT;

    /* Others may have stored something meanwhile: now it is known how much it is. */
    if (!failure &&
        domain_hold(making->domain, &making->backup.owner, SHARE_STORAGE, archived->size, &err) < 0)
        failure = &err;
    if (!failure) {
        making->backup.size = archived->size;
        memcpy(making->sum, archived->sum, sizeof(making->sum));
    }
    sequence_next(&making->sequence, failure);
}

static void archive_folder(void *context)
{
    struct backup_making *making = context;
    const struct vault *vault = making->domain->options.vault;
    char key[BACKUP_KEY_SIZE];
    struct vault_archive what = {
        .asker = {.who = domain_asker_of(making->domain, &making->backup.owner),
                  .haste = VAULT_ASKED,
                  .is_claimed = true},
        .disk = {DISK_OF_SNAPSHOT, making->snapshot},
        .image = making->sandbox->spec.image,
        .folder = making->backup.dir,
        .gitignore = making->gitignore,
        .excludes = (const char *const *) making->excludes,
        .exclude_count = making->exclude_count,
        .compression = making->compression,
        .key = key,
        .bytes_max = making->bytes_max,
    };

    backup_key(key, making->backup.id, "data.sqsh");
    making->told_ns = domain_now_ns(making->domain);
    vault->archive(vault->self, &what, on_progress, on_archived, making);
}

/* As of the vault: a store that refuses our key is no lack of rights of who asked, and where it is
 * only the log is told. */
static void on_meta(void *context, const struct error *failure, const struct object_info *info)
{
    struct backup_making *making = context;
    struct error err = failure ? *failure : (struct error) ERROR_INIT;

    (void) info;
    if (failure && objects_make_plain(making->domain->options.objects, &err))
        LOG_WARNING(making->domain->options.log, "the object store failed",
                    log_text("error", failure->message));
    if (err.code == ERR_FORBIDDEN)
        err.code = ERR_UNAVAILABLE;
    sequence_next(&making->sequence, failure ? &err : NULL);
}

static void put_meta(void *context)
{
    struct backup_making *making = context;
    AUTO(text) struct text body = TEXT_INIT(META_MAX);
    const struct backup *backup = &making->backup;
    const struct object_put_options options = {.media_type = "application/json"};
    char key[BACKUP_KEY_SIZE], time[CLOCK_TEXT_SIZE];
    struct json_writer json;

    clock_format(backup->created_ms, time);
    json_writer_init_text(&json, &body);
    json_begin_object(&json);
    json_add_text(&json, "id", backup->id);
    json_add_text(&json, "dir", backup->dir);
    json_key(&json, "name");
    json_put_text(&json, backup->name); /* null: none */
    json_add_integer(&json, "sizeBytes", (int64_t) backup->size);
    json_add_integer(&json, "ttl", backup->ttl);
    json_add_text(&json, "createdAt", time);
    json_end_object(&json);
    (void) json_writer_finish(&json); /* name and folder are bounded, escaped too */
    backup_key(key, backup->id, "meta.json");
    (void) objects_put_bytes(making->domain->options.objects, key, text_string(&body), body.length,
                             &options, on_meta, making);
}

static const struct sequence_step backup_steps[] = {
    {"keep that it is being made", keep_begun, .point = "backup.make.begun"},
    {"wait until the sandbox has its disk here", settle, .when = must_settle},
    {"copy the disk", take_snapshot, .point = "backup.make.snapshot"},
    {"archive the folder", .start = archive_folder},
    {"put its description", put_meta, .point = "backup.make.stored"},
    {"keep that it is ready", keep_ready, .point = "backup.make.kept"},
    {.text = NULL},
};

const struct sequence_table backup_make_sequence = {"backup.make", backup_steps, backup_end};

/* --- the beginning --------------------------------------------------------------------------- */

static bool has_control_character(const char *text)
{
    for (; *text; text++)
        if ((unsigned char) *text < 0x20 || *text == 0x7f)
            return true;
    return false;
}

static int check_spec(const struct backup_spec *spec, struct error *err)
{
    static const char *const compressions[] = {"lz4", "zstd", "gzip", "xz"};
    bool is_known = !spec->compression;

    if (spec->dir && backup_check_dir(spec->dir, err) < 0)
        return -1;
    if (spec->name && (strlen(spec->name) > BACKUP_NAME_MAX || has_control_character(spec->name)))
        return error_set(err, ERR_BACKUP_INVALID, 0,
                         "name must be at most %d bytes without control characters",
                         BACKUP_NAME_MAX);
    if (spec->ttl < 0 || spec->ttl > BACKUP_TTL_MAX)
        return error_set(err, ERR_BACKUP_INVALID, 0, "ttl must be 1 to %lld seconds",
                         (long long) BACKUP_TTL_MAX);
    for (size_t i = 0; spec->compression && i < ARRAY_COUNT(compressions); i++)
        is_known |= strcmp(spec->compression, compressions[i]) == 0;
    if (!is_known)
        return error_set(err, ERR_BACKUP_INVALID, 0, "compression must be lz4, zstd, gzip or xz");
    if (spec->exclude_count > BACKUP_EXCLUDES_MAX)
        return error_set(err, ERR_BACKUP_INVALID, 0, "excludes must be at most %d",
                         BACKUP_EXCLUDES_MAX);
    for (size_t i = 0; i < spec->exclude_count; i++)
        if (!spec->excludes[i][0] || strlen(spec->excludes[i]) > BACKUP_EXCLUDE_MAX ||
            has_control_character(spec->excludes[i]))
            return error_set(err, ERR_BACKUP_INVALID, 0,
                             "excludes must be 1 to %d bytes each, without control characters",
                             BACKUP_EXCLUDE_MAX);
    return 0;
}

static int check(struct domain *domain, const struct caller *caller, const struct backup_spec *spec,
                 struct error *err)
{
    if (!domain_is_open(domain, err))
        return -1;
    if (!caller_may_enter(caller))
        return error_set(err, ERR_FORBIDDEN, 0, "this key may not make backups");
    if (!domain->options.vault || !domain->options.provider ||
        !(provider_capabilities(domain->options.provider) & PROVIDER_SNAPSHOTS))
        return error_set(err, ERR_NOT_IMPLEMENTED, 0, "backups cannot be made here");
    return check_spec(spec, err);
}

static struct backup_making *backup_making_new(struct domain *domain, const struct caller *caller,
                                               struct sandbox *sandbox,
                                               const struct backup_spec *spec)
{
    struct backup_making *making = mem_alloc(sizeof(*making));
    int64_t ttl = spec->ttl ? spec->ttl : BACKUP_TTL_DEFAULT;
    int64_t now = domain_wall_ms(domain);

    *making = (struct backup_making){
        .domain = domain,
        .caller = *caller,
        .sandbox = sandbox_ref(sandbox),
        .gitignore = spec->gitignore,
        .no_freeze = spec->no_freeze,
        .snapshot = id_new(),
        .backup =
            {
                .owner = sandbox->owner,
                .sandbox = sandbox->id,
                .dir = mem_copy_text(spec->dir ? spec->dir : backup_folders[0]),
                .name = spec->name ? mem_copy_text(spec->name) : NULL,
                .ttl = ttl,
                .created_ms = now,
                .expires_ms = now + ttl * 1000,
            },
    };
    (void) snprintf(making->backup.id, sizeof(making->backup.id), "%s", uuid_new().text);
    if (spec->compression)
        making->compression = mem_copy_text(spec->compression);
    if (spec->exclude_count)
        making->excludes = mem_alloc_array(spec->exclude_count, sizeof(*making->excludes));
    for (; making->exclude_count < spec->exclude_count; making->exclude_count++)
        making->excludes[making->exclude_count] =
            mem_copy_text(spec->excludes[making->exclude_count]);
    domain->works++;
    return making;
}

/* One more, of what is left of the storage. */
static int claim_backup(struct backup_making *making, struct error *err)
{
    struct domain *domain = making->domain;
    const struct id *owner = &making->backup.owner;
    uint64_t held = shares_held(domain->options.shares, owner, SHARE_STORAGE);

    if (sandbox_quota_storage(domain, owner, held, &making->bytes_max, err) < 0 ||
        domain_claim(domain, owner, SHARE_DISK_JOBS, 1, &making->job, err) < 0 ||
        domain_hold(domain, owner, SHARE_BACKUPS, 1, err) < 0)
        return -1;
    making->is_held = true;
    return 0;
}

void backup_make(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                 const struct backup_spec *spec, backup_done *done, void *context)
{
    struct error err = ERROR_INIT;
    bool is_good = check(domain, caller, spec, &err) == 0;
    static const struct backup_spec nothing;
    struct backup_making *making =
        backup_making_new(domain, caller, sandbox, is_good ? spec : &nothing);

    making->done = done;
    making->context = context;
    if (is_good)
        is_good = claim_backup(making, &err) == 0;
    if (!is_good) {
        making->failure = err;
        domain_defer(domain, &making->task, refuse_backup);
        return;
    }
    sequence_begin(&making->sequence, domain, &backup_make_sequence, &sandbox->id, making);
}
