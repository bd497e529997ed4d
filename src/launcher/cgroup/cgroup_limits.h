/* How much a sandbox may use, and what that means for its two groups.
 *
 *                     <id>                      agent           work
 *     memory          the limit                 -               less 16 MB
 *     sockets (v1)    the limit, at most 256 MB -               the same
 *     swap            the limit                 -               the same
 *     pids            the limit                 -               less 16
 *     cpu             the limit + 20 %          weight 800      the limit, weight 25
 *
 * The reserve keeps PID 1 alive when the user's programs hit the wall; of a small limit it is half
 * at most. The CPU quota sits on `work`, because a quota on the parent throttles the agent as well,
 * whatever the weights say (measured: 91 us against 2.9 ms for a fork of the agent under a CPU
 * bomb). The parent gets a fifth more, at least 0.05 CPUs, so that the sandbox as a whole is bound.
 * On v1 the agent has no group for it: a process weighs 1024 beside the 32 of `work`. What
 * sandboxes weigh beside each other is in cgroup_weight.h.
 *
 * Buffers of TCP sockets are memory of the sandbox on v2: they are part of memory.current (`sock` in
 * memory.stat) and end at memory.max (seen on 6.1: tests/vm/cases/limits_test.py). v1 counts them
 * beside it, so there they have a limit of their own: what the memory may be, and 256 MB at most,
 * because the kernel's tcp_mem is one for the whole host: two sandboxes of 2 GB could take all of
 * it, and TCP of everybody would stall. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/limits.h"

struct cgroup;

#define CGROUP_MEMORY_RESERVE (16ULL << 20)
#define CGROUP_PIDS_RESERVE   16

/* Of TCP's buffers, where they are counted by themselves (v1). */
#define CGROUP_SOCKETS_MAX (256ULL << 20)

/* What is accepted. Less would not let an agent start, more is beyond the kernel. */
#define CGROUP_MEMORY_MIN (4ULL << 20)
#define CGROUP_MEMORY_MAX (1ULL << 50)
#define CGROUP_PIDS_MIN   4
#define CGROUP_PIDS_MAX   4194304
#define CGROUP_CPU_MIN    10       /* a hundredth of a CPU */
#define CGROUP_CPU_MAX    10000000 /* ten thousand CPUs */

/* ERR_INVALID with a sentence when a limit is out of range. Pure. */
int cgroup_limits_check(const struct limits *limits, struct error *err);

/* Change the limits of a running sandbox. What this host cannot enforce is skipped. Lowering the
 * memory limit makes the kernel reclaim and may take long; when the sandbox still uses more, v1
 * refuses (ERR_CONFLICT) and v2 lets the OOM killer make room. After a failure some limits are the
 * new ones. Raising is quick: 0.1 ms. `before` are those that were set by now, which are not
 * written again; NULL: not known. */
int cgroup_set_limits(const struct cgroup *cgroup, const struct limits *before,
                      const struct limits *limits, struct error *err);
