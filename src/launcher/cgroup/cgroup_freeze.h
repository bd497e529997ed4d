/* Stopping and continuing all processes of a sandbox, without their noticing; and killing them.
 *
 * Freezing is asked for and then happens: on v2 within microseconds, on v1 as soon as somebody
 * looks, on both only when the last process has left whatever it does in the kernel. CGROUP_WHOLE
 * stops the sandbox, CGROUP_WORK only the user's programs, while the agent goes on answering. The
 * two are independent and nest: `work` runs when neither it nor the whole is frozen. New processes
 * of a frozen group are born frozen. CGROUP_AGENT alone cannot be frozen (ERR_INVALID).
 *
 * Functions return 0, or -1 with `err`: ERR_NOT_IMPLEMENTED where the host cannot freeze
 * (or, where v2 has no controllers, not `work` alone),
 * ERR_NOT_FOUND without such groups. */
#pragma once

#include <stdbool.h>

#include "launcher/cgroup/cgroup.h"

/* Ask for it. Do not block. */
int cgroup_freeze(const struct cgroup *cgroup, enum cgroup_part part, struct error *err);
int cgroup_thaw(const struct cgroup *cgroup, enum cgroup_part part, struct error *err);

struct cgroup_freeze_state {
    bool asked;  /* this part was told to freeze itself */
    bool frozen; /* nothing runs in it now, for whatever part's sake */
};

int cgroup_freeze_state(const struct cgroup *cgroup, enum cgroup_part part,
                        struct cgroup_freeze_state *ret_state, struct error *err);

/* Wait until the part is frozen. ERR_UNAVAILABLE with ETIMEDOUT when it is not by then: it is still
 * freezing, and the caller thaws it or waits on. On v2 the state descriptor of cgroup_watch.h tells
 * it without waiting. */
int cgroup_freeze_wait(const struct cgroup *cgroup, enum cgroup_part part, int timeout_ms,
                       struct error *err);

/* Kill every process in the groups, frozen ones too, and wait until they are gone; after a success
 * nothing is frozen on v1. With a timeout of 0 the signals are sent and nothing is waited for.
 * ERR_UNAVAILABLE with ETIMEDOUT when some are left (one may hang in the kernel, on a dead FUSE
 * server for instance). ERR_NOT_IMPLEMENTED without any cgroups. v2 kills the whole tree in one
 * call; elsewhere freeze, signal and thaw are repeated until nobody is left, so that no fork
 * escapes. Zombies do not count. */
int cgroup_kill(const struct cgroup *cgroup, int timeout_ms, struct error *err);
