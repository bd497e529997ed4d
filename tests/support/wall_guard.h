/* The outer guard: around everything that wall_lab starts, with all walls of a sandbox off, there
 * are still these.
 *
 *     pid namespace       the lab is its PID 1: when it dies, everything it started dies
 *     mount, ipc, uts, network namespaces of its own: nothing of the machine's is changed. Mounts
 *                         are shared, as on a host with systemd, but with nobody outside
 *     cgroup              more than a sandbox gets, less than the machine has
 *     tmpfs               the disk pool lies in it: filling it fills nothing else. With cgroup v2
 * it lies in a file on the host's disk, which only its size limits deadline            then all of
 * it is killed
 *
 * wall_guard_run forks. The child becomes the lab; the parent only waits, passes SIGINT and SIGTERM
 * on as a kill, and takes away what is left: groups and folder. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct wall_guard {
    char folder[64];  /* /var/tmp/burrow-lab-<pid>-XXXXXX, as everybody sees it */
    uint64_t memory;  /* bytes */
    uint32_t pids;    /* processes */
    uint32_t cpu;     /* thousandths of a CPU */
    unsigned seconds; /* the deadline */

    bool is_in_memory; /* whether the pool is: decided by wall_guard_run */
};

/* Run `lab` inside. Returns its exit status, 128 + the signal that ended us, or -1 with `err`. */
int wall_guard_run(struct wall_guard *guard, int (*lab)(void *context), void *context,
                   struct error *err);
