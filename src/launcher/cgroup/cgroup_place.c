#include "launcher/cgroup/cgroup_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/number.h"
#include "launcher/cgroup/cgroup_file.h"
#include "sys/file/sys_file.h"

/* The controllers that have to be enabled; those we limit with decide about the place. In an order
 * that matters: the kernel refuses the first two to a group with processes, and gives the others to
 * it at the price of making it threaded, which its owner did not ask for. */
static const struct {
    enum cgroup_controller controller;
    const char *enable;
    bool needed;
} enabled_by[] = {
    {CGROUP_MEMORY, "+memory", true},
    {CGROUP_IO, "+io", false},
    {CGROUP_CPU, "+cpu", true},
    {CGROUP_PIDS, "+pids", true},
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

/* 0, or why a group cannot pass on controllers. The root of all groups, which has no type, always
 * can. `own`: we could get out of its way. */
static int may_pass_on(int group, bool own)
{
    char text[32];
    int length = cgroup_file_read(group, "cgroup.type", text, sizeof(text));

    if (length == -ENOENT)
        return 0;
    if (length < 0 || strcmp(text, "domain\n") != 0)
        return length < 0 ? length : -EOPNOTSUPP; /* threaded, or beneath such a one */
    length = cgroup_file_read(group, "cgroup.procs", text, sizeof(text));
    if (length < 0 && length != -EFBIG)
        return length;
    return length == 0 || (own && are_alone(group)) ? 0 : -EBUSY;
}

static int count_needed(unsigned int controllers)
{
    return __builtin_popcount(needed_of(controllers));
}

/* How many of the controllers that are needed the group could pass on, if it were ours. Nothing is
 * changed: it may be somebody else's. */
static int look_at_group(struct cgroup_place *place, const char *path, bool own)
{
    AUTO(close) int group = sys_file_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    int may = group < 0 ? group : may_pass_on(group, own);

    if (may < 0)
        describe(place, path, may);
    return may < 0 ? 0 : count_needed(controllers_in(group, "cgroup.controllers"));
}

/* Take one group for ours. Returns how many of the controllers that are needed its children get. */
static int use_group(struct cgroup_place *place, const char *path, const char *name, bool own)
{
    AUTO(close) int group = sys_file_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    unsigned int enabled;
    int error = group < 0 ? group : 0;

    if (error == 0 && own && are_alone(group))
        error = move_into_leaf(group, name);
    enabled = error < 0 ? 0 : pass_on(group, &error);
    if (error < 0)
        describe(place, path, error);
    return count_needed(enabled);
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

/* The nearest group that can pass on so many controllers. 0 with its path, or -errno. */
static int choose_with(const struct cgroup_layout_hierarchy *hierarchy, const char *name,
                       int wanted, struct cgroup_place *place, char ret_parent[CGROUP_PATH_SIZE])
{
    char own[CGROUP_PATH_SIZE];

    own_group(hierarchy, name, own);
    for (bool first = true;; first = false) {
        char *last = strrchr(own, '/');

        if (snprintf(ret_parent, CGROUP_PATH_SIZE, "%s%s", hierarchy->top, own) >= CGROUP_PATH_SIZE)
            return -ENAMETOOLONG;
        if (wanted == 0)
            return 0; /* without controllers any group will do */
        if (look_at_group(place, ret_parent, first) >= wanted &&
            use_group(place, ret_parent, name, first) >= wanted)
            return 0;
        if (!last)
            return -ENOENT;
        *last = '\0';
    }
}

/* The nearest group that passes on all that is needed, else the nearest of the best. */
static int choose_parent(const struct cgroup_layout_hierarchy *hierarchy, const char *name,
                         struct cgroup_place *place, char ret_parent[CGROUP_PATH_SIZE])
{
    AUTO(close) int top = sys_file_open(AT_FDCWD, hierarchy->top, O_RDONLY | O_DIRECTORY, 0);
    int needed = count_needed(top < 0 ? 0 : controllers_in(top, "cgroup.controllers"));
    int r = -ENOENT;

    for (int wanted = needed; wanted >= 0 && r == -ENOENT; wanted--)
        r = choose_with(hierarchy, name, wanted, place, ret_parent);
    return r;
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

int cgroup_place_step_aside(const struct cgroup_layout_hierarchy *hierarchy, const char *name)
{
    char path[CGROUP_PATH_SIZE];
    AUTO(close) int group = -EBADF;

    if (snprintf(path, sizeof(path), "%s%s", hierarchy->top, hierarchy->own) >= (int) sizeof(path))
        return -ENAMETOOLONG;
    group = sys_file_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    return group < 0 ? group : move_into_leaf(group, name);
}
