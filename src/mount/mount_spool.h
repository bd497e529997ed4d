/* Files that are being written: their bytes on our disk until they are uploaded.
 *
 * A spool is a file without a name in the daemon's own folder: whatever becomes of us, nothing of
 * it is left. Rooms count bytes: each mount has one with a limit, inside of one for all mounts. The
 * length of a file counts, holes included. -errno. One thread. */
#pragma once

#include <stdint.h>

struct mount_spool_room {
    struct mount_spool_room *outer; /* borrowed; NULL: none */
    int folder;                     /* borrowed: where the files are */
    uint64_t used, limit;
};

struct mount_spool {
    struct mount_spool_room *room; /* borrowed: outlives it */
    int fd;                        /* owned */
    uint64_t size;
};

/* An empty one. NULL with -errno in `ret_error`. */
struct mount_spool *mount_spool_new(struct mount_spool_room *room, int *ret_error);
/* Accepts NULL. */
void mount_spool_free(struct mount_spool *spool);

/* Count for a length of at least `size`, before it is written. -ENOSPC: a room is full. */
int mount_spool_reserve(struct mount_spool *spool, uint64_t size);

/* Make it exactly this long. */
int mount_spool_truncate(struct mount_spool *spool, uint64_t size);
