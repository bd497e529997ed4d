/* For tests only: where their folders are made. In memory where that is possible, for what the
 * programs flush to a disk is time that no test asks for. */
#pragma once

#include <errno.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#define SCRATCH_USUAL      "/tmp"
#define SCRATCH_IN_MEMORY  "/dev/shm"
#define SCRATCH_NEEDS_ROOM (UINT64_C(2) << 30)

/* Of the folder's filesystem: in memory, with `room` (that of a container is small) and with
 * attributes of users (not before Linux 6.6). */
static inline bool scratch_is_memory(const char *folder, uint64_t room)
{
    struct statfs facts;

    return statfs(folder, &facts) == 0 && facts.f_type == TMPFS_MAGIC &&
           facts.f_bavail * (uint64_t) facts.f_bsize >= room &&
           (getxattr(folder, "user.none", NULL, 0) >= 0 || errno == ENODATA);
}

/* The folder in which tests make theirs; BURROW_SCRATCH names another. The usual one also when it
 * is in memory already, as in a child with mounts of its own. */
static inline const char *scratch_parent(void)
{
    const char *given = getenv("BURROW_SCRATCH");

    if (given)
        return given;
    return !scratch_is_memory(SCRATCH_USUAL, 0) &&
                   scratch_is_memory(SCRATCH_IN_MEMORY, SCRATCH_NEEDS_ROOM)
               ? SCRATCH_IN_MEMORY
               : SCRATCH_USUAL;
}
