/* Inside the disk pool only: what its files share. */
#pragma once

#include <limits.h>

#include "launcher/disk/disk_pool.h"
#include "sys/file/sys_btrfs.h"

#define STORE_NAME "store"

/* The name tells how the file is kept, so that a changed option does not change what is there. */
#define SPARSE_NAME    "sparse.btrfs"
#define ALLOCATED_NAME "allocated.btrfs"

struct disk_pool {
    enum disk_pool_kind kind;
    enum sys_btrfs_quota quota;
    bool is_sparse;                /* a file that grows and can be trimmed */
    bool is_fresh;                 /* nobody else had it open when we opened it */
    uint64_t reserve;              /* bytes */
    uint64_t clean_from;           /* the accounting record to look at next */
    int folder;                    /* owned: DATA/pool */
    int store;                     /* owned: its filesystem */
    int sets[DISK_POOL_SET_COUNT]; /* owned, by enum disk_pool_set */
    int unfinished;                /* owned: of all; ours is one of the sets */
    int left;                      /* owned: of the dead, with forks; or none */
    struct id own;                 /* the name of ours in there; empty: none */
    int trash;                     /* owned */
    int layers;                    /* owned; used in plain pools */
    char path[PATH_MAX];           /* of DATA/pool */
    char reason[ERROR_MESSAGE_MAX];
};

/* Wait this long for another process that makes or mounts the pool. */
#define DISK_POOL_LOCK_MS 60000

/* Lock the pool's folder against other openers. Returns a descriptor whose closing unlocks, or
 * -errno. */
int disk_pool_lock(struct disk_pool *pool);

/* Say what is missing, behind what was said before. */
void disk_pool_explain(struct disk_pool *pool, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

extern const char *const disk_pool_set_nouns[];

/* Every name that reaches the kernel passes here. */
int disk_pool_check_id(const struct id *id, struct error *err);
int disk_pool_check_limit(uint64_t limit, struct error *err);

/* The folders of a disk, those of it that are missing. -errno. */
int disk_pool_make_parts(int folder);

/* A snapshot on btrfs is a subvolume of this name in a folder with the snapshot's: a read-only one
 * cannot be moved into place, a folder around it can. */
#define DISK_COPY_NAME  "d"
#define DISK_UNFINISHED "unfinished"
#define DISK_ENTRY_SIZE (ID_SIZE + sizeof("/" DISK_COPY_NAME))
void disk_pool_entry_path(const struct disk_pool *pool, enum disk_pool_set set, const struct id *id,
                          char ret_path[static DISK_ENTRY_SIZE]);
int disk_pool_open_entry(struct disk_pool *pool, enum disk_pool_set set, const struct id *id);

/* The copied work folder of DISK_COPY_NAME in the folder `around` belongs to another overlay: make
 * it a new one. -errno. */
int disk_pool_renew_work(int around);

/* Move it to the trash, under a name that lets the old one be used, and thrown away, again. */
int disk_pool_throw_away(struct disk_pool *pool, int folder, const char *name);

/* disk_pool_unfinished.c: folders for what is being made. Each opener has one and holds its lock;
 * one that nobody holds is a dead process's. */

/* Take care of what the dead left, and make our own. Under the pool's lock. What fails shows when a
 * copy is to be made.
 *
 * It is deleted, with one exception. A fork is answered when its copy is on disk, and not yet the
 * rename that puts it into place, which would be one commit more. So when the power may have gone,
 * which is when nobody had the pool open (`is_fresh`), a copy that could be a fork is put there
 * again. Whether it was answered is not known here; what nobody knows of is taken down by recovery.
 */
void disk_pool_open_unfinished(struct disk_pool *pool);
void disk_pool_close_unfinished(struct disk_pool *pool);

/* disk_pool_stack.c: what plain pools share. A disk or snapshot has a file with the ids of the
 * layers beneath its upper folder; a layer that no such list names is collected. */

struct disk_stack {
    struct id layers[DISK_LAYERS_MAX]; /* the topmost first */
    size_t count;
};

/* Of the disk or snapshot `folder`; without a list: none. -errno. */
int disk_pool_read_stack(int folder, struct disk_stack *ret_stack);
int disk_pool_write_stack(int folder, const struct disk_stack *stack);

/* Give an unfinished copy the layers beneath `source`'s upper folder, and the status of that. */
int disk_pool_copy_stack(struct disk_pool *pool, int source, const struct id *target);

struct disk_pool_share {
    enum disk_pool_set from;
    const struct id *source;
    enum disk_pool_set as;
    const struct id *target;
    bool replace, sync;
};

/* Make a disk or snapshot that has all layers of another one, whose upper folder becomes one. */
int disk_pool_share(struct disk_pool *pool, const struct disk_pool_share *asked, struct error *err);

/* Throw away layers that nobody has. */
void disk_pool_collect(struct disk_pool *pool);

/* disk_pool_loop.c: the kind with the filesystem in a file. */

/* Whether the pool's folder has such a file: 1, 0 or -errno. */
int disk_pool_loop_exists(struct disk_pool *pool);

/* Make the file when missing, attach and mount it at the store unless that was done (`is_mounted`).
 * Sets is_sparse and is_fresh. */
int disk_pool_loop_mount(struct disk_pool *pool, const struct disk_pool_options *options,
                         bool is_mounted, struct error *err);
