/* What attempts aim at: things of the lab's own that stand for the host's.
 *
 * They lie in the guard, outside of every sandbox. Programs find them in their environment, as
 * attack/attack.h says, and TARGET_ID, the id of the sandbox.
 *
 * No attempt needs to touch anything of the machine itself. */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "base/id.h"

#define WALL_TARGETS_MAX 10

struct wall_target {
    char folder[96];
    char group[512];
    char pool[96];
    int leak; /* a descriptor of the folder that exec does not close: 200 or above */
    int pid;
};

/* Make them in `folder`. They go with the lab. */
int wall_target_make(const char *folder, struct wall_target *ret_target, struct error *err);

/* "TARGET_FOLDER" and its value, for each index below WALL_TARGETS_MAX. `value` has room for 512. */
const char *wall_target_variable(const struct wall_target *target, size_t index,
                                 const struct id *id, char *ret_value, size_t size);
