/* Backups: one folder of a sandbox as a squashfs archive in the object store, kept for a time.
 *
 *     backups/<id>/data.sqsh     the archive
 *     backups/<id>/meta.json     {"id","dir","name","sizeBytes","ttl","createdAt"}
 *
 * A backup is of one moment: a snapshot is taken, for which the sandbox stands still, and archived
 * while it goes on (or sleeps on).
 * It outlives its sandbox and can be restored into any sandbox of its owner, to the folder it was
 * of or another. Whoever holds the handle {id, dir} and has the right restores it.
 *
 *     row "making" ──► snapshot ──► archive, meta.json ──► row "ready", event ──► answer
 *
 * One that is deleted, or has expired, says "making" again before its objects go, so that what is
 * seen is always whole. Rows that say so after a restart, or after a delete, are collected: first
 * the objects, then the row. Answers come exactly once, from the loop, never from inside a call. */
#pragma once

#include "base/encoding/uuid.h"
#include "domain/caller.h"
#include "domain/domain.h"
#include "domain/sandbox/sandbox.h"

#define BACKUP_NAME_MAX        256
#define BACKUP_DIR_MAX         4096
#define BACKUP_EXCLUDES_MAX    1000
#define BACKUP_EXCLUDE_MAX     4096
#define BACKUP_TTL_DEFAULT     ((int64_t) 3 * 24 * 3600)    /* seconds */
#define BACKUP_TTL_MAX         ((int64_t) 3650 * 24 * 3600) /* ten years */
#define BACKUP_EXPIRY_SPARE_MS ((int64_t) 60 * 1000) /* a restore takes time: expired so early */
#define BACKUP_PAGE_MAX        1000

struct backup {
    char id[UUID_SIZE];
    struct id owner, sandbox;
    const char *dir;
    const char *name; /* may be NULL */
    uint64_t size;    /* of the archive */
    int64_t ttl;      /* seconds */
    int64_t created_ms, expires_ms;
    uint64_t pause_us; /* how long the sandbox stood still; of one that was made just now */
};

struct backup_spec {
    const char *dir;  /* absolute, beneath one of backup_folders; NULL: /workspace */
    const char *name; /* NULL: none; no control characters */
    int64_t ttl;      /* seconds; 0: BACKUP_TTL_DEFAULT */
    bool gitignore;
    bool no_freeze; /* the sandbox goes on meanwhile: not of one moment */
    const char *const *excludes;
    size_t exclude_count;
    const char *compression; /* "lz4", "zstd", "gzip", "xz"; NULL: lz4 */
};

/* Where backups may be of, and be restored to; NULL behind the last. */
extern const char *const backup_folders[];

/* Whether a folder will do: ERR_BACKUP_INVALID and why not. */
int backup_check_dir(const char *dir, struct error *err);

/* `backup` is borrowed for the call; NULL on failure. */
typedef void backup_done(void *context, const struct error *failure, const struct backup *backup);

/* ERR_BACKUP_INVALID: something in the spec; ERR_NOT_FOUND: there is no such folder;
 * ERR_NOT_IMPLEMENTED: no object store or no disks here; errors of vault.h. */
void backup_make(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                 const struct backup_spec *spec, backup_done *done, void *context);

/* `dir` NULL: the folder it was of. The sandbox is woken. ERR_BACKUP_NOT_FOUND, ERR_BACKUP_EXPIRED,
 * ERR_BACKUP_INVALID (no UUID, a folder that will not do); ERR_CONFLICT: another is being restored
 * into it. After a failure the folder has what it had. */
void backup_restore(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                    const char *id, const char *dir, backup_done *done, void *context);

/* Also expired ones, until they are collected. */
void backup_find(struct domain *domain, const struct caller *caller, const char *id,
                 backup_done *done, void *context);

/* Gone for everybody; its objects too, or, when the store is away, as soon as it is back. */
void backup_delete(struct domain *domain, const struct caller *caller, const char *id,
                   backup_done *done, void *context);

/* Of the caller's owner, or of one sandbox; in the order of their ids, which is not that of time,
 * behind `after` (an id; NULL: from the start), at most `limit`. `next`: there may be more behind
 * this id; NULL: that was all. A page may be shorter than asked for and not the last. */
typedef void backup_list_done(void *context, const struct error *failure,
                              const struct backup *backups, size_t count, const char *next);
void backup_list(struct domain *domain, const struct caller *caller, const struct id *sandbox,
                 const char *after, size_t limit, backup_list_done *done, void *context);
