/* Inside the disk pool only: what its files share. */
#pragma once

#include <limits.h>

#include "launcher/disk_pool.h"
#include "sys/sys_btrfs.h"

#define STORE_NAME "store"

/* The name tells how the file is kept, so that a changed option does not change what is there. */
#define SPARSE_NAME    "sparse.btrfs"
#define ALLOCATED_NAME "allocated.btrfs"

struct disk_pool {
    enum disk_pool_kind kind;
    enum sys_btrfs_quota quota;
    bool is_sparse;                              /* a file that grows and can be trimmed */
    uint64_t reserve;                            /* bytes */
    uint64_t clean_from;                         /* the accounting record to look at next */
    int folder;                                  /* owned: DATA/pool */
    int store;                                   /* owned: its filesystem */
    int sets[2];                                 /* owned, by enum disk_pool_set */
    int trash;                                   /* owned */
    int spares;                                  /* owned */
    struct id spare_names[DISK_POOL_SPARES_MAX]; /* that were there when we looked */
    size_t spare_count;
    char path[PATH_MAX]; /* of DATA/pool */
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

/* disk_pool_spare.c */

/* The file that marks a disk with copies. It is beside the folders that a sandbox sees. */
#define DISK_COPIED "c"

/* Note that blocks of this disk are also another's from now on. */
int disk_pool_mark_copied(int folder);

/* Give a spare disk to a sandbox, with this limit: 1, 0 when there is none, -EEXIST when the
 * sandbox has a disk. What it holds is still to be made. */
int disk_pool_take_spare(struct disk_pool *pool, const struct id *sandbox, uint64_t limit);

/* disk_pool_loop.c: the kind with the filesystem in a file. */

/* Whether the pool's folder has such a file: 1, 0 or -errno. */
int disk_pool_loop_exists(struct disk_pool *pool);

/* Make the file when missing, attach and mount it at the store unless that was done (`is_mounted`).
 * Sets is_sparse. `ret_is_fresh`: nobody else can have had it open. */
int disk_pool_loop_mount(struct disk_pool *pool, const struct disk_pool_options *options,
                         bool is_mounted, bool *ret_is_fresh, struct error *err);
