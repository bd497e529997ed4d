#include "launcher/cgroup_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/number.h"
#include "launcher/cgroup_file.h"
#include "sys/sys_file.h"

/* The controllers that have to be enabled; those we limit with decide about the place. */
static const struct {
    enum cgroup_controller controller;
    const char *enable;
    bool needed;
} enabled_by[] = {
    {CGROUP_CPU, "+cpu", true},
    {CGROUP_MEMORY, "+memory", true},
    {CGROUP_PIDS, "+pids", true},
    {CGROUP_IO, "+io", false},
};

static unsigned int controllers_in(int group, const char *file)
{
    char names[CGROUP_FILE_SIZE];
    int length = cgroup_file_read(group, file, names, sizeof(names));

    return length < 0 ? 0 : cgroup_layout_controllers(CGROUP_V2, names, (size_t) length);
}

static unsigned int needed_of(unsigned int controllers)
{
    unsigned int needed = 0;

    for (size_t i = 0; i < ARRAY_COUNT(enabled_by); i++) {
        if (enabled_by[i].needed)
            needed |= CGROUP_BIT(enabled_by[i].controller);
    }
    return controllers & needed;
}

/* Pass on all controllers the group has. One at a time: the kernel takes all of a list or none.
 * Returns those that are passed on, and the last error (or 0). */
static unsigned int pass_on(int group, int *ret_error)
{
    unsigned int available = controllers_in(group, "cgroup.controllers");
    unsigned int enabled = controllers_in(group, "cgroup.subtree_control");

    *ret_error = 0;
    for (size_t i = 0; i < ARRAY_COUNT(enabled_by); i++) {
        unsigned int bit = CGROUP_BIT(enabled_by[i].controller);
        int result;

        if (!(available & bit) || enabled & bit)
            continue;
        result = cgroup_file_write(group, "cgroup.subtree_control", enabled_by[i].enable);
        if (result == 0)
            enabled |= bit;
        else
            *ret_error = result;
    }
    return enabled;
}

/* Whether no other process sits in the group. Those of other pid namespaces show as 0. */
static bool are_alone(int group)
{
    char list[64], we[NUMBER_TEXT_SIZE];
    int length = cgroup_file_read(group, "cgroup.procs", list, sizeof(list));
    size_t digits = number_format(getpid(), we);

    return length == (int) digits + 1 && memcmp(list, we, digits) == 0 && list[digits] == '\n';
}

static void leaf_name(const char *name, char ret_leaf[CGROUP_PATH_SIZE])
{
    (void) snprintf(ret_leaf, CGROUP_PATH_SIZE, "%s-launcher", name);
}

/* Out of the way: into a leaf of the group we sit in. */
static int move_into_leaf(int group, const char *name)
{
    char leaf[CGROUP_PATH_SIZE];
    AUTO(close) int directory = -EBADF;

    leaf_name(name, leaf);
    if (mkdirat(group, leaf, 0755) < 0 && errno != EEXIST)
        return -errno;
    directory = sys_file_open(group, leaf, O_RDONLY | O_DIRECTORY, 0);
    if (directory < 0)
        return directory;
    return cgroup_file_write(directory, "cgroup.procs", "0");
}

static void describe(struct cgroup_place *place, const char *path, int error)
{
    (void) snprintf(place->trouble, sizeof(place->trouble), "%.160s: %s%s", path,
                    strerrordesc_np(-error),
                    error == -EBUSY ? " (other processes sit in that group; give burrow a group of "
                                      "its own: a systemd unit with Delegate=yes)"
                                    : "");
}

/* Try one group. Returns the controllers its children would get, or -errno. */
static int try_group(struct cgroup_place *place, const char *path, const char *name, bool own)
{
    AUTO(close) int group = sys_file_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    unsigned int enabled;
    int error;

    if (group < 0) {
        describe(place, path, group);
        return group;
    }
    enabled = pass_on(group, &error);
    if (error == -EBUSY && own && are_alone(group) && move_into_leaf(group, name) == 0)
        enabled = pass_on(group, &error);
    if (error)
        describe(place, path, error);
    return (int) enabled;
}

static int make_base(struct cgroup_place *place, const char *parent, const char *name)
{
    AUTO(close) int base = -EBADF;
    int error;

    if (snprintf(place->path, sizeof(place->path), "%s/%s", parent, name) >=
        (int) sizeof(place->path))
        return -ENAMETOOLONG;
    if (mkdir(place->path, 0755) < 0 && errno != EEXIST)
        return -errno;
    base = sys_file_open(AT_FDCWD, place->path, O_RDONLY | O_DIRECTORY, 0);
    if (base < 0)
        return base;
    place->controllers = pass_on(base, &error);
    if (error)
        describe(place, place->path, error);
    if (faccessat(base, "cgroup.procs", F_OK, 0) < 0)
        return -errno; /* no cgroup at all: a mount hides it */
    place->base = TAKE_FD(base);
    return 0;
}

/* Our place, or the group around it when we were moved into the leaf before (and then exec'd). */
static void own_group(const struct cgroup_layout_hierarchy *hierarchy, const char *name,
                      char ret_own[CGROUP_PATH_SIZE])
{
    char leaf[CGROUP_PATH_SIZE];
    char *last;

    (void) snprintf(ret_own, CGROUP_PATH_SIZE, "%s", hierarchy->own);
    leaf_name(name, leaf);
    last = strrchr(ret_own, '/');
    if (last && strcmp(last + 1, leaf) == 0)
        *last = '\0';
}

/* The nearest group that passes on all that is needed, else the nearest of the best. */
static int choose_parent(const struct cgroup_layout_hierarchy *hierarchy, const char *name,
                         struct cgroup_place *place, char ret_parent[CGROUP_PATH_SIZE])
{
    AUTO(close) int top = sys_file_open(AT_FDCWD, hierarchy->top, O_RDONLY | O_DIRECTORY, 0);
    unsigned int needed = needed_of(top < 0 ? 0 : controllers_in(top, "cgroup.controllers"));
    char own[CGROUP_PATH_SIZE], path[CGROUP_PATH_SIZE];
    int best = -ENOENT;

    own_group(hierarchy, name, own);
    for (bool first = true;; first = false) {
        char *last = strrchr(own, '/');
        int got;

        if (snprintf(path, sizeof(path), "%s%s", hierarchy->top, own) >= (int) sizeof(path))
            return -ENAMETOOLONG;
        got = try_group(place, path, name, first);
        if (got >= 0 && (best < 0 || __builtin_popcount(needed_of((unsigned int) got)) >
                                         __builtin_popcount(needed_of((unsigned int) best)))) {
            best = got;
            (void) snprintf(ret_parent, CGROUP_PATH_SIZE, "%s", path);
        }
        if (!last || (got >= 0 && (needed & ~(unsigned int) got) == 0))
            return best < 0 ? best : 0;
        *last = '\0';
    }
}

int cgroup_place_find(const struct cgroup_layout_hierarchy *hierarchy, const char *name,
                      struct cgroup_place *ret_place)
{
    char parent[CGROUP_PATH_SIZE];
    int result;

    *ret_place = (struct cgroup_place){.base = -EBADF};
    result = choose_parent(hierarchy, name, ret_place, parent);
    if (result == 0) {
        result = make_base(ret_place, parent, name);
        if (result < 0)
            describe(ret_place, ret_place->path, result);
    }
    return result;
}
