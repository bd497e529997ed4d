/* What attempts aim at: things of the lab's own that stand for the host's.
 *
 * They lie in the guard, outside of every sandbox. Programs find them in their environment:
 *
 *     LAB_FOLDER    a folder with the files `public` (everybody may read) and `private`
 *     LAB_PID       a process that sleeps
 *     LAB_ABSTRACT  the abstract unix socket somebody listens at (without the leading NUL)
 *     LAB_PORT      a TCP port somebody listens at on 127.0.0.1
 *     LAB_SHARED    the key of a System V shared memory segment
 *     LAB_HOSTNAME  the host's name
 *     LAB_GROUP     a file of a cgroup that root may write
 *     LAB_POOL      a folder on the pool's btrfs, or nothing there
 *     LAB_ID        the id of the sandbox
 *     LAB_PIPE      where somebody opens any pipe he sees, as root of the host runs what is in
 *                   /usr/local/bin
 *
 * No attempt needs to touch anything of the machine itself. */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "base/id.h"

#define WALL_TARGETS_MAX 10

struct wall_target {
    char folder[96];
    char group[512];
    char pool[96];
    int leak; /* a descriptor of the folder that exec does not close: 200 or above */
    int pid;
};

/* Make them in `folder`. They go with the lab. */
int wall_target_make(const char *folder, struct wall_target *ret_target, struct error *err);

/* "LAB_FOLDER" and its value, for each index below WALL_TARGETS_MAX. `value` has room for 512. */
const char *wall_target_variable(const struct wall_target *target, size_t index,
                                 const struct id *id, char *ret_value, size_t size);
