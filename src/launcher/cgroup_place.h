/* Finding room for the base group in the v2 hierarchy: controllers reach a group only when every
 * group above passes them on, and a group that passes them on holds no processes. */
#pragma once

#include "launcher/cgroup_layout.h"

#define CGROUP_TROUBLE_SIZE 384

struct cgroup_place {
    int base;                          /* owned by the caller: the base group, or -errno */
    unsigned int controllers;          /* bits of those that its children get */
    char path[CGROUP_PATH_SIZE];       /* of the base */
    char trouble[CGROUP_TROUBLE_SIZE]; /* the last thing that did not work, or "" */
};

/* Enable what can be enabled at our place or above it, move ourselves into the leaf
 * "<name>-launcher" when that is what it takes, and make the base group. Returns 0, or -errno with
 * `trouble` filled when there is no group at all. */
int cgroup_place_find(const struct cgroup_layout_hierarchy *hierarchy, const char *name,
                      struct cgroup_place *ret_place);
