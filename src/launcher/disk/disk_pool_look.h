/* What the disk pool is, or would become, without making, mounting, locking or writing anything:
 * for `doctor`. Needs root to see into the pool's folder. */
#pragma once

#include "launcher/disk/disk_pool.h"

struct disk_pool_look {
    bool exists;                    /* there is a pool */
    bool is_mounted;                /* and it is in use, or was since the last boot */
    enum disk_pool_kind kind;       /* that it has, or that would be made; never DISK_POOL_AUTO */
    bool is_limited;                /* limits hold, as far as can be told before it is mounted */
    const char *quota;              /* "simple quota", "qgroups", "none"; "" when not known yet */
    bool has_loop;                  /* what a file with btrfs in it takes: loop devices, */
    bool has_btrfs;                 /* btrfs in the kernel (false: its module may be loadable), */
    bool has_mkfs;                  /* and mkfs.btrfs */
    struct disk_pool_space space;   /* size 0: not mounted, only `beneath_free` is known */
    char reason[ERROR_MESSAGE_MAX]; /* what is not as good as it could be, and what to do; or "" */
};

/* `path` is DATA/pool and need not exist: then the nearest folder above that does tells what it
 * would lie on. `dev` and `proc` are "/dev" and "/proc" outside of tests. Returns 0, or -1 when the
 * place cannot be looked at. */
int disk_pool_look(const char *path, const char *dev, const char *proc,
                   struct disk_pool_look *ret_look, struct error *err);
