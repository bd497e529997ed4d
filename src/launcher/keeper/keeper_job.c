#include "launcher/keeper/keeper_job.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/trace.h"
#include "launcher/keeper/keeper_child.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_memfd.h"
#include "sys/mount/sys_mount.h"
#include "sys/network/sys_fd_pass.h"
#include "sys/network/sys_socket.h"
#include "sys/process/sys_clone.h"
#include "sys/process/sys_namespace.h"

/* The seventh, for cgroups, is made by the child once it is in its group. */
#define KEEPER_NAMESPACES                                                                          \
    (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)
#define REAP_TIMEOUT_MS   5000
#define REMOVE_TIMEOUT_MS 1000

/* --- the mounts that need the child's user namespace ---------------------------------------- */

struct keeper_mounts {
    int fds[KEEPER_MOUNTS_MAX + KEEPER_LAYERS_MAX]; /* owned */
    size_t count;
    struct keeper_delivery delivery;
};

static void keeper_mounts_done(struct keeper_mounts *mounts)
{
    for (size_t i = 0; i < mounts->count; i++)
        (void) fd_close(mounts->fds[i]);
    mounts->count = 0;
}

AUTO_DEFINE(keeper_mounts, struct keeper_mounts, keeper_mounts_done);

/* Reading leaves no traces: noatime. */
static int restrict_mount(int mount, bool writes)
{
    struct sys_mount_attributes change = {
        .set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NOATIME |
               (writes ? 0 : MOUNT_ATTR_RDONLY),
        .clear = MOUNT_ATTR__ATIME,
    };

    return sys_mount_change(mount, "", &change);
}

static int add_disk(const struct keeper_host *host, const struct keeper_disk *disk,
                    const char *part, bool writes, int users, struct keeper_mounts *mounts,
                    struct error *err)
{
    int mount, r;

    if (disk_pool_mount_disk(host->pool, disk->set, &disk->id, part, users, &mount, err) < 0)
        return -1;
    mounts->fds[mounts->count++] = mount;
    r = restrict_mount(mount, writes);
    return r < 0 ? error_set(err, ERR_INTERNAL, r, "restrict the mount of disk %s", disk->id.text)
                 : 0;
}

/* What lies beneath the upper folder of a disk. */
static int add_layers(const struct keeper_host *host, const struct keeper_disk *disk, int users,
                      struct keeper_mounts *mounts, uint8_t *ret_count, struct error *err)
{
    size_t first = mounts->count, count = 0;
    int r = 0;

    if (disk_pool_mount_layers(host->pool, disk->set, &disk->id, users, mounts->fds + first, &count,
                               err) < 0)
        return -1;
    mounts->count += count;
    for (size_t i = 0; r == 0 && i < count; i++)
        r = restrict_mount(mounts->fds[first + i], false);
    *ret_count = (uint8_t) count;
    return r < 0 ? error_set(err, ERR_INTERNAL, r, "restrict a layer of disk %s", disk->id.text)
                 : 0;
}

/* One of the layers of the image. */
static int add_lower(int lower, int users, struct keeper_mounts *mounts)
{
    struct sys_mount_attributes change = {.set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                                 MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY};
    int mount = sys_mount_copy(lower, "", false);
    int r;

    if (mount < 0)
        return mount;
    mounts->fds[mounts->count++] = mount;
    r = sys_mount_set_id_map(mount, users);
    return r < 0 ? r : sys_mount_change(mount, "", &change);
}

/* What lies under a view. */
static int add_image(const struct keeper_host *host, const char *image, int users,
                     struct keeper_mounts *mounts, struct error *err)
{
    AUTO(image_view) struct image_view view = IMAGE_VIEW_INIT;
    int r = 0;

    if (!host->images)
        return error_set(err, ERR_NOT_IMPLEMENTED, 0, "there are no images here");
    if (image_open(host->images, image, &view, err) < 0)
        return -1;
    for (size_t i = 0; r == 0 && i < view.lower_count; i++)
        r = add_lower(view.lowers[i], users, mounts);
    return r < 0 ? error_set(err, ERR_INTERNAL, r, "restrict the mount of image %s", image) : 0;
}

static int add_folder(int folder, bool writes, int users, struct keeper_mounts *mounts,
                      struct error *err)
{
    int mount, r;

    if (folder < 0)
        return 0;
    mount = sys_mount_copy(folder, "", false);
    if (mount < 0)
        return error_set(err, ERR_INTERNAL, mount, "copy the mount of a folder");
    mounts->fds[mounts->count++] = mount;
    r = sys_mount_set_id_map(mount, users);
    if (r == 0)
        r = restrict_mount(mount, writes);
    return r < 0 ? error_set(err, ERR_INTERNAL, r,
                             "restrict the mount of a folder (a file system without id maps?)")
                 : 0;
}

static int add_folders(const struct keeper_folders *folders, int users,
                       struct keeper_mounts *mounts, struct error *err)
{
    if (add_folder(folders->disk, false, users, mounts, err) < 0 ||
        add_folder(folders->base, false, users, mounts, err) < 0)
        return -1;
    return add_folder(folders->target, true, users, mounts, err);
}

/* In the order of enum keeper_mount, then the image. */
static int add_mounts(const struct keeper_host *host, const struct keeper_spec *spec, int users,
                      struct keeper_mounts *mounts, struct error *err)
{
    const struct keeper_task_row *task = keeper_task_row(spec->task);
    bool has_layers = task->is_tree || task->is_view;
    /* The folder itself, which may become a layer meanwhile. */
    const char *part = has_layers || task->is_upper ? DISK_UPPER : NULL;
    struct keeper_delivery *delivery = &mounts->delivery;

    if (task->has_folders)
        return add_folders(spec->folders, users, mounts, err);
    if (task->disk && add_disk(host, &spec->disk, part, task->writes, users, mounts, err) < 0)
        return -1;
    if (spec->base.id.text[0] && add_disk(host, &spec->base, part, false, users, mounts, err) < 0)
        return -1;
    if (task->target && add_disk(host, &spec->target, NULL, true, users, mounts, err) < 0)
        return -1;
    if ((has_layers || spec->task == KEEPER_MEASURE) &&
        add_layers(host, &spec->disk, users, mounts, &delivery->disk_layers, err) < 0)
        return -1;
    if (has_layers && spec->base.id.text[0] &&
        add_layers(host, &spec->base, users, mounts, &delivery->base_layers, err) < 0)
        return -1;
    return task->is_view ? add_image(host, spec->image, users, mounts, err) : 0;
}

static int map_ids(pid_t pid, const struct id_range *ids, struct error *err)
{
    struct sys_id_range range = {.inside = 0, .outside = ids->first, .count = ids->count};
    int r = sys_namespace_map_users(pid, &range, 1);

    if (r == 0)
        r = sys_namespace_map_groups(pid, &range, 1);
    return r < 0 ? error_set(err, ERR_INTERNAL, r, "map the ids of the keeper") : 0;
}

/* Everything the child waits for. */
static int serve_child(const struct keeper_host *host, const struct keeper_spec *spec, pid_t pid,
                       const struct id_range *ids, int socket, struct error *err)
{
    AUTO(keeper_mounts) struct keeper_mounts mounts = {.count = 0};
    AUTO(close) int users = -EBADF;
    ssize_t sent;

    if (map_ids(pid, ids, err) < 0)
        return -1;
    users = sys_namespace_open(pid, "user");
    if (users < 0)
        return error_set(err, ERR_INTERNAL, users, "open the user namespace");
    if (add_mounts(host, spec, users, &mounts, err) < 0)
        return -1;
    sent = sys_fd_pass_send(socket, &mounts.delivery, sizeof(mounts.delivery), mounts.fds,
                            mounts.count);
    if (sent != (ssize_t) sizeof(mounts.delivery))
        return error_set(err, ERR_INTERNAL, (int) sent, "send the mounts to the child");
    return 0;
}

/* --- the parent's half ---------------------------------------------------------------------- */

static int give_back(const struct keeper_host *host, struct keeper_job *job, struct error *err)
{
    if (job->has_cgroup && cgroup_remove(&job->cgroup, REMOVE_TIMEOUT_MS, err) < 0)
        return -1; /* while the group is there, recovery takes the job for alive, ids and all */
    return id_range_release(host->ids, &job->id, err);
}

static void forget(struct keeper_job *job)
{
    job->pidfd = fd_close(job->pidfd);
    job->status = fd_close(job->status);
    job->trace = fd_close(job->trace);
}

static void undo(const struct keeper_host *host, struct keeper_job *job)
{
    struct sys_exit ended;

    if (job->pidfd >= 0) {
        keeper_job_cancel(job);
        (void) sys_process_wait(job->pidfd, REAP_TIMEOUT_MS, &ended);
    }
    /* The first error is the one to tell. */
    (void) give_back(host, job, NULL);
    forget(job);
}

static int make_group(const struct keeper_host *host, const struct keeper_spec *spec,
                      struct keeper_job *job, struct cgroup_entry *entry, struct error *err)
{
    const struct limits *limits = &spec->limits;

    if (!host->cgroups || (!limits->memory_bytes && !limits->pids && !limits->cpu_millis))
        return 0;
    if (cgroup_create(host->cgroups, &job->id, limits, &job->cgroup, err) < 0)
        return -1;
    job->has_cgroup = true;
    return cgroup_entry_open(&job->cgroup, false, entry, err);
}

/* The keeper writes to it, and we read it as what a stranger wrote; its size is certain. Without it
 * a job runs as well. */
static int make_ring(void)
{
    AUTO(close) int fd = sys_memfd_create("trace", SYS_MEMFD_DATA);

    if (fd < 0 || ftruncate(fd, TRACE_FILE_SIZE(KEEPER_TRACE_ENTRIES)) < 0 ||
        sys_memfd_add_seals(fd, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW) < 0)
        return -EBADF;
    return TAKE_FD(fd);
}

static int clone_child(struct keeper_child *child, struct keeper_job *job, struct error *err)
{
    struct sys_clone how = {
        .flags = KEEPER_NAMESPACES, .exit_signal = SIGCHLD, .ret_pidfd = &job->pidfd};
    pid_t pid = sys_clone(&how);

    if (pid == 0)
        child_steps_run(&keeper_child_steps, child, &child->status);
    if (pid < 0)
        return error_set(err, error_code_from_errno(pid), pid, "clone the keeper");
    job->pid = pid;
    TRACE_WITH("launcher.keeper.cloned", keeper_task_row(child->task)->name);
    return 0;
}

/* The channels between the two, in `child` and `job`; the child's ends are the caller's to close.
 */
static int make_channels(struct keeper_job *job, int *ret_ours, int *ret_theirs, int *ret_status,
                         struct error *err)
{
    int pair[2], ends[2];
    int r = sys_socket_pair(SOCK_SEQPACKET, pair);

    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "make a socket for the keeper");
    *ret_ours = pair[0];
    *ret_theirs = pair[1];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_set(err, ERR_INTERNAL, errno, "make a pipe for the keeper");
    job->status = ends[0];
    *ret_status = ends[1];
    return 0;
}

static int start_child(const struct keeper_host *host, const struct keeper_spec *spec,
                       const struct keeper_streams *streams, const struct id_range *ids,
                       struct keeper_job *job, struct error *err)
{
    AUTO(cgroup_entry) struct cgroup_entry entry = CGROUP_ENTRY_INIT;
    AUTO(close) int ours = -EBADF, theirs = -EBADF, status = -EBADF;
    AUTO(close) int null = sys_file_open(AT_FDCWD, "/dev/null", O_RDWR, 0);
    struct keeper_child child;

    if (null < 0)
        return error_set(err, ERR_INTERNAL, null, "open /dev/null");
    if (make_group(host, spec, job, &entry, err) < 0 ||
        make_channels(job, &ours, &theirs, &status, err) < 0)
        return -1;
    child = (struct keeper_child){
        .host = host,
        .task = spec->task,
        .entry = entry,
        .socket = theirs,
        .status = status,
        .launcher = {ours, job->status},
        .standard = {streams->input < 0 ? null : streams->input,
                     streams->output < 0 ? null : streams->output, null},
        .data = -EBADF,
        .trace = job->trace = make_ring(),
        .has_base = spec->base.id.text[0] || (spec->folders && spec->folders->base >= 0),
    };
    if (keeper_job_has_data(spec->task))
        child.data = streams->data < 0 ? null : streams->data;
    if (clone_child(&child, job, err) < 0)
        return -1;
    return serve_child(host, spec, job->pid, ids, ours, err);
}

static int check(const struct keeper_spec *spec, struct error *err)
{
    bool has_disk = spec->disk.id.text[0], has_base = spec->base.id.text[0];
    bool has_target = spec->target.id.text[0];
    const struct keeper_task_row *task;

    if ((unsigned int) spec->task >= KEEPER_TASK_COUNT)
        return error_set(err, ERR_INVALID, 0, "no such keeper job");
    task = keeper_task_row(spec->task);
    if (task->has_folders != (spec->folders != NULL))
        return error_set(err, ERR_INVALID, 0, "a job '%s' works on other things", task->name);
    if (spec->folders) {
        has_disk = spec->folders->disk >= 0;
        has_base = spec->folders->base >= 0;
        has_target = spec->folders->target >= 0;
    }
    if (has_disk != (task->disk != NULL) || has_target != (task->target != NULL) ||
        (has_base ? !task->base : task->base && !task->may_lack_base) ||
        (task->is_view && !spec->image))
        return error_set(err, ERR_INVALID, 0, "these are not the disks of a job '%s'", task->name);
    if (!spec->folders && has_disk && has_target && spec->disk.set == spec->target.set &&
        strcmp(spec->disk.id.text, spec->target.id.text) == 0)
        return error_set(err, ERR_INVALID, 0, "a disk cannot be copied onto itself");
    return 0;
}

int keeper_job_start(const struct keeper_host *host, const struct keeper_spec *spec,
                     const struct keeper_streams *streams, struct keeper_job *ret_job,
                     struct error *err)
{
    struct keeper_job job = KEEPER_JOB_INIT;
    struct id_range ids;

    if (check(spec, err) < 0)
        return -1;
    job.id = id_new();
    if (id_range_take(host->ids, &job.id, &ids, err) < 0)
        return error_wrap(err, "start a keeper");
    if (start_child(host, spec, streams, &ids, &job, err) < 0 ||
        id_range_hand_over(host->ids, &job.id, job.pid, err) < 0) {
        undo(host, &job);
        return error_wrap(err, "start a keeper");
    }
    *ret_job = job;
    return 0;
}

void keeper_job_cancel(struct keeper_job *job)
{
    (void) sys_process_kill(job->pidfd, SIGKILL); /* fails only when it has ended */
}

int keeper_job_finish(const struct keeper_host *host, struct keeper_job *job,
                      struct sys_exit *ret_exit, struct error *err)
{
    struct sys_exit ended = {0};
    int started, r = sys_process_wait(job->pidfd, 0, &ended);

    if (r == -ETIMEDOUT)
        return error_set(err, ERR_CONFLICT, 0, "the keeper still runs");
    started = child_steps_read(&keeper_child_steps, job->status, NULL, err);
    if (started < 0)
        (void) error_wrap(err, "keeper");
    if (job->trace >= 0)
        trace_collect(job->trace, KEEPER_TRACE_ENTRIES, "keeper");
    TRACE(started < 0 ? "launcher.keeper.failed" : "launcher.keeper.ended");
    /* An error of the job itself goes before one of tidying up. */
    if (give_back(host, job, started < 0 ? NULL : err) < 0)
        started = -1;
    forget(job);
    if (started < 0)
        return -1;
    *ret_exit = ended; /* reaped by somebody else: unknown */
    return 0;
}
