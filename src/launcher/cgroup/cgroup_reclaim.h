/* Pushing the memory of a sandbox out: to swap, and to the files that it came from.
 *
 * Meant for a frozen one, which does not fetch it back at once. How much goes depends on the swap
 * of the host and on the sandbox's own limit of it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "launcher/cgroup/cgroup.h"

/* Whether this host has swap, and groups that count memory. */
bool cgroup_can_reclaim(const struct cgroup_host *host);

/* Push out what goes, and tell how much went. 0, or -1 with `err`: ERR_NOT_IMPLEMENTED without
 * memory groups, ERR_NOT_FOUND without this one. Takes as long as there is memory: for a helper
 * process. */
int cgroup_reclaim(const struct cgroup *cgroup, uint64_t *ret_bytes, struct error *err);
