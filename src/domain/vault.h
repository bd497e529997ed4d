/* What the domain asks of stored state: bytes moved between disks, objects and agents. An
 * interface, because the domain reads and writes no descriptor. src/vault has the one that does;
 * tests have their own.
 *
 * Each answer comes exactly once, from the loop, never from inside the call. What a call is given
 * is copied, what an answer is given is borrowed for the call. Disks that are named must not change
 * meanwhile: of stopped sandboxes, or snapshots.
 *
 * Done means: what was put is in the object store, whole, and survives power loss; what was
 * restored is on the sandbox's disk, and survives it too. A failure leaves nothing half there that
 * has a name: a key without its object, a folder that is neither the old nor the new one (only when
 * the very last step fails, to write the disk back, may it be the new one). Errors are those of
 * objects.h and of the jobs (provider.h), but that a store which refuses our key is
 * ERR_UNAVAILABLE; messages say which step failed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/id.h"
#include "provider/provider.h"
#include "share/share.h"

#define VAULT_SUM_SIZE   32 /* SHA-256 */
#define VAULT_LAYER_SIZE 65 /* an id of a layer in hex, with its NUL */

typedef void vault_done(void *context, const struct error *failure);

/* Now and then while something takes long; may be NULL. Gets the call's context. */
struct vault_progress {
    uint64_t files, bytes;
    uint64_t stored_bytes; /* of what is being put or got */
};
typedef void vault_progressed(void *context, const struct vault_progress *progress);

/* For whom something is done, and how soon. Owners take turns. */
enum vault_haste {
    VAULT_WAKE,  /* a sandbox is needed: before all else, and never refused */
    VAULT_ASKED, /* somebody asked for it: ERR_QUOTA when its owner has asked for too much */
    VAULT_LATER, /* behind what its owner asked for, and never refused */
};

struct vault_asker {
    struct share_asker who;
    enum vault_haste haste;
    bool is_claimed; /* one of SHARE_DISK_JOBS is claimed for it by the caller already */
};

/* --- backups: one folder as a squashfs image -------------------------------------------------- */

struct vault_archive {
    struct vault_asker asker;
    struct disk_ref disk;
    const char *image;  /* the disk's; NULL: the provider's default */
    const char *folder; /* absolute, as the sandbox sees it */
    bool gitignore;
    const char *const *excludes;
    size_t exclude_count;
    const char *compression; /* "lz4" (NULL), "zstd", "gzip", "xz" */
    const char *key;         /* where it is put */
    uint64_t bytes_max;      /* of the object: ERR_QUOTA beyond; 0: no limit */
};

struct vault_archived {
    uint64_t files, folders, bytes; /* in it */
    uint64_t size;                  /* of the object */
    uint8_t sum[VAULT_SUM_SIZE];
};
typedef void vault_archive_done(void *context, const struct error *failure,
                                const struct vault_archived *archived);

/* The sandbox runs (hold a use). Its `folder` is made when missing and has exactly what the backup
 * has afterwards, or, after a failure, what it had before. */
struct vault_restore {
    struct vault_asker asker;
    const char *key;
    const uint8_t *sum; /* VAULT_SUM_SIZE bytes; NULL: the object's own decides */
    struct id sandbox;
    const char *folder;
};

/* --- disks as layers ---------------------------------------------------------------------------
 */

struct vault_layer {
    char id[VAULT_LAYER_SIZE];   /* SHA-256 of its content, uncompressed */
    uint64_t size;               /* of the object */
    uint64_t bytes;              /* uncompressed */
    uint8_t sum[VAULT_SUM_SIZE]; /* of the object */
    bool is_new;                 /* the store did not have it */
};
typedef void vault_layer_done(void *context, const struct error *failure,
                              const struct vault_layer *layer);

/* A disk made of layers: the disk of a stopped sandbox `target`, which must not be there. */
struct vault_fetch {
    struct vault_asker asker; /* whose layers they are, too */
    struct id target;
    uint64_t disk_bytes; /* its limit; 0: none */
    /* What it begins as, instead of nothing; no id: nothing. It is what the layers below those here
     * would make. */
    struct disk_ref start;
    const struct vault_layer *layers; /* the oldest first; only id and sum are looked at */
    size_t count;                     /* not 0, unless there is a start */
};

/* --- a folder mirrored file by file ------------------------------------------------------------
 */

struct vault_sync {
    struct vault_asker asker;
    struct disk_ref disk;
    const char *image;
    const char *folder;
    const char *prefix;          /* of the objects: "workspaces/<id>/" */
    const char *manifest;        /* key of the list of what is there */
    const char *const *excludes; /* whole components of paths */
    size_t exclude_count;
    uint64_t bytes_max; /* ERR_QUOTA before anything is put; 0: no limit */
};

struct vault_synced {
    uint64_t files;   /* put now, because they are new or changed */
    uint64_t skipped; /* left out by the excludes */
    uint64_t unchanged, removed;
    uint64_t total_files, total_bytes; /* in the mirror afterwards */
    uint8_t manifest_sum[VAULT_SUM_SIZE];
};
typedef void vault_sync_done(void *context, const struct error *failure,
                             const struct vault_synced *synced);

struct vault_mirror {
    const char *prefix, *manifest;
    struct id sandbox; /* it runs */
    const char *folder;
};
typedef void vault_mirror_done(void *context, const struct error *failure, uint64_t files,
                               uint64_t bytes);

/* --- the interface ------------------------------------------------------------------------------
 */

/* A line of a diff as the keeper wrote it, JSON without its newline. */
typedef void vault_line(void *context, const char *line, size_t length);
typedef void vault_measure_done(void *context, const struct error *failure, uint64_t files,
                                uint64_t bytes);

struct vault {
    void *self;

    void (*archive)(void *self, const struct vault_archive *what, vault_progressed *progressed,
                    vault_archive_done *done, void *context);
    void (*restore)(void *self, const struct vault_restore *what, vault_progressed *progressed,
                    vault_done *done, void *context);

    /* What differs from `base` (empty id: everything) as a layer of this owner. */
    void (*store_disk)(void *self, const struct vault_asker *asker, const struct disk_ref *disk,
                       const struct disk_ref *base, vault_progressed *progressed,
                       vault_layer_done *done, void *context);
    /* On failure there is no such disk. */
    void (*fetch_disk)(void *self, const struct vault_fetch *what, vault_progressed *progressed,
                       vault_done *done, void *context);

    void (*sync)(void *self, const struct vault_sync *what, vault_progressed *progressed,
                 vault_sync_done *done, void *context);
    void (*restore_mirror)(void *self, const struct vault_mirror *what,
                           vault_progressed *progressed, vault_mirror_done *done, void *context);

    void (*diff)(void *self, const struct vault_asker *asker, const struct disk_ref *newer,
                 const struct disk_ref *older, vault_line *line, vault_done *done, void *context);
    void (*measure)(void *self, const struct vault_asker *asker, const struct disk_ref *disk,
                    vault_measure_done *done, void *context);

    /* All objects whose keys begin with this prefix, page by page. */
    void (*remove_prefix)(void *self, const char *prefix, vault_done *done, void *context);
};
