/* The child between clone and exec: steps that change what the kernel lets it do, in an order that
 * matters. Nothing here allocates or logs; every step returns 0 or -errno. */
#include "launcher/keeper/keeper_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/trace.h"
#include "launcher/child/child_steps.h"
#include "launcher/wall/capability.h"
#include "launcher/wall/seccomp.h"
#include "sys/file/sys_file.h"
#include "sys/mount/sys_mount.h"
#include "sys/mount/sys_mount_path.h"
#include "sys/network/sys_fd_pass.h"
#include "sys/process/sys_close_range.h"
#include "sys/process/sys_namespace.h"
#include "sys/process/sys_signal.h"

/* Where the root is put together; its mount namespace is the child's own by then. */
#define STAGE "/tmp"

#define DISK_PLACE   "/disk"
#define BASE_PLACE   "/base"
#define TARGET_PLACE "/target"

/* What a view is made of; gone from the root when it is made. */
#define VIEW_UPPER  STAGE "/upper"
#define VIEW_LOWERS STAGE "/l"

/* The place of one lower layer, "/tmp/l/127", and all of them in the words of overlay. */
#define LOWER_SIZE  16
#define LOWERS_SIZE (KEEPER_LAYERS_MAX * LOWER_SIZE)

#define DATA_FD   3
#define STATUS_FD 4

/* Descriptors are moved out of the way to here and above, below the limit that is set: two for each
 * layer of two disks that are compared, and some more. */
#define SPARE_FD   20
#define NOFILE_MAX 192

/* A bound for hosts without a memory cgroup; the keeper's own bounds lie far below. */
#define DATA_MAX ((rlim_t) 512 << 20)

#define TEXTS(...)      ((const char *const[]){__VA_ARGS__, NULL})
#define TO_READ         TEXTS("dac_read_search")
#define TO_WRITE        TEXTS("dac_override", "fowner", "chown", "fsetid")
#define NOTHING         ((const char *const[]){NULL})
#define UPPER_OF(place) place "/" DISK_UPPER

/* A copy takes the upper folder only: a copied work folder would not mount again. */
static const struct keeper_task_row tasks[KEEPER_TASK_COUNT] = {
    [KEEPER_DELETE] = {"delete", .disk = DISK_PLACE, .writes = true,
                       .capabilities = TEXTS("dac_override", "fowner")},
    [KEEPER_MEASURE] = {"measure", .disk = DISK_PLACE, .capabilities = TO_READ},
    [KEEPER_LIST] = {"list", .disk = DISK_PLACE, .capabilities = TO_READ},
    [KEEPER_COPY] = {"copy", .disk = UPPER_OF(DISK_PLACE), .target = UPPER_OF(TARGET_PLACE),
                     .is_tree = true, .capabilities = TO_WRITE},
    [KEEPER_COPY_LIVE] = {"copy-live", .disk = UPPER_OF(DISK_PLACE),
                          .target = UPPER_OF(TARGET_PLACE), .is_upper = true,
                          .capabilities = TO_WRITE},
    [KEEPER_DIFF] = {"diff", .disk = UPPER_OF(DISK_PLACE), .base = UPPER_OF(BASE_PLACE),
                     .is_tree = true, .capabilities = TO_READ},
    [KEEPER_PACK] = {"pack", .disk = UPPER_OF(DISK_PLACE), .base = UPPER_OF(BASE_PLACE),
                     .may_lack_base = true, .is_tree = true, .has_data = true,
                     .capabilities = TO_READ},
    [KEEPER_UNPACK] = {"unpack", .target = UPPER_OF(TARGET_PLACE), .capabilities = TO_WRITE},
    [KEEPER_ARCHIVE] = {"archive", .disk = DISK_PLACE, .is_view = true, .has_data = true,
                        .capabilities = TO_READ},
    [KEEPER_UNARCHIVE] = {"unarchive", .has_data = true, .capabilities = NOTHING},
    [KEEPER_SCAN] = {"scan", .disk = DISK_PLACE, .is_view = true, .capabilities = TO_READ},
    [KEEPER_READ] = {"read", .disk = DISK_PLACE, .is_view = true, .has_data = true,
                     .capabilities = TO_READ},
    [KEEPER_IMPORT] = {"import", .base = BASE_PLACE, .target = TARGET_PLACE, .has_folders = true,
                       .capabilities = TO_WRITE},
    [KEEPER_IMPORT_LAYOUT] = {"import-layout", .disk = DISK_PLACE, .base = BASE_PLACE,
                              .target = TARGET_PLACE, .has_folders = true,
                              .capabilities = TO_WRITE},
    [KEEPER_ADD_LAYER] = {"add-layer", .target = TARGET_PLACE, .has_folders = true,
                          .capabilities = TO_WRITE},
};

const struct keeper_task_row *keeper_task_row(enum keeper_task task)
{
    return &tasks[task];
}

uint64_t keeper_job_capabilities(enum keeper_task task)
{
    uint64_t bits = 0;

    for (const char *const *name = tasks[task].capabilities; *name; name++)
        bits |= capability_bit(*name);
    return bits;
}

bool keeper_job_has_data(enum keeper_task task)
{
    return tasks[task].has_data;
}

/* The launcher has written the id maps and made the mounts. */
static int receive_mounts(struct keeper_child *child)
{
    const struct keeper_task_row *task = &tasks[child->task];
    const bool wanted[KEEPER_MOUNTS_MAX] = {
        [KEEPER_MOUNT_DISK] = task->disk != NULL,
        [KEEPER_MOUNT_BASE] = child->has_base,
        [KEEPER_MOUNT_TARGET] = task->target != NULL,
    };
    int fds[KEEPER_MOUNTS_MAX + KEEPER_LAYERS_MAX];
    size_t count = 0, next = 0, known;
    ssize_t got;

    /* While we hold copies of the launcher's ends, its death would not close them. */
    for (size_t i = 0; i < ARRAY_COUNT(child->launcher); i++)
        child->launcher[i] = fd_close(child->launcher[i]);
    got = sys_fd_pass_receive(child->socket, &child->delivery, sizeof(child->delivery), fds,
                              ARRAY_COUNT(fds), &count);
    if (got < 0)
        return (int) got;
    for (size_t i = 0; i < KEEPER_MOUNTS_MAX; i++)
        child->mounts[i] = wanted[i] && next < count ? fds[next++] : -EBADF;
    for (size_t i = 0; i < KEEPER_MOUNTS_MAX; i++) {
        if (wanted[i] != (child->mounts[i] >= 0))
            return -EPIPE;
    }
    while (next < count && child->layer_count < KEEPER_LAYERS_MAX)
        child->layers[child->layer_count++] = fds[next++];
    known = (size_t) child->delivery.disk_layers + child->delivery.base_layers;
    return got == (ssize_t) sizeof(child->delivery) && next == count &&
                   (task->is_view ? child->layer_count > known : child->layer_count == known)
               ? 0
               : -EPIPE;
}

/* `work` has the limits, and is missing where a hierarchy has one group for both. */
static int enter_cgroup(struct keeper_child *child)
{
    int r = cgroup_enter(child->entry.agent, child->entry.agent_count);

    if (r == 0)
        r = cgroup_enter(child->entry.work, child->entry.work_count);
    return r < 0 ? r : sys_namespace_unshare(CLONE_NEWCGROUP);
}

static int become_root(struct keeper_child *child)
{
    int r = child_become_root();

    (void) child;
    return r < 0 ? r : child_result(setsid());
}

/* After the change of ids, which forgets this signal. A launcher that died before is seen by its
 * end of the status pipe. */
static int die_with_launcher(struct keeper_child *child)
{
    struct pollfd status = {.fd = child->status};
    int r = sys_process_die_with_parent(SIGKILL, 0);

    if (r < 0)
        return r;
    if (poll(&status, 1, 0) < 0)
        return -errno;
    return status.revents & POLLERR ? -ESRCH : 0;
}

static int separate_mounts(struct keeper_child *child)
{
    (void) child;
    return sys_mount_path_propagate("/", MS_PRIVATE, true);
}

/* A folder for a mount, and the one around it. */
static int make_place(const char *path)
{
    const char *last = strrchr(path, '/');
    size_t length = last ? (size_t) (last - path) : 0;
    char around[LOWER_SIZE] = "";

    if (length == 0 || length >= sizeof(around))
        return -EINVAL;
    memcpy(around, path, length);
    if (mkdir(around, 0755) < 0 && errno != EEXIST)
        return -errno;
    return child_result(mkdir(path, 0700));
}

static int mount_root(struct keeper_child *child)
{
    static const struct sys_mount_option options[] = {
        {"mode", "0755"}, {"size", "64k"}, {"nr_inodes", "192"}, {NULL, NULL}};
    const struct keeper_task_row *task = &tasks[child->task];
    bool has_parts = task->is_tree || task->is_upper || child->delivery.disk_layers > 0;
    const char *const places[KEEPER_MOUNTS_MAX] = {
        [KEEPER_MOUNT_DISK] = task->is_view ? VIEW_UPPER
                              : has_parts   ? STAGE UPPER_OF(DISK_PLACE)
                                            : STAGE DISK_PLACE,
        [KEEPER_MOUNT_BASE] = task->is_tree ? STAGE UPPER_OF(BASE_PLACE) : STAGE BASE_PLACE,
        [KEEPER_MOUNT_TARGET] = STAGE TARGET_PLACE,
    };
    int r = sys_mount_path_new("tmpfs", "tmpfs", STAGE,
                               MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, options);

    for (size_t i = 0; r == 0 && i < KEEPER_MOUNTS_MAX; i++) {
        if (child->mounts[i] < 0)
            continue;
        r = make_place(places[i]);
        if (r == 0)
            r = sys_mount_attach(child->mounts[i], AT_FDCWD, places[i]);
    }
    return r;
}

/* Attach some of the layers beside the upper folder that they lie under, and say where. */
static int attach_stack(const int *layers, size_t count, const char *place,
                        char ret_paths[static KEEPER_PATHS_SIZE])
{
    size_t used = (size_t) snprintf(ret_paths, KEEPER_PATHS_SIZE, "%s/" DISK_UPPER, place);
    int r = 0;

    for (size_t i = 0; r == 0 && i < count; i++) {
        char path[sizeof(STAGE "/disk/00")];

        (void) snprintf(path, sizeof(path), STAGE "%s/%u", place,
                        (unsigned int) (i % DISK_LAYERS_MAX));
        used += (size_t) snprintf(ret_paths + used, KEEPER_PATHS_SIZE - used, ":%s",
                                  path + strlen(STAGE));
        r = make_place(path);
        if (r == 0)
            r = sys_mount_attach(layers[i], AT_FDCWD, path);
    }
    return r;
}

/* Those of a view are its business. */
static int attach_layers(struct keeper_child *child)
{
    const struct keeper_delivery *delivery = &child->delivery;
    int r;

    if (tasks[child->task].is_view)
        return 0;
    r = attach_stack(child->layers, delivery->disk_layers, DISK_PLACE, child->disk);
    return r < 0 ? r
                 : attach_stack(child->layers + delivery->disk_layers, delivery->base_layers,
                                BASE_PLACE, child->base);
}

static int drop_place(const char *place)
{
    int r = sys_mount_unmount(place, SYS_UNMOUNT_DETACH);

    return r < 0 ? r : child_result(rmdir(place));
}

static void name_lower(size_t index, char ret_path[static LOWER_SIZE])
{
    (void) snprintf(ret_path, LOWER_SIZE, VIEW_LOWERS "/%u",
                    (unsigned int) (index % KEEPER_LAYERS_MAX));
}

/* Attach what lies under the view, and say where in the words of overlay. */
static int attach_lowers(const struct keeper_child *child, char *options, size_t size)
{
    size_t used = strlen(options);
    int r = child_result(mkdir(VIEW_LOWERS, 0700));

    for (size_t i = 0; r == 0 && i < child->layer_count; i++) {
        char path[LOWER_SIZE];

        name_lower(i, path);
        if (mkdir(path, 0700) < 0)
            return -errno;
        r = sys_mount_attach(child->layers[i], AT_FDCWD, path);
        used += (size_t) snprintf(options + used, size - used, ":%s", path);
    }
    (void) snprintf(options + used, size - used, ",userxattr");
    return r;
}

static int drop_lowers(const struct keeper_child *child)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < child->layer_count; i++) {
        char path[LOWER_SIZE];

        name_lower(i, path);
        r = drop_place(path);
    }
    return r < 0 ? r : child_result(rmdir(VIEW_LOWERS));
}

/* The overlay has copies of its own of the mounts, so they need not be seen. No redirections and no
 * metadata-only copies: `userxattr` switches off what a stranger could write for overlay to follow.
 */
static int mount_view(struct keeper_child *child)
{
    char options[LOWERS_SIZE + 64] = "lowerdir=" VIEW_UPPER;
    int r;

    if (!tasks[child->task].is_view)
        return 0;
    if (mkdir(STAGE DISK_PLACE, 0700) < 0)
        return -errno;
    r = attach_lowers(child, options, sizeof(options));
    if (r < 0)
        return r;
    r = sys_mount_path_plain("overlay", STAGE DISK_PLACE, "overlay",
                             MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME, options);
    if (r == 0)
        r = drop_place(VIEW_UPPER);
    return r < 0 ? r : drop_lowers(child);
}

static int pivot(struct keeper_child *child)
{
    int r = child_pivot_to(STAGE);

    (void) child;
    if (r < 0)
        return r;
    return sys_mount_path_restrict("/", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                            MOUNT_ATTR_NOEXEC);
}

static int limit_process(struct keeper_child *child)
{
    struct rlimit files = {NOFILE_MAX, NOFILE_MAX}, data = {DATA_MAX, DATA_MAX};
    int r = sys_signal_reset();

    if (r == 0)
        r = process_limits_apply(child->host->limits);
    if (r < 0)
        return r;
    return child_result(setrlimit(RLIMIT_NOFILE, &files) < 0 ? -1 : setrlimit(RLIMIT_DATA, &data));
}

static int give_up_rights(struct keeper_child *child)
{
    int r = capability_confine(keeper_job_capabilities(child->task));

    return r < 0 ? r : sys_process_set_no_new_privileges();
}

/* 0, 1, 2, perhaps the data, then status and program, which exec closes, and perhaps the ring that
 * the keeper closes when it has mapped it; nothing else. */
static int arrange_descriptors(struct keeper_child *child)
{
    /* Those without data have /dev/null in its place, until the others are where they belong. */
    int kept[] = {child->standard[0],
                  child->standard[1],
                  child->standard[2],
                  child->data < 0 ? child->standard[2] : child->data,
                  child->status,
                  child->host->program,
                  child->trace < 0 ? child->standard[2] : child->trace};
    int r;

    _Static_assert(DATA_FD == 3 && STATUS_FD == 4 && KEEPER_PROGRAM_FD == 5 && TRACE_FILE_FD == 6,
                   "the order of it");
    /* A launcher of many sandboxes has more open than a keeper may. */
    r = sys_close_all_but(STDERR_FILENO + 1, kept, ARRAY_COUNT(kept));
    if (r < 0)
        return r;
    r = child_place_descriptors(kept, ARRAY_COUNT(kept), STATUS_FD, 0, SPARE_FD);
    if (r < 0)
        return r;
    child->status = STATUS_FD;
    if (child->data < 0)
        (void) close(DATA_FD);
    if (child->trace < 0)
        (void) close(TRACE_FILE_FD);
    else if (fcntl(TRACE_FILE_FD, F_SETFD, 0) < 0)
        return -errno;
    return sys_close_range(TRACE_FILE_FD + 1, ~0u, false);
}

/* The filter comes last: what follows it is only exec. */
static int exec_keeper(struct keeper_child *child)
{
    static char *const environment[] = {NULL};
    const struct keeper_task_row *task = &tasks[child->task];
    const char *const folders[] = {
        task->is_tree ? child->disk : task->disk,
        !child->has_base ? NULL
        : task->is_tree  ? child->base
                         : task->base,
        task->target,
    };
    const char *arguments[ARRAY_COUNT(folders) + 3] = {"burrow-keeper", task->name};
    size_t count = 2;
    int r = arrange_descriptors(child);

    if (r == 0 && child->host->filter)
        r = seccomp_filter_load(child->host->filter);
    if (r < 0)
        return r;
    for (size_t i = 0; i < ARRAY_COUNT(folders); i++) {
        if (folders[i])
            arguments[count++] = folders[i];
    }
    return child_result(
        syscall(SYS_execveat, KEEPER_PROGRAM_FD, "", arguments, environment, AT_EMPTY_PATH));
}

static const struct {
    const char *text;
    int (*run)(struct keeper_child *child);
} steps[] = {
    {"receive the mounts", receive_mounts},
    {"enter the cgroups", enter_cgroup},
    {"become root of the user namespace", become_root},
    {"tie its life to the launcher's", die_with_launcher},
    {"separate the mounts from the host's", separate_mounts},
    {"make a root", mount_root},
    {"attach the layers of disks", attach_layers},
    {"mount the view", mount_view},
    {"change to the new root", pivot},
    {"set resource limits", limit_process},
    {"give up capabilities", give_up_rights},
    {"start the keeper", exec_keeper},
};

static int run_step(void *child, size_t step)
{
    return steps[step].run(child);
}

static const char *step_text(size_t step)
{
    return steps[step].text;
}

const struct child_steps keeper_child_steps = {ARRAY_COUNT(steps), run_step, step_text, "keeper"};
