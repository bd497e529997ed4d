#include "wall_set.h"

#include <linux/sched.h>
#include <string.h>

#include "base/auto.h"
#include "launcher/sandbox/sandbox_walls.h"
#include "launcher/wall/capability.h"
#include "launcher/wall/seccomp.h"

static const struct {
    const char *name;
    uint64_t flag;
} namespaces[] = {
    {"user_namespace", CLONE_NEWUSER},   {"pid_namespace", CLONE_NEWPID},
    {"network_namespace", CLONE_NEWNET}, {"ipc_namespace", CLONE_NEWIPC},
    {"uts_namespace", CLONE_NEWUTS},
};

static const struct {
    const char *name;
    unsigned int limit;
} limits[] = {
    {"memory_limit", WALL_LIMIT_MEMORY},
    {"pids_limit", WALL_LIMIT_PIDS},
    {"cpu_limit", WALL_LIMIT_CPU},
    {"disk_limit", WALL_LIMIT_DISK},
};

static bool add_seccomp(struct wall_set *set, const char *name)
{
    enum seccomp_wall wall = seccomp_wall_from_text(name);

    if (wall == SECCOMP_WALL_COUNT)
        return false;
    set->seccomp |= UINT32_C(1) << wall;
    return true;
}

static bool add_capability(struct wall_set *set, const char *name)
{
    uint64_t bit = capability_bit(name);

    set->capabilities |= bit;
    return bit != 0;
}

static bool add_shape(struct wall_set *set, const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(namespaces); i++) {
        if (strcmp(namespaces[i].name, name) == 0) {
            set->namespaces |= namespaces[i].flag;
            return true;
        }
    }
    for (size_t i = 0; i < ARRAY_COUNT(limits); i++) {
        if (strcmp(limits[i].name, name) == 0) {
            set->limits |= limits[i].limit;
            return true;
        }
    }
    if (strcmp(name, "private_root") != 0)
        return false;
    return set->root = true;
}

static bool add(struct wall_set *set, const char *name)
{
    enum sandbox_wall wall = sandbox_wall_from_text(name);

    if (strncmp(name, "seccomp.", 8) == 0)
        return add_seccomp(set, name + 8);
    if (strncmp(name, "capability.", 11) == 0)
        return add_capability(set, name + 11);
    if (wall != SANDBOX_WALL_COUNT) {
        set->sandbox |= UINT32_C(1) << wall;
        return true;
    }
    if (strcmp(name, "seccomp") == 0) {
        set->seccomp = SECCOMP_WALLS_ALL;
        return true;
    }
    if (strcmp(name, "capability") == 0) {
        set->capabilities = UINT64_MAX;
        return true;
    }
    return add_shape(set, name);
}

int wall_set_parse(char *names, struct wall_set *ret_set, struct error *err)
{
    char *rest = names, *name;

    *ret_set = (struct wall_set){0};
    if (strcmp(names, "-") == 0)
        return 0;
    while ((name = strsep(&rest, ","))) {
        if (*name && !add(ret_set, name))
            return error_set(err, ERR_INVALID, 0, "there is no wall '%s'", name);
    }
    return 0;
}

bool wall_set_is_bare(const struct wall_set *set)
{
    return set->namespaces || set->root;
}
