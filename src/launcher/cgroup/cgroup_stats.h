/* What a sandbox has used, and whether the kernel killed in it for lack of memory.
 *
 * A program that was killed by the OOM killer ends like any that got SIGKILL. To tell: read
 * cgroup_oom_kills when it starts and when it ended, or keep a cgroup_watch. What a cgroup knows
 * nothing of (network, disk) stays unknown here. On v1 the bytes written to disks are without what
 * the kernel wrote back later. */
#pragma once

#include <stdint.h>

#include "launcher/cgroup/cgroup.h"
#include "model/stats.h"

/* Read all that cgroups count. Never fails: of a sandbox that is gone nothing is known. About 0.1
 * ms. */
void cgroup_stats_read(const struct cgroup *cgroup, struct stats *ret_stats);

/* Only the victims of the OOM killer, since the groups were made. Returns 0, or -1 with
 * ERR_NOT_IMPLEMENTED (no memory controller) or ERR_NOT_FOUND. */
int cgroup_oom_kills(const struct cgroup *cgroup, uint64_t *ret_agent, uint64_t *ret_work,
                     struct error *err);
