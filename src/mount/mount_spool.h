/* Files that are being written: their bytes on our disk until they are uploaded.
 *
 * A spool is a file without a name in the daemon's own folder: whatever becomes of us, nothing of
 * it is left. Rooms count bytes: each mount has one with a limit, inside of one for all mounts. The
 * length of a file counts, holes included; they take no room on the disk. Files and bytes are
 * claimed in the name of whose the mount is (share.h), and nothing is taken when the disk has no
 * more free than its floor. -errno. One thread. */
#pragma once

#include <stdint.h>

#include "share/share.h"

struct mount_spool_room {
    struct mount_spool_room *outer; /* borrowed; NULL: none */
    int folder;                     /* borrowed: where the files are */
    uint64_t used, limit;
    uint64_t floor;           /* bytes of the disk that stay free (sys_disk_room.h); 0: none */
    struct shares *shares;    /* borrowed; may be NULL: nothing is counted */
    struct share_asker asker; /* whose files these are */
    struct log *log;          /* borrowed; may be NULL */
    const char *text;         /* borrowed, for the log: of which mount; may be NULL */
    uint64_t refused;         /* how often something was */
};

struct mount_spool {
    struct mount_spool_room *room; /* borrowed: outlives it */
    int fd;                        /* owned */
    uint64_t size;
    struct share_claim file, bytes;
};

/* An empty one. NULL with -errno in `ret_error`: -EMFILE when its owner has his part of files. */
struct mount_spool *mount_spool_new(struct mount_spool_room *room, int *ret_error);
/* Accepts NULL. */
void mount_spool_free(struct mount_spool *spool);

/* Count for a length of at least `size`, before it is written. -ENOSPC: a room
 * is full, its owner has his part, or the disk has no more. */
int mount_spool_reserve(struct mount_spool *spool, uint64_t size);

/* Make it exactly this long. */
int mount_spool_truncate(struct mount_spool *spool, uint64_t size);
