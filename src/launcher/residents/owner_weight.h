/* What each sandbox weighs, so that owners get equal parts of CPUs that are short, however many
 * sandboxes they have. Pure.
 *
 * The sandboxes of an owner would be one group with one weight, if a group could be changed: but the
 * warm pool's are in theirs before anybody owns them, to move a process takes the kernel 20 ms (a
 * grace period of all CPUs), and what was charged for it stays behind. So each keeps its group, and
 * the weight of one is divided among those of an owner that use the CPUs, once a second. How many
 * those are follows from what they used, without a threshold: (sum of u)^2 / sum of u^2 is 480 for
 * 480 that use the same, and 1 for one that is busy beside 479 that sleep.
 *
 * A weight falls at once and rises by half in each turn, so that taking turns does not help. Who
 * uses less than half of an equal part has the full weight: there is nothing to take from him. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/id.h"

struct owner_use {
    struct id owner;     /* not none */
    uint64_t used_us;    /* since the last turn */
    uint32_t weight;     /* as it is */
    uint32_t new_weight; /* as it shall be: filled in */
    void *sandbox;       /* the caller's */
};

/* Sorts `uses` by owner and fills in all new weights. */
void owner_weight_divide(struct owner_use *uses, size_t count);
