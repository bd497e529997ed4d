/* A sandbox: its first process cloned, walled in and turned into PID 1 of its own machine.
 *
 *      launcher                                     child
 *      id range, image, a network
 *      clone into five more namespaces, ids  ────►  sets up /dev and /proc on a stage
 *      cgroups, disk, idmapped mounts  ──────────►  enters its cgroup, mounts its root, pivots,
 *                                                   gives up rights, loads the filter
 *      sandbox_ready: the status pipe ended  ◄────  execs the agent from a sealed image
 *
 * The child is a table of steps (sandbox_child.c) that allocate nothing; the first that fails is
 * reported with its name and errno through the status pipe, and the child is gone. The walls are
 * constants of the launcher: a plan cannot leave one out. Tests can, through sandbox_host.
 *
 * One thread. All functions return 0, or -1 with `err` filled, unless stated. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/id.h"
#include "launcher/cgroup/cgroup.h"
#include "launcher/disk/disk_pool.h"
#include "launcher/ids/id_range.h"
#include "launcher/image/image.h"
#include "launcher/network/network.h"
#include "launcher/sandbox/sandbox_walls.h"
#include "launcher/wall/process_limit.h"
#include "launcher/wall/seccomp.h"

/* What all sandboxes of a launcher share. All borrowed; outlives them. */
struct sandbox_host {
    const struct cgroup_host *cgroups;
    struct disk_pool *pool;
    struct image_registry *images;
    struct id_range_table *ids;
    const struct seccomp_filter *filter; /* NULL: none, for tests of other walls */
    const struct process_limits *limits;
    uint64_t capabilities; /* capability_kept() */
    int agent;             /* sealed memfd of the agent, hidden with process_limit_hide_image */
    /* A network namespace that was made in advance and nobody had, taken by the next sandbox;
     * -EBADF: there is none. NULL: they are never made in advance. */
    int *network_ahead;
    int home;            /* the network namespace of the caller, where it is and stays */
    uint32_t open_walls; /* SANDBOX_WALL_BIT of those left out: 0 but in tests */
};

#define SANDBOX_BINDS_MAX 16

/* A folder of the host, seen read-only in the sandbox. */
struct sandbox_bind {
    int source;        /* O_PATH, borrowed */
    const char *place; /* absolute, inside; folders on the way are made */
};

struct sandbox_plan {
    struct id id;
    const char *hostname;
    const char *image; /* a registered name */
    struct limits limits;
    bool is_pooled;     /* other limits may come: nothing is made in their measure */
    bool existing_disk; /* on the disk this id has, whose limit is set anew */
    bool dies_with_us;  /* killed by the kernel when the calling thread ends */
    const struct sandbox_bind *binds;
    size_t bind_count;
};

#define SANDBOX_ARGUMENTS_MAX 16

struct sandbox {
    struct id id;
    struct id_range ids;
    struct cgroup cgroup;
    pid_t pid;
    uint64_t started; /* sys_process_start_time: with the pid it names the process for good */
    int pidfd;        /* owned */
    int status;       /* owned: readable when the child is PID 1, or has failed */
};

#define SANDBOX_INIT                                                                               \
    {                                                                                              \
        .pidfd = -EBADF, .status = -EBADF                                                          \
    }

/* Start a sandbox. `listener` is the agent's listening socket (borrowed; it finds it as the
 * descriptor of --listen-fd). Returns as soon as the child is on its way: wait for `status` and
 * call sandbox_ready. On failure nothing is left. */
int sandbox_start(const struct sandbox_host *host, const struct sandbox_plan *plan, int listener,
                  struct sandbox *ret_sandbox, struct error *err);

/* Once `status` is readable: whether the agent runs. -1 with what went wrong, in which step. */
int sandbox_ready(struct sandbox *sandbox, struct error *err);

/* Kill everything in it, at once; waits up to `timeout_ms` for PID 1 to be gone and reaps it. */
int sandbox_kill(struct sandbox *sandbox, int timeout_ms, struct error *err);

/* After its end: give back cgroups, id range and, unless `keep_disk`, the disk. Slow: for a helper
 * process. */
int sandbox_remove(const struct sandbox_host *host, struct sandbox *sandbox, bool keep_disk,
                   struct error *err);

/* Close descriptors; the sandbox itself goes on. */
void sandbox_forget(struct sandbox *sandbox);
