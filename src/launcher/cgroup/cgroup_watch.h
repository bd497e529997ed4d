/* Descriptors that wake a poll or epoll when something happens in a sandbox's groups.
 *
 * Optional: two descriptors per sandbox are much for thousands of them, and what they tell can also
 * be asked (cgroup_oom_kills, cgroup_populated, the pidfd of PID 1). An event means "look again":
 * call cgroup_watch_clear, then ask. */
#pragma once

#include "launcher/cgroup/cgroup.h"

struct cgroup_watch {
    int memory;          /* owned: the kernel ran out of memory in there; -EBADF: cannot be told */
    short memory_events; /* what to poll for: POLLIN on v1, POLLPRI on v2 */
    int state; /* owned: became empty, populated, frozen or thawed; v2 only, else -EBADF */
    short state_events;
};

#define CGROUP_WATCH_INIT                                                                          \
    {                                                                                              \
        .memory = -EBADF, .state = -EBADF                                                          \
    }

/* ERR_NOT_FOUND without such groups; what this host cannot tell is left out without an error. Does
 * not block. */
int cgroup_watch_open(const struct cgroup *cgroup, struct cgroup_watch *ret_watch,
                      struct error *err);

/* Make ready for the next event. Call it before asking, so that nothing falls in between. */
void cgroup_watch_clear(struct cgroup_watch *watch);

void cgroup_watch_close(struct cgroup_watch *watch);

AUTO_DEFINE(cgroup_watch, struct cgroup_watch, cgroup_watch_close);
