/* Finding room for the base group in the v2 hierarchy: controllers reach a group only when every
 * group above passes them on, and a group that passes them on holds no processes. */
#pragma once

#include "launcher/cgroup/cgroup_layout.h"

#define CGROUP_TROUBLE_SIZE 384

struct cgroup_place {
    int base;                          /* owned by the caller: the base group, or -errno */
    unsigned int controllers;          /* bits of those that its children get */
    char path[CGROUP_PATH_SIZE];       /* of the base */
    char trouble[CGROUP_TROUBLE_SIZE]; /* the last thing that did not work, or "" */
};

/* Choose the nearest group, ours or one above it, that can pass on controllers, enable them there,
 * move ourselves into the leaf "<name>-launcher" when that is what it takes, and make the base
 * group. Groups that are not chosen stay as they are. Returns 0, or -errno with `trouble` filled
 * when there is no group at all. */
int cgroup_place_find(const struct cgroup_layout_hierarchy *hierarchy, const char *name,
                      struct cgroup_place *ret_place);

/* Move ourselves into the leaf "<name>-launcher" of our group, so that the group can pass on
 * controllers to others. 0 or -errno. */
int cgroup_place_step_aside(const struct cgroup_layout_hierarchy *hierarchy, const char *name);
