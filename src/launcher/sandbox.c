#include "launcher/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/auto.h"
#include "launcher/sandbox_child.h"
#include "sys/sys_clone.h"
#include "sys/sys_fd_pass.h"
#include "sys/sys_file.h"
#include "sys/sys_mount.h"
#include "sys/sys_namespace.h"
#include "sys/sys_process.h"
#include "sys/sys_socket.h"

#define SANDBOX_NAMESPACES                                                                         \
    (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)
#define KILL_TIMEOUT_MS   5000
#define REMOVE_TIMEOUT_MS 5000

/* What a start that fails half-way has to give back. */
struct starting {
    const struct sandbox_host *host;
    struct sandbox *sandbox;
    bool has_ids, has_cgroup, has_disk;
};

static void undo(struct starting *starting)
{
    struct sandbox *sandbox = starting->sandbox;

    /* The first error is the one to tell; what cannot be given back now is found by recovery. */
    if (sandbox->pidfd >= 0)
        (void) sandbox_kill(sandbox, KILL_TIMEOUT_MS, NULL);
    if (starting->has_cgroup)
        (void) cgroup_remove(&sandbox->cgroup, REMOVE_TIMEOUT_MS, NULL);
    if (starting->has_disk)
        (void) disk_pool_delete(starting->host->pool, &sandbox->id, NULL);
    if (starting->has_ids)
        (void) id_range_release(starting->host->ids, &sandbox->id, NULL);
    sandbox_forget(sandbox);
}

static int take_resources(struct starting *starting, const struct sandbox_plan *plan,
                          struct error *err)
{
    const struct sandbox_host *host = starting->host;
    struct sandbox *sandbox = starting->sandbox;

    if (id_range_take(host->ids, &plan->id, &sandbox->ids, err) < 0)
        return -1;
    starting->has_ids = true;
    if (disk_pool_create(host->pool, &plan->id, plan->disk, err) < 0)
        return -1;
    starting->has_disk = true;
    if (cgroup_create(host->cgroups, &plan->id, &plan->limits, &sandbox->cgroup, err) < 0)
        return -1;
    starting->has_cgroup = true;
    return 0;
}

/* --- the mounts that need the child's user namespace ---------------------------------------- */

struct mounts {
    int fds[CHILD_FIXED_COUNT + IMAGE_MOUNTS_MAX]; /* owned */
    size_t count;
};

static void mounts_done(struct mounts *mounts)
{
    for (size_t i = 0; i < mounts->count; i++)
        (void) fd_close(mounts->fds[i]);
    mounts->count = 0;
}

AUTO_DEFINE(mounts, struct mounts, mounts_done);

static int add_copy(struct mounts *mounts, int folder, bool read_only, int users, struct error *err)
{
    struct sys_mount_attributes change = {
        .set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (read_only ? MOUNT_ATTR_RDONLY : 0),
    };
    int mount = sys_mount_copy(folder, "", false);
    int r;

    if (mount < 0)
        return error_set(err, ERR_INTERNAL, mount, "copy a mount of the image");
    mounts->fds[mounts->count++] = mount;
    r = sys_mount_set_id_map(mount, users);
    if (r == 0)
        r = sys_mount_change(mount, "", &change);
    return r < 0 ? error_set(err, ERR_INTERNAL, r, "map the ids of the image") : 0;
}

static int make_mounts(const struct sandbox_host *host, const struct id *id,
                       const struct image_view *image, int users, struct mounts *mounts,
                       struct error *err)
{
    if (add_copy(mounts, image->lower, true, users, err) < 0)
        return -1;
    if (disk_pool_mount_disk(host->pool, id, users, &mounts->fds[mounts->count], err) < 0)
        return -1;
    mounts->count++;
    for (size_t i = 0; i < image->mount_count; i++) {
        const struct image_mount *part = &image->mounts[i];

        if (part->source >= 0 && add_copy(mounts, part->source, part->read_only, users, err) < 0)
            return -1;
    }
    return 0;
}

/* --- the parent's half ---------------------------------------------------------------------- */

static int map_ids(const struct sandbox *sandbox, struct error *err)
{
    struct sys_id_range range = {
        .inside = 0, .outside = sandbox->ids.first, .count = sandbox->ids.count};
    int r = sys_namespace_map_users(sandbox->pid, &range, 1);

    if (r == 0)
        r = sys_namespace_map_groups(sandbox->pid, &range, 1);
    return r < 0 ? error_set(err, ERR_INTERNAL, r, "map the ids of the sandbox") : 0;
}

/* Everything the child waits for. */
static int serve_child(const struct sandbox_host *host, struct sandbox *sandbox,
                       const struct image_view *image, int socket, struct error *err)
{
    AUTO(mounts) struct mounts mounts = {.count = 0};
    AUTO(close) int users = -EBADF;
    ssize_t sent;

    if (map_ids(sandbox, err) < 0)
        return -1;
    users = sys_namespace_open(sandbox->pid, "user");
    if (users < 0)
        return error_set(err, ERR_INTERNAL, users, "open the user namespace");
    if (make_mounts(host, &sandbox->id, image, users, &mounts, err) < 0)
        return -1;
    sent = sys_fd_pass_send(socket, "m", 1, mounts.fds, mounts.count);
    if (sent != 1)
        return error_set(err, ERR_INTERNAL, (int) sent, "send the mounts to the child");
    return 0;
}

static int clone_child(struct child *child, struct sandbox *sandbox, struct error *err)
{
    struct sys_clone how = {
        .flags = SANDBOX_NAMESPACES, .exit_signal = SIGCHLD, .ret_pidfd = &sandbox->pidfd};
    pid_t pid = sys_clone(&how);

    if (pid == 0)
        child_run(child);
    if (pid < 0)
        return error_set(err, error_code_from_errno(pid), pid, "clone the sandbox");
    sandbox->pid = pid;
    (void) sys_process_start_time(pid, &sandbox->started); /* 0: adoption will not know it */
    return 0;
}

static int start_child(struct starting *starting, const struct sandbox_plan *plan, int listener,
                       struct error *err)
{
    const struct sandbox_host *host = starting->host;
    struct sandbox *sandbox = starting->sandbox;
    AUTO(image_view) struct image_view image = IMAGE_VIEW_INIT;
    AUTO(cgroup_entry) struct cgroup_entry entry = CGROUP_ENTRY_INIT;
    AUTO(close) int ours = -EBADF, theirs = -EBADF, status = -EBADF;
    struct child child;
    int pair[2], pipe_ends[2];
    int r;

    if (image_open(host->images, plan->image, &image, err) < 0 ||
        cgroup_entry_open(&sandbox->cgroup, false, &entry, err) < 0)
        return -1;
    r = sys_socket_pair(SOCK_SEQPACKET, pair);
    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "make a socket for the child");
    ours = pair[0];
    theirs = pair[1];
    if (pipe2(pipe_ends, O_CLOEXEC) < 0)
        return error_set(err, ERR_INTERNAL, errno, "make a pipe for the child");
    sandbox->status = pipe_ends[0];
    status = pipe_ends[1];
    child = (struct child){
        .host = host,
        .plan = plan,
        .image = &image,
        .entry = entry,
        .socket = theirs,
        .status = status,
        .listener = listener,
    };
    if (clone_child(&child, sandbox, err) < 0)
        return -1;
    return serve_child(host, sandbox, &image, ours, err);
}

int sandbox_start(const struct sandbox_host *host, const struct sandbox_plan *plan, int listener,
                  struct sandbox *ret_sandbox, struct error *err)
{
    struct sandbox sandbox = SANDBOX_INIT;
    struct starting starting = {.host = host, .sandbox = &sandbox};

    sandbox.id = plan->id;
    if (take_resources(&starting, plan, err) < 0 ||
        start_child(&starting, plan, listener, err) < 0 ||
        id_range_hand_over(host->ids, &plan->id, sandbox.pid, err) < 0) {
        undo(&starting);
        return error_wrap(err, "start sandbox %s", plan->id.text);
    }
    *ret_sandbox = sandbox;
    return 0;
}

int sandbox_ready(struct sandbox *sandbox, struct error *err)
{
    struct child_failure failure;
    ssize_t got = sys_file_read_full(sandbox->status, &failure, sizeof(failure));

    sandbox->status = fd_close(sandbox->status);
    if (got == 0)
        return 0; /* the pipe closed on exec */
    if (got != (ssize_t) sizeof(failure))
        return error_set(err, ERR_INTERNAL, got < 0 ? (int) got : 0,
                         "sandbox %s died before its agent started", sandbox->id.text);
    return error_set(err, ERR_INTERNAL, failure.error, "sandbox %s: %s", sandbox->id.text,
                     child_step_text(failure.step));
}

int sandbox_kill(struct sandbox *sandbox, int timeout_ms, struct error *err)
{
    struct sys_exit ended;
    int r = sys_process_kill(sandbox->pidfd, SIGKILL);

    /* The kernel kills a pid namespace with its PID 1, frozen or not. */
    if (r < 0 && r != -ESRCH)
        return error_set(err, ERR_INTERNAL, r, "kill sandbox %s", sandbox->id.text);
    r = sys_process_wait(sandbox->pidfd, timeout_ms, &ended);
    if (r < 0 && r != -ECHILD)
        return error_set(err, ERR_INTERNAL, r, "wait for sandbox %s", sandbox->id.text);
    return 0;
}

int sandbox_remove(const struct sandbox_host *host, struct sandbox *sandbox, bool keep_disk,
                   struct error *err)
{
    if (cgroup_remove(&sandbox->cgroup, REMOVE_TIMEOUT_MS, err) < 0)
        return -1;
    if (!keep_disk && disk_pool_delete(host->pool, &sandbox->id, err) < 0)
        return -1;
    return id_range_release(host->ids, &sandbox->id, err);
}

void sandbox_forget(struct sandbox *sandbox)
{
    sandbox->pidfd = fd_close(sandbox->pidfd);
    sandbox->status = fd_close(sandbox->status);
}
