/* A set of walls by their names: what a run of wall_lab leaves out.
 *
 *     seccomp.mounts        a wall of the filter; `seccomp` for all of them
 *     capability.sys_admin  one more right for root; `capability` for all
 *     hidden_proc           a wall of launcher/sandbox/sandbox_walls.h
 *     memory_limit          and pids_limit, cpu_limit, disk_limit
 *     user_namespace        and pid_, network_, ipc_, uts_namespace, private_root: without one of
 *                           these there is no sandbox, and the program runs beside it (wall_bare.h)
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum {
    WALL_LIMIT_MEMORY = 1,
    WALL_LIMIT_PIDS = 2,
    WALL_LIMIT_CPU = 4,
    WALL_LIMIT_DISK = 8,
};

/* All of them: what is left out. */
struct wall_set {
    uint32_t sandbox; /* SANDBOX_WALL_BIT */
    uint32_t seccomp; /* SECCOMP_WALL_BIT */
    uint64_t capabilities;
    uint64_t namespaces; /* CLONE_NEW... */
    bool root;
    unsigned int limits;
};

/* Read names with commas between them; "-" or "" is the empty set. Changes `names`. */
int wall_set_parse(char *names, struct wall_set *ret_set, struct error *err);

/* Whether the shape of a sandbox is left out. */
bool wall_set_is_bare(const struct wall_set *set);
