/* Restoring a backup. */
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/backup/backup_internal.h"
#include "domain/domain_internal.h"
#include "domain/domain_share.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandbox_use.h"
#include "domain/sequence.h"
#include "domain/vault.h"

struct backup_restoring {
    struct domain_task task;
    struct sequence sequence;
    struct list link; /* of backups.restoring */
    struct domain *domain;
    struct caller caller;
    struct sandbox *sandbox; /* a reference */
    struct sandbox_use use;
    struct backup backup; /* dir (the target) and name are owned */
    uint8_t sum[VAULT_SUM_SIZE];
    backup_done *done;
    void *context;
    struct error failure;
};

static void backup_restore_end(void *context, const struct error *failure)
{
    struct backup_restoring *restoring = context;
    struct domain *domain = restoring->domain;

    list_remove(&restoring->link);
    sandbox_use_end(&restoring->use);
    restoring->done(restoring->context, failure, failure ? NULL : &restoring->backup);
    free((char *) restoring->backup.dir);
    free((char *) restoring->backup.name);
    sandbox_unref(restoring->sandbox);
    free(restoring);
    domain->works--;
    domain_check_gone(domain);
}

static void refuse_restore(struct domain_task *task)
{
    struct backup_restoring *restoring = CONTAINER_OF(task, struct backup_restoring, task);

    backup_restore_end(restoring, &restoring->failure);
}

/* --- the steps ------------------------------------------------------------------------------- */

static int take_row(struct backup_restoring *restoring, const struct store_rows *rows,
                    struct error *err)
{
    const char *dir = restoring->backup.dir;
    const struct store_value *row = rows->count ? rows->rows[0] : NULL;
    struct backup backup;

    if (!domain_is_open(restoring->domain, err))
        return -1;
    if (backup_check_seen(restoring->domain, &restoring->caller, row, err) < 0 || !row)
        return -1; /* and no row is never seen */
    backup = backup_of_row(row);
    if (domain_wall_ms(restoring->domain) + BACKUP_EXPIRY_SPARE_MS > backup.expires_ms)
        return error_set(err, ERR_BACKUP_EXPIRED, 0, "backup '%s' has expired", backup.id);
    /* Administrators see everybody's; contents never change owners all the same. */
    if (!id_equal(&backup.owner, &restoring->sandbox->owner))
        return error_set(err, ERR_BACKUP_NOT_FOUND, 0,
                         "backup '%s' is of another owner than the sandbox", backup.id);
    if (row[STORE_BACKUP_SHA256].length != sizeof(restoring->sum))
        return error_set(err, ERR_INTERNAL, 0, "backup '%s' has no sum", backup.id);
    memcpy(restoring->sum, row[STORE_BACKUP_SHA256].bytes, sizeof(restoring->sum));
    restoring->backup = backup;
    restoring->backup.name = backup.name ? mem_copy_text(backup.name) : NULL;
    restoring->backup.dir = dir ? dir : mem_copy_text(backup.dir);
    return 0;
}

static void on_found(void *context, const struct error *failure, const struct store_rows *rows)
{
    struct backup_restoring *restoring = context;
    struct error err = ERROR_INIT;

    if (!failure && take_row(restoring, rows, &err) < 0)
        failure = &err;
    sequence_next(&restoring->sequence, failure);
}

static void find_backup(void *context)
{
    struct backup_restoring *restoring = context;
    const struct store_condition condition = {.column = STORE_BACKUP_ID,
                                              .comparison = STORE_EQUAL,
                                              .value = store_text(restoring->backup.id)};
    const struct store_query query = {
        .kind = STORE_BACKUP, .conditions = &condition, .condition_count = 1, .limit = 1};

    domain_find(restoring->domain, &query, on_found, restoring);
}

/* Two that swap folders of one sandbox could each take away what the other has just brought. */
static bool is_alone(const struct backup_restoring *restoring)
{
    LIST_EACH (&restoring->domain->backups->restoring, at)
        if (CONTAINER_OF(at, struct backup_restoring, link)->sandbox == restoring->sandbox)
            return false;
    return true;
}

static void on_awake(struct sandbox_use *use, const struct error *failure)
{
    struct backup_restoring *restoring = CONTAINER_OF(use, struct backup_restoring, use);
    struct error err = ERROR_INIT;

    if (!failure && !is_alone(restoring)) {
        (void) error_set(&err, ERR_CONFLICT, 0,
                         "another backup is being restored into this sandbox: try again");
        failure = &err;
    }
    if (!failure)
        list_append(&restoring->domain->backups->restoring, &restoring->link);
    sequence_next(&restoring->sequence, failure);
}

static void wake_sandbox(void *context)
{
    struct backup_restoring *restoring = context;

    sandbox_use_begin(restoring->domain, restoring->sandbox, &restoring->use, SANDBOX_USE_START,
                      on_awake);
}

static void restore_folder(void *context)
{
    struct backup_restoring *restoring = context;
    const struct vault *vault = restoring->domain->options.vault;
    char key[BACKUP_KEY_SIZE];
    const struct vault_restore what = {
        .asker = {.who = domain_asker_of(restoring->domain, &restoring->sandbox->owner),
                  .haste = VAULT_ASKED},
        .key = key,
        .sum = restoring->sum,
        .sandbox = restoring->sandbox->id,
        .folder = restoring->backup.dir,
    };

    backup_key(key, restoring->backup.id, "data.sqsh");
    vault->restore(vault->self, &what, NULL, sequence_done, &restoring->sequence);
}

static void tell_restored(void *context)
{
    struct backup_restoring *restoring = context;
    struct domain *domain = restoring->domain;
    struct backup told = restoring->backup;
    struct store_transaction *change = store_begin(domain->options.store);

    told.sandbox = restoring->sandbox->id;
    told.owner = restoring->sandbox->owner;
    backup_add_event(domain, change, &restoring->caller, &told, "backup.restored");
    domain_commit(domain, change, sequence_kept, &restoring->sequence);
}

static bool is_open(const void *context)
{
    const struct backup_restoring *restoring = context;

    return restoring->domain->stage == DOMAIN_OPEN;
}

/* Once it is restored it is, whether or not that could be written down. */
static const struct sequence_step restore_steps[] = {
    {"find the backup", find_backup, .says_itself = true},
    {"wake the sandbox", .start = wake_sandbox},
    {"restore the folder", restore_folder, .point = "backup.restore.restored"},
    {"tell that it is restored", tell_restored, .when = is_open, .on_failure = SEQUENCE_WARNS},
    {.text = NULL},
};

const struct sequence_table backup_restore_sequence = {"backup.restore", restore_steps,
                                                       backup_restore_end};

/* --- the beginning --------------------------------------------------------------------------- */

static int check(struct domain *domain, const struct caller *caller, const char *id,
                 const char *dir, struct error *err)
{
    if (!domain_is_open(domain, err))
        return -1;
    if (!caller_may_enter(caller))
        return error_set(err, ERR_FORBIDDEN, 0, "this key may not restore backups");
    if (!domain->options.vault || !domain->options.provider)
        return error_set(err, ERR_NOT_IMPLEMENTED, 0, "backups cannot be restored here");
    if (!uuid_is_valid(id))
        return error_set(err, ERR_BACKUP_INVALID, 0, "the id of a backup is a UUID");
    return dir ? backup_check_dir(dir, err) : 0;
}

void backup_restore(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                    const char *id, const char *dir, backup_done *done, void *context)
{
    struct backup_restoring *restoring = mem_alloc(sizeof(*restoring));

    *restoring = (struct backup_restoring){.domain = domain,
                                           .caller = *caller,
                                           .sandbox = sandbox_ref(sandbox),
                                           .done = done,
                                           .context = context};
    list_init(&restoring->link);
    domain->works++;
    if (check(domain, caller, id, dir, &restoring->failure) < 0) {
        domain_defer(domain, &restoring->task, refuse_restore);
        return;
    }
    memcpy(restoring->backup.id, id, UUID_SIZE);
    if (dir)
        restoring->backup.dir = mem_copy_text(dir);
    sequence_begin(&restoring->sequence, domain, &backup_restore_sequence, &sandbox->id, restoring);
}
