/* What a sandbox has used, and whether the kernel killed in it for lack of memory.
 *
 * A program that was killed by the OOM killer ends like any that got SIGKILL. To tell: read
 * cgroup_oom_kills when it starts and when it ended, or keep a cgroup_watch. */
#pragma once

#include <stdint.h>

#include "launcher/cgroup/cgroup.h"

/* Which numbers are known: unknown is said, never guessed. */
enum cgroup_stat {
    CGROUP_STAT_CPU = 1 << 0,
    CGROUP_STAT_THROTTLED = 1 << 1,
    CGROUP_STAT_MEMORY = 1 << 2,
    CGROUP_STAT_MEMORY_PEAK = 1 << 3,
    CGROUP_STAT_PIDS = 1 << 4,
    CGROUP_STAT_PIDS_REFUSED = 1 << 5,
    CGROUP_STAT_IO = 1 << 6,
    CGROUP_STAT_OOM = 1 << 7,
};

struct cgroup_stats {
    unsigned int known; /* CGROUP_STAT_...; the others are 0 */
    uint64_t cpu_us;
    uint64_t throttled_us; /* time that programs waited for their CPU quota */
    uint64_t memory_bytes;
    uint64_t memory_peak_bytes;
    uint64_t pids;
    uint64_t pids_refused; /* forks that failed at the limit */
    uint64_t read_bytes;   /* from disks; on v1 without what was written back later */
    uint64_t written_bytes;
    uint64_t oom_kills_agent; /* victims by where they lived */
    uint64_t oom_kills_work;
};

/* Read all. Never fails: of a sandbox that is gone nothing is known. About 0.1 ms. */
void cgroup_stats_read(const struct cgroup *cgroup, struct cgroup_stats *ret_stats);

/* The same, but only the numbers of these kinds: bits of enum cgroup_stat. */
void cgroup_stats_read_some(const struct cgroup *cgroup, unsigned int wanted,
                            struct cgroup_stats *ret_stats);

/* Only the victims of the OOM killer, since the groups were made. Returns 0, or -1 with
 * ERR_NOT_IMPLEMENTED (no memory controller) or ERR_NOT_FOUND. */
int cgroup_oom_kills(const struct cgroup *cgroup, uint64_t *ret_agent, uint64_t *ret_work,
                     struct error *err);
