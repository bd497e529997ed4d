/* What the files of domain/backup share. */
#pragma once

#include "base/list.h"
#include "domain/backup/backup.h"
#include "domain/domain_internal.h"

#define BACKUP_KEY_SIZE (sizeof("backups//data.sqsh") + UUID_LENGTH)

struct backups {
    uint64_t due_ns;
    int64_t opened_ms;     /* rows "making" from before are of a daemon that is gone */
    size_t looking;        /* for those to collect, under way */
    struct list purging;   /* of backup_purge */
    struct list leaving;   /* of leaving_owner: users who were deleted */
    struct list restoring; /* into sandboxes, from their wake on: backup_restore.c */
};

/* "backups/<id>/" and a name behind it. */
void backup_key(char ret_key[static BACKUP_KEY_SIZE], const char *id, const char *name);

/* A row as a backup that borrows from it. */
struct backup backup_of_row(const struct store_value *row);

/* Whether `row` (NULL: none was found) is a whole backup that the caller may see. Else the error is
 * ERR_BACKUP_NOT_FOUND; one of somebody else is a denial for the audit log. */
int backup_check_seen(struct domain *domain, const struct caller *caller,
                      const struct store_value *row, struct error *err);

/* With an event of this type (static) one that others know of: its row says "making" first, so that
 * nobody sees it any more, then its objects go, then the row. NULL: nobody knew of it. Fails only
 * when it is still there for others; what is left then is collected later. Nothing is checked. With
 * the row goes what its owner holds of the shares: one backup, and `size` bytes of storage.
 * `done` may be NULL. */
typedef void backup_purged(void *context, const struct error *failure);
void backup_purge(struct domain *domain, const struct caller *caller, const struct backup *backup,
                  const char *event, backup_purged *done, void *context);

/* All that an owner has who is no more: in the background, some at a time, until none is left. */
void backups_leave(struct domain *domain, const struct id *owner);

/* Events of a backup; the sandbox's stream. */
void backup_add_event(struct domain *domain, struct store_transaction *change,
                      const struct caller *caller, const struct backup *backup, const char *type);
