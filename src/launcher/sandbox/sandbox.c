#include "launcher/sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/trace.h"
#include "launcher/network/network_namespace.h"
#include "launcher/sandbox/sandbox_child.h"
#include "sys/file/sys_file.h"
#include "sys/mount/sys_mount.h"
#include "sys/network/sys_fd_pass.h"
#include "sys/network/sys_socket.h"
#include "sys/process/sys_clone.h"
#include "sys/process/sys_namespace.h"
#include "sys/process/sys_process.h"

#define SANDBOX_NAMESPACES                                                                         \
    (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS)
#define KILL_TIMEOUT_MS   5000
#define REMOVE_TIMEOUT_MS 5000

/* What a start that fails half-way has to give back. */
struct starting {
    const struct sandbox_host *host;
    struct sandbox *sandbox;
    bool has_ids, has_cgroup, has_disk;
    bool is_cloned_into; /* the child was born in its v2 group */
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

static int take_disk(struct starting *starting, const struct sandbox_plan *plan, struct error *err)
{
    struct disk_pool *pool = starting->host->pool;

    if (plan->existing_disk) {
        if (disk_pool_adopt(pool, &plan->id, err) < 0)
            return -1;
        return disk_pool_is_limited(pool)
                   ? disk_pool_set_limit(pool, &plan->id, plan->limits.disk_bytes, err)
                   : 0;
    }
    if (disk_pool_create(pool, &plan->id, plan->limits.disk_bytes, err) < 0)
        return -1;
    starting->has_disk = true; /* ours to delete again */
    return 0;
}

/* --- the mounts that need the child's user namespace ---------------------------------------- */

struct mounts {
    int fds[CHILD_MOUNTS_MAX]; /* owned */
    size_t count;
    size_t layer_count; /* of the disk, among them */
};

static void mounts_done(struct mounts *mounts)
{
    for (size_t i = 0; i < mounts->count; i++)
        (void) fd_close(mounts->fds[i]);
    mounts->count = 0;
}

AUTO_DEFINE(mounts, struct mounts, mounts_done);

/* A copy of a mount of the host's. In the host's peer group, which is how the kernel makes it, it
 * would be a way out: what the child mounts beneath it would appear on the host too. */
static int copy_mount(const struct child *child, int folder)
{
    return CHILD_IS_OPEN(child, PRIVATE_MOUNTS) ? sys_mount_copy_in_group(folder, "", false)
                                                : sys_mount_copy(folder, "", false);
}

static int add_copy(const struct child *child, struct mounts *mounts, int folder, bool read_only,
                    int users, struct error *err)
{
    struct sys_mount_attributes change = {
        .set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (read_only ? MOUNT_ATTR_RDONLY : 0),
    };
    int mount = copy_mount(child, folder);
    int r;

    if (mount < 0)
        return error_set(err, ERR_INTERNAL, mount, "copy a mount of the image");
    mounts->fds[mounts->count++] = mount;
    r = sys_mount_set_id_map(mount, users);
    if (r == 0)
        r = sys_mount_change(mount, "", &change);
    return r < 0 ? error_set(err, ERR_INTERNAL, r, "map the ids of the image") : 0;
}

/* What lies beneath the disk's upper folder. */
static int add_layers(struct mounts *mounts, struct disk_pool *pool, const struct id *id, int users,
                      struct error *err)
{
    static const struct sys_mount_attributes change = {.set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                                              MOUNT_ATTR_RDONLY};
    int r = 0;

    if (disk_pool_mount_layers(pool, DISK_POOL_DISKS, id, users, mounts->fds + mounts->count,
                               &mounts->layer_count, err) < 0)
        return -1;
    for (size_t i = 0; i < mounts->layer_count; i++, mounts->count++) {
        if (r == 0)
            r = sys_mount_change(mounts->fds[mounts->count], "", &change);
    }
    return r < 0 ? error_set(err, ERR_INTERNAL, r, "restrict the layers of disk %s", id->text) : 0;
}

static int make_mounts(const struct child *child, int users, struct mounts *mounts,
                       struct error *err)
{
    const struct image_view *image = child->image;
    const struct sandbox_plan *plan = child->plan;

    if (disk_pool_mount_disk(child->host->pool, DISK_POOL_DISKS, &plan->id, NULL, users,
                             &mounts->fds[mounts->count], err) < 0)
        return -1;
    mounts->count++;
    if (add_layers(mounts, child->host->pool, &plan->id, users, err) < 0)
        return -1;
    for (size_t i = 0; i < image->lower_count; i++) {
        if (add_copy(child, mounts, image->lowers[i], true, users, err) < 0)
            return -1;
    }
    for (size_t i = 0; i < image->mount_count; i++) {
        const struct image_mount *part = &image->mounts[i];

        if (part->source >= 0 &&
            add_copy(child, mounts, part->source, part->read_only, users, err) < 0)
            return -1;
    }
    for (size_t i = 0; i < plan->bind_count; i++) {
        if (add_copy(child, mounts, plan->binds[i].source, true, users, err) < 0)
            return error_wrap(err, "bind %s", plan->binds[i].place);
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

/* Let the child go ahead with what needs nothing but its ids. */
static int release_child(const struct sandbox *sandbox, int socket, struct error *err)
{
    ssize_t sent;
    int r;

    if (map_ids(sandbox, err) < 0)
        return -1;
    /* Or it would have the launcher's, which a unit makes as low as that of what must not die. */
    r = process_limit_set_oom_score(sandbox->pid, PROCESS_LIMIT_OOM_SCORE);
    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "rank the sandbox for when memory runs out");
    sent = sys_fd_pass_send(socket, "m", 1, NULL, 0);
    return sent == 1 ? 0 : error_set(err, ERR_INTERNAL, (int) sent, "release the child");
}

static int deliver(int socket, const struct cgroup_entry *entry, const struct mounts *mounts,
                   struct error *err)
{
    struct child_delivery delivery = {.agent_count = (uint8_t) entry->agent_count,
                                      .work_count = (uint8_t) entry->work_count,
                                      .has_oom_kill_count = entry->oom_kill_count >= 0,
                                      .layer_count = (uint8_t) mounts->layer_count,
                                      .mount_count = (uint8_t) mounts->count};
    int fds[CHILD_FDS_MAX];
    size_t count = 0;
    ssize_t sent;

    for (size_t i = 0; i < entry->agent_count; i++)
        fds[count++] = entry->agent[i];
    for (size_t i = 0; i < entry->work_count; i++)
        fds[count++] = entry->work[i];
    if (entry->oom_kill_count >= 0)
        fds[count++] = entry->oom_kill_count;
    for (size_t i = 0; i < mounts->count; i++)
        fds[count++] = mounts->fds[i];
    sent = sys_fd_pass_send(socket, &delivery, sizeof(delivery), fds, count);
    return sent == (ssize_t) sizeof(delivery)
               ? 0
               : error_set(err, ERR_INTERNAL, (int) sent, "send disk and groups to the child");
}

/* Everything else the child waits for; made while it sets up its stage. */
static int serve_child(struct starting *starting, const struct child *child, int socket,
                       struct error *err)
{
    const struct sandbox *sandbox = starting->sandbox;
    AUTO(mounts) struct mounts mounts = {.count = 0};
    AUTO(cgroup_entry) struct cgroup_entry entry = CGROUP_ENTRY_INIT;
    AUTO(close) int users = -EBADF;

    if (cgroup_create_rest(&sandbox->cgroup, &child->plan->limits, err) < 0 ||
        take_disk(starting, child->plan, err) < 0 ||
        cgroup_entry_open(&sandbox->cgroup, starting->is_cloned_into, &entry, err) < 0)
        return -1;
    users = sys_namespace_open(sandbox->pid, "user");
    if (users < 0)
        return error_set(err, ERR_INTERNAL, users, "open the user namespace");
    if (make_mounts(child, users, &mounts, err) < 0)
        return -1;
    return deliver(socket, &entry, &mounts, err);
}

/* Into its v2 group where there is one and the kernel lets us; otherwise the child moves itself. */
static pid_t try_clone(struct child *child, struct starting *starting, int group)
{
    struct sys_clone how = {.flags = SANDBOX_NAMESPACES,
                            .exit_signal = SIGCHLD,
                            .ret_pidfd = &starting->sandbox->pidfd};
    pid_t pid;

    if (CHILD_IS_OPEN(child, NETWORK_OWNER))
        how.flags |= CLONE_NEWNET;
    if (group >= 0) {
        how.flags |= CLONE_INTO_CGROUP;
        how.cgroup = group;
    }
    pid = sys_clone(&how);
    if (pid == 0)
        child_steps_run(&sandbox_child_steps, child, &child->status);
    starting->is_cloned_into = pid > 0 && group >= 0;
    return pid;
}

static int take_network(const struct sandbox_host *host, int *ret_network)
{
    if (!host->network_ahead || *host->network_ahead < 0)
        return network_namespace_make(host->home, ret_network);
    *ret_network = TAKE_FD(*host->network_ahead);
    return 0;
}

/* The child is where its parent is. */
static pid_t clone_into_network(struct child *child, struct starting *starting, int group)
{
    int home = starting->host->home;
    AUTO(close) int network = -EBADF;
    pid_t pid;
    int r;

    if (CHILD_IS_OPEN(child, NETWORK_OWNER))
        return try_clone(child, starting, group);
    r = take_network(starting->host, &network);
    if (r == 0)
        r = network_namespace_enter(network);
    if (r < 0)
        return r;
    pid = try_clone(child, starting, group);
    network_namespace_return(home);
    return pid;
}

static int clone_child(struct child *child, struct starting *starting, int group, struct error *err)
{
    struct sandbox *sandbox = starting->sandbox;
    pid_t pid = clone_into_network(child, starting, group);

    if (pid < 0 && group >= 0)
        pid = clone_into_network(child, starting, -EBADF);
    if (pid < 0)
        return error_set(err, error_code_from_errno(pid), pid, "clone the sandbox");
    sandbox->pid = pid;
    TRACE("launcher.sandbox.cloned");
    return 0;
}

static int start_child(struct starting *starting, const struct sandbox_plan *plan, int listener,
                       struct error *err)
{
    const struct sandbox_host *host = starting->host;
    struct sandbox *sandbox = starting->sandbox;
    AUTO(image_view) struct image_view image = IMAGE_VIEW_INIT;
    AUTO(close) int ours = -EBADF, theirs = -EBADF, status = -EBADF, group = -EBADF;
    AUTO(close) int work = -EBADF;
    struct child child;
    int pair[2], pipe_ends[2];
    int r;

    if (image_open(host->images, plan->image, &image, err) < 0 ||
        cgroup_create_first(host->cgroups, &plan->id, &sandbox->cgroup, &group, err) < 0)
        return -1;
    starting->has_cgroup = true;
    work = cgroup_open_work(&sandbox->cgroup);
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
        .socket = theirs,
        .status = status,
        .listener = listener,
        .shares = -EBADF,
        .their_socket = ours,
        .work_group = work,
    };
    if (clone_child(&child, starting, group, err) < 0 || release_child(sandbox, ours, err) < 0 ||
        serve_child(starting, &child, ours, err) < 0)
        return -1;
    (void) sys_process_start_time(sandbox->pid, &sandbox->started); /* 0: adoption fails */
    return 0;
}

int sandbox_start(const struct sandbox_host *host, const struct sandbox_plan *plan, int listener,
                  struct sandbox *ret_sandbox, struct error *err)
{
    struct sandbox sandbox = SANDBOX_INIT;
    struct starting starting = {.host = host, .sandbox = &sandbox};

    sandbox.id = plan->id;
    TRACE_WITH("launcher.sandbox.start", plan->image);
    starting.has_ids = id_range_take(host->ids, &plan->id, &sandbox.ids, err) == 0;
    if (!starting.has_ids || start_child(&starting, plan, listener, err) < 0 ||
        id_range_hand_over(host->ids, &plan->id, sandbox.pid, err) < 0) {
        undo(&starting);
        return error_wrap(err, "start sandbox %s", plan->id.text);
    }
    *ret_sandbox = sandbox;
    return 0;
}

int sandbox_ready(struct sandbox *sandbox, struct error *err)
{
    bool is_whole;
    int r = child_steps_read(&sandbox_child_steps, sandbox->status, &is_whole, err);

    sandbox->status = fd_close(sandbox->status);
    if (r < 0)
        return error_wrap(err, "sandbox %s", sandbox->id.text);
    return is_whole ? 0
                    : error_set(err, ERR_INTERNAL, 0, "sandbox %s died before its agent started",
                                sandbox->id.text);
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
