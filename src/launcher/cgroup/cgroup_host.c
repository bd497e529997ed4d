#include "launcher/cgroup/cgroup_host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "launcher/cgroup/cgroup_internal.h"
#include "launcher/cgroup/cgroup_place.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_lock.h"

/* What /proc may tell us at most; a host with many mounts has a long mountinfo. */
#define SELF_CGROUP_MAX (64 << 10)
#define MOUNTINFO_MAX   (16 << 20)

#define NAME_MAX_LENGTH 64

/* `leaves`: which parts need a group of their own on v1, or on a v2 that passes on no controllers.
 * There a group may hold processes beside its children, so the agent can live in the sandbox's
 * group: one directory less to make. CPU time is shared out between siblings, processes and groups
 * alike. io and CPU time are only read. A v2 that serves nothing but freezing has no leaf at all:
 * joining one would be the only move that waits for all CPUs.
 *
 * `core_file`: what v2 has in every group (freezing, CPU time), or what may be missing though the
 * controller is there (swap). */
static const struct {
    const char *name;
    unsigned int leaves;
    const char *core_file;
    const char *lost;
} controllers[CGROUP_CONTROLLER_COUNT] = {
    [CGROUP_CPU] = {"cpu", CGROUP_BIT(CGROUP_WORK), NULL, "CPU use is not limited"},
    [CGROUP_MEMORY] = {"memory", CGROUP_BIT(CGROUP_WORK), NULL,
                       "memory is not limited and an out-of-memory kill is not told from another"},
    [CGROUP_PIDS] = {"pids", CGROUP_BIT(CGROUP_WORK), NULL,
                     "the number of processes is not limited"},
    [CGROUP_IO] = {"io", 0, NULL, "disk traffic is not counted"},
    [CGROUP_FREEZER] = {"freezer", CGROUP_BIT(CGROUP_WORK), "cgroup.freeze",
                        "sandboxes cannot be frozen"},
    [CGROUP_CPU_TIME] = {"cpu time", 0, "cpu.stat", "CPU time is not counted"},
    [CGROUP_SWAP] = {"swap", 0, "memory.swap.max", "the use of swap is not limited"},
};

#define V1_SWAP_FILE "memory.memsw.limit_in_bytes"
#define V2_LEAVES    (CGROUP_BIT(CGROUP_AGENT) | CGROUP_BIT(CGROUP_WORK))

/* What went wrong with a hierarchy, kept until it is known which controllers that costs. */
struct troubles {
    char v2[CGROUP_TROUBLE_SIZE];
    char v1[CGROUP_CONTROLLER_COUNT][CGROUP_TROUBLE_SIZE];
};

const char *cgroup_controller_name(enum cgroup_controller controller)
{
    return controllers[controller].name;
}

const struct cgroup_hierarchy *cgroup_serving(const struct cgroup_host *host,
                                              enum cgroup_controller controller)
{
    int index = host->support[controller].hierarchy;

    return index < 0 ? NULL : &host->hierarchies[index];
}

enum cgroup_version cgroup_host_version(const struct cgroup_host *host,
                                        enum cgroup_controller controller)
{
    const struct cgroup_hierarchy *hierarchy = cgroup_serving(host, controller);

    return hierarchy ? hierarchy->version : CGROUP_NONE;
}

const char *cgroup_host_missing(const struct cgroup_host *host, enum cgroup_controller controller)
{
    return cgroup_serving(host, controller) ? NULL : host->support[controller].missing;
}

const char *cgroup_host_place(const struct cgroup_host *host, enum cgroup_controller controller)
{
    const struct cgroup_hierarchy *hierarchy = cgroup_serving(host, controller);

    return hierarchy ? hierarchy->path : NULL;
}

void cgroup_host_remove_base(const struct cgroup_host *host)
{
    /* Groups with children stay, which is what is wanted. */
    for (size_t i = 0; i < host->count; i++)
        (void) rmdir(host->hierarchies[i].path);
}

void cgroup_host_free(struct cgroup_host *host)
{
    if (!host)
        return;
    for (size_t i = 0; i < host->count; i++)
        (void) fd_close(host->hierarchies[i].base);
    free(host);
}

static unsigned int unserved(const struct cgroup_host *host)
{
    unsigned int bits = 0;

    for (unsigned int i = 0; i < CGROUP_CONTROLLER_COUNT; i++) {
        if (host->support[i].hierarchy < 0)
            bits |= CGROUP_BIT(i);
    }
    return bits;
}

/* Take the hierarchy into use for these controllers. */
static void serve(struct cgroup_host *host, struct cgroup_hierarchy *hierarchy)
{
    for (unsigned int i = 0; i < CGROUP_CONTROLLER_COUNT; i++) {
        if (!(hierarchy->controllers & CGROUP_BIT(i)))
            continue;
        host->support[i].hierarchy = (int) host->count;
        if (hierarchy->version == CGROUP_V1)
            hierarchy->leaves |= controllers[i].leaves;
        else if (!controllers[i].core_file)
            hierarchy->leaves |= V2_LEAVES;
    }
    host->hierarchies[host->count++] = *hierarchy;
}

static bool has_file(int group, const char *file)
{
    return faccessat(group, file, F_OK, 0) == 0;
}

static void open_v2(struct cgroup_host *host, const struct cgroup_layout_hierarchy *layout,
                    const char *name, struct troubles *troubles)
{
    struct cgroup_hierarchy hierarchy = {.version = CGROUP_V2};
    struct cgroup_place place;
    int result = cgroup_place_find(layout, name, &place);

    memcpy(troubles->v2, place.trouble, sizeof(troubles->v2));
    if (result < 0)
        return;
    hierarchy.base = place.base;
    hierarchy.controllers = place.controllers;
    memcpy(hierarchy.path, place.path, sizeof(hierarchy.path));
    for (unsigned int i = 0; i < CGROUP_CONTROLLER_COUNT; i++) {
        if (controllers[i].core_file && has_file(place.base, controllers[i].core_file))
            hierarchy.controllers |= CGROUP_BIT(i);
    }
    if (hierarchy.controllers)
        serve(host, &hierarchy);
    else
        (void) fd_close(place.base);
}

static int open_v1_base(const struct cgroup_layout_hierarchy *layout, const char *name,
                        struct cgroup_hierarchy *hierarchy)
{
    if (snprintf(hierarchy->path, sizeof(hierarchy->path), "%s%s/%s", layout->top, layout->own,
                 name) >= (int) sizeof(hierarchy->path))
        return -ENAMETOOLONG;
    if (mkdir(hierarchy->path, 0755) < 0 && errno != EEXIST)
        return -errno;
    hierarchy->base = sys_file_open(AT_FDCWD, hierarchy->path, O_RDONLY | O_DIRECTORY, 0);
    if (hierarchy->base < 0)
        return hierarchy->base;
    if (has_file(hierarchy->base, "cgroup.procs"))
        return 0;
    hierarchy->base = fd_close(hierarchy->base);
    return -ENOENT; /* no cgroup at all: a mount hides it */
}

static void open_v1(struct cgroup_host *host, const struct cgroup_layout_hierarchy *layout,
                    const char *name, struct troubles *troubles)
{
    struct cgroup_hierarchy hierarchy = {.version = CGROUP_V1, .base = -EBADF};
    int result;

    hierarchy.controllers = layout->controllers & unserved(host);
    if (!hierarchy.controllers)
        return;
    result = open_v1_base(layout, name, &hierarchy);
    if (result < 0) {
        for (unsigned int i = 0; i < CGROUP_CONTROLLER_COUNT; i++) {
            if (hierarchy.controllers & CGROUP_BIT(i))
                (void) snprintf(troubles->v1[i], CGROUP_TROUBLE_SIZE, "%.160s: %s", hierarchy.path,
                                strerrordesc_np(-result));
        }
        return;
    }
    if (hierarchy.controllers & CGROUP_BIT(CGROUP_MEMORY) && has_file(hierarchy.base, V1_SWAP_FILE))
        hierarchy.controllers |= CGROUP_BIT(CGROUP_SWAP);
    serve(host, &hierarchy);
}

/* Why a controller is not to be had, the most telling reason first. */
static void explain(struct cgroup_host *host, enum cgroup_controller controller,
                    const struct cgroup_layout *layout, const struct troubles *troubles)
{
    const char *why;

    if (controller == CGROUP_SWAP)
        why = cgroup_serving(host, CGROUP_MEMORY)
                  ? "the kernel does not account swap (boot with swapaccount=1)"
                  : "that needs the memory controller";
    else if (troubles->v1[controller][0])
        why = troubles->v1[controller];
    else if (troubles->v2[0])
        why = troubles->v2;
    else if (layout->hidden & CGROUP_BIT(controller))
        why = "the kernel has the controller in a v1 hierarchy that is not mounted here (mount it, "
              "or boot with systemd.unified_cgroup_hierarchy=1)";
    else if (layout->count == 0)
        why = "no cgroup hierarchy is mounted here (mount cgroup2 at /sys/fs/cgroup)";
    else
        why = "no mounted hierarchy has the controller (see /proc/cgroups and cgroup_disable= in "
              "/proc/cmdline)";
    (void) snprintf(host->support[controller].missing, CGROUP_REASON_SIZE, "%s: %s",
                    controllers[controller].lost, why);
}

/* Where that group is not there, our own place stays what it is. */
static void move_to_parent(struct cgroup_layout_hierarchy *hierarchy, const char *parent)
{
    char path[CGROUP_PATH_SIZE];

    if (!parent)
        return;
    parent = strcmp(parent, "/") == 0 ? "" : parent;
    if (snprintf(path, sizeof(path), "%s%s", hierarchy->top, parent) < (int) sizeof(path) &&
        access(path, F_OK) == 0)
        (void) snprintf(hierarchy->own, sizeof(hierarchy->own), "%.*s", CGROUP_PATH_SIZE - 1,
                        parent);
}

static void open_hierarchies(struct cgroup_host *host, const struct cgroup_host_options *options,
                             struct cgroup_layout *layout)
{
    struct troubles troubles = {0};

    for (size_t i = 0; i < layout->count; i++) {
        struct cgroup_layout_hierarchy *hierarchy = &layout->hierarchies[i];

        move_to_parent(hierarchy, options->parent);
        if (hierarchy->version == CGROUP_V2 && !options->without_v2)
            open_v2(host, hierarchy, options->name, &troubles);
        if (hierarchy->version == CGROUP_V1 && !options->without_v1)
            open_v1(host, hierarchy, options->name, &troubles);
    }
    for (unsigned int i = 0; i < CGROUP_CONTROLLER_COUNT; i++) {
        if (host->support[i].hierarchy < 0)
            explain(host, i, layout, &troubles);
    }
}

static int read_text(const char *path, size_t limit, char **ret_text, struct error *err)
{
    size_t length;
    int result = sys_file_read_all(AT_FDCWD, path, limit, ret_text, &length);

    if (result < 0)
        return error_set(err, ERR_UNAVAILABLE, result, "read %s", path);
    return 0;
}

static bool is_name(const char *name)
{
    size_t length = name ? strlen(name) : 0;

    return length > 0 && length <= NAME_MAX_LENGTH && !strpbrk(name, "/.\n");
}

int cgroup_host_step_aside(const char *name, struct error *err)
{
    AUTO(free) char *self_text = NULL;
    AUTO(free) char *mounts_text = NULL;
    AUTO(free) struct cgroup_layout *layout = mem_alloc(sizeof(*layout));
    int r = 0;

    if (read_text("/proc/self/cgroup", SELF_CGROUP_MAX, &self_text, err) < 0 ||
        read_text("/proc/self/mountinfo", MOUNTINFO_MAX, &mounts_text, err) < 0)
        return error_wrap(err, "look for cgroups");
    cgroup_layout_parse(self_text, mounts_text, layout);
    if (layout->count && layout->hierarchies[0].version == CGROUP_V2)
        r = cgroup_place_step_aside(&layout->hierarchies[0], name);
    return r < 0 ? error_set(err, cgroup_error_code(r), r, "move into a leaf of our group") : 0;
}

int cgroup_host_open(const struct cgroup_host_options *options, struct cgroup_host **ret_host,
                     struct error *err)
{
    const char *self = options->self_cgroup ? options->self_cgroup : "/proc/self/cgroup";
    const char *mounts = options->mountinfo ? options->mountinfo : "/proc/self/mountinfo";
    AUTO(free) char *self_text = NULL;
    AUTO(free) char *mounts_text = NULL;
    AUTO(cgroup_host) struct cgroup_host *host = NULL;
    AUTO(free) struct cgroup_layout *layout = NULL;

    if (!is_name(options->name))
        return error_set(err, ERR_INVALID, 0, "'%s' cannot name a cgroup",
                         options->name ? options->name : "");
    if (read_text(self, SELF_CGROUP_MAX, &self_text, err) < 0 ||
        read_text(mounts, MOUNTINFO_MAX, &mounts_text, err) < 0)
        return error_wrap(err, "look for cgroups");
    host = mem_alloc(sizeof(*host));
    host->clock = options->clock ? options->clock : clock_system();
    for (unsigned int i = 0; i < CGROUP_CONTROLLER_COUNT; i++)
        host->support[i].hierarchy = -1;
    layout = mem_alloc(sizeof(*layout));
    cgroup_layout_parse(self_text, mounts_text, layout);
    open_hierarchies(host, options, layout);
    *ret_host = TAKE_PTR(host);
    return 0;
}

/* The lock is on the directory: it cannot be forgotten, and is not in anybody's run folder. */
int cgroup_host_claim(const struct cgroup_host *host, int timeout_ms, struct error *err)
{
    if (!host->count ||
        sys_lock_take(host->hierarchies[0].base, SYS_LOCK_EXCLUSIVE, timeout_ms) == 0)
        return 0;
    return error_set(err, ERR_CONFLICT, 0,
                     "another launcher has its sandboxes in the group %s: give one of them another "
                     "name by the setting cgroup (--cgroup NAME)",
                     host->hierarchies[0].path);
}
