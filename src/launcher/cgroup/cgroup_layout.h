/* Where the cgroup hierarchies are mounted and where in each of them we sit: the pure half of
 * opening a host, from the text of /proc/self/cgroup and /proc/self/mountinfo.
 *
 * Three kinds of host come out of it the same way:
 *
 *     v2 only    one hierarchy with all controllers
 *     hybrid     v1 hierarchies with a few controllers each, and a v2 one with the rest
 *     v1 only    v1 hierarchies
 *
 * Hierarchies that hold none of our controllers (devices, cpuset, name=systemd) are left out. */
#pragma once

#include <stddef.h>

/* What we want of cgroups. The last three are no controllers of their own on v2: freezing and CPU
 * time belong to every group there, and swap is part of memory on both. */
enum cgroup_controller {
    CGROUP_CPU,
    CGROUP_MEMORY,
    CGROUP_PIDS,
    CGROUP_IO,
    CGROUP_FREEZER,
    CGROUP_CPU_TIME,
    CGROUP_SWAP,
    CGROUP_CONTROLLER_COUNT
};

#define CGROUP_BIT(controller) (1U << (controller))

enum cgroup_version { CGROUP_NONE, CGROUP_V1, CGROUP_V2 };

/* Longer places are treated as if they were not there. */
#define CGROUP_PATH_SIZE 1024

/* One for each controller v1 can mount alone, and v2. */
#define CGROUP_HIERARCHY_MAX 7

struct cgroup_layout_hierarchy {
    enum cgroup_version version;
    unsigned int controllers;   /* bits, v1 only: those of v2 are asked of the kernel */
    char top[CGROUP_PATH_SIZE]; /* where it is mounted */
    char own[CGROUP_PATH_SIZE]; /* our place beneath: "" or "/system.slice/burrow.service" */
};

struct cgroup_layout {
    struct cgroup_layout_hierarchy hierarchies[CGROUP_HIERARCHY_MAX]; /* v2 first, if any */
    size_t count;
    unsigned int hidden; /* v1 controllers the kernel has, without a mount that shows our place */
};

/* Never fails: text that is not understood yields fewer hierarchies. Of several mounts of one
 * hierarchy the first that shows our place wins, a writable one before a read-only one. */
void cgroup_layout_parse(const char *self_cgroup, const char *mountinfo,
                         struct cgroup_layout *ret_layout);

/* The bits of the controllers in a list such as "cpu memory pids" or "cpu,cpuacct", as the named
 * version calls them. Unknown names are ignored. */
unsigned int cgroup_layout_controllers(enum cgroup_version version, const char *names,
                                       size_t length);
