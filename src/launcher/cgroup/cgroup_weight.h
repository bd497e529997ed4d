/* What a sandbox weighs beside others when CPUs are short, and how much CPU time was taken.
 *
 * All groups beneath the base weigh CGROUP_WEIGHT_FULL, unless somebody says otherwise: who divides
 * the CPUs among owners (residents/owner_weight.h). Where the host has no CPU controller all of this
 * succeeds and does nothing, or counts nothing. */
#pragma once

#include <stdint.h>

#include "launcher/cgroup/cgroup.h"

/* The kernel's own range on v2 is 1 to 10,000. With a full weight in its middle one owner's can be
 * divided by a thousand. */
#define CGROUP_WEIGHT_FULL 1000

/* `weight` is 1 to CGROUP_WEIGHT_FULL. Some microseconds. 0 or -1. */
int cgroup_set_weight(const struct cgroup *cgroup, uint32_t weight, struct error *err);

/* What it has now, as it was set. 0 or -1; ERR_NOT_IMPLEMENTED: no such controller. */
int cgroup_weight(const struct cgroup *cgroup, uint32_t *ret_weight, struct error *err);

/* CPU time since the group was made, in microseconds; 0 where nobody counts it. */
uint64_t cgroup_cpu_used(const struct cgroup *cgroup);

/* The same of everything beneath the base, those that are gone too. */
uint64_t cgroup_host_cpu_used(const struct cgroup_host *host);
