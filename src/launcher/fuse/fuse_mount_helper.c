/* The helper: one process that enters a sandbox's mounts, does one thing there and is gone. Between
 * clone and exit it makes system calls and nothing else. */
#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/auto.h"
#include "launcher/child/child_steps.h"
#include "launcher/fuse/fuse_mount.h"
#include "sys/file/sys_file.h"
#include "sys/mount/sys_mount.h"
#include "sys/network/sys_fd_pass.h"
#include "sys/network/sys_socket.h"
#include "sys/process/sys_clone.h"
#include "sys/process/sys_close_range.h"
#include "sys/process/sys_namespace.h"
#include "sys/process/sys_process.h"
#include "sys/process/sys_signal.h"

/* An errno is less, and fits into an exit status. */
#define ERRNO_MAX 255
/* One whose mount was aborted dies at once. */
#define CANCEL_MS 500
/* The maker waits for nobody; a machine under load may. */
#define MAKE_MS 10000

/* As root of the sandbox: what we make in it is its own, and we can do there what it can. */
static int enter(int sandbox)
{
    int r = sys_namespace_enter(sandbox, CLONE_NEWUSER | CLONE_NEWNS);

    (void) umask(022);
    return r < 0 ? r : child_become_root();
}

/* The folder that `place` is in, and its name in there. The sandbox's programs may change what is
 * on the way while we walk: no link is followed, so it stays inside. */
static int open_parent(const char *place, char ret_name[static NAME_MAX + 1])
{
    AUTO(close) int folder = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const char *at = place + strspn(place, "/");

    while (folder >= 0) {
        size_t length = strcspn(at, "/");
        int next;

        if (length > NAME_MAX)
            return -ENAMETOOLONG;
        memcpy(ret_name, at, length);
        ret_name[length] = '\0';
        at += length + strspn(at + length, "/");
        if (!*at)
            return TAKE_FD(folder);
        if (mkdirat(folder, ret_name, 0755) < 0 && errno != EEXIST)
            return -errno;
        next = openat(folder, ret_name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        (void) fd_close(folder);
        folder = next;
    }
    return -errno;
}

/* 1: it is where something is mounted. The server of that is not asked. */
static int is_mount(int folder)
{
    struct statx about;

    if (statx(folder, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &about) < 0)
        return -errno;
    return !!(about.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

static int take_away(int parent, const char *name)
{
    if (fchdir(parent) < 0)
        return -errno;
    return sys_mount_unmount(name, SYS_UNMOUNT_DETACH | SYS_UNMOUNT_NOFOLLOW);
}

static int put(int parent, const char *name, int mount)
{
    AUTO(close) int place = -EBADF;
    int r;

    if (mkdirat(parent, name, 0755) < 0 && errno != EEXIST)
        return -errno;
    place = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (place < 0)
        return -errno;
    r = is_mount(place);
    if (r != 0)
        return r < 0 ? r : -EBUSY;
    return sys_mount_attach(mount, place, "");
}

static int work(const struct fuse_mount_job *job)
{
    AUTO(close) int parent = -EBADF;
    char name[NAME_MAX + 1];
    struct stat stat;
    int r = enter(job->sandbox);

    /* Whether somebody serves it: this waits for the server. */
    if (r == 0 && job->mount >= 0 && fstat(job->mount, &stat) < 0)
        r = -errno;
    if (r == 0)
        r = parent = open_parent(job->place, name);
    if (r >= 0 && job->replaces)
        r = take_away(parent, name);
    if (r >= 0 && job->mount >= 0)
        r = put(parent, name, job->mount);
    return r < 0 ? r : 0;
}

/* In the maker: the server's end is opened where there is a /dev/fuse, by a user of the sandbox,
 * and the filesystem made where that user may mount. The mount of it is left to others: sandboxes
 * may have no namespace for it. */
static int make(int users, int mounts, int socket)
{
    AUTO(close) int server = -EBADF, filesystem = -EBADF;
    int r = sys_namespace_enter(users, CLONE_NEWUSER);

    /* Still with the host's id, where nobody else may open it. */
    if (r == 0)
        r = server = sys_file_open(AT_FDCWD, "/dev/fuse", O_RDWR, 0);
    if (r >= 0)
        r = child_become_root();
    if (r >= 0)
        r = sys_namespace_enter(mounts, CLONE_NEWNS);
    if (r >= 0)
        r = filesystem = fuse_mount_make_filesystem(server);
    if (r >= 0)
        r = (int) sys_fd_pass_send(socket, "f", 1, (const int[]){server, filesystem}, 2);
    return r < 0 ? r : 0;
}

int fuse_mount_make_in(pid_t sandbox, int *ret_server, int *ret_filesystem)
{
    AUTO(close) int users = sys_namespace_open(sandbox, "user");
    AUTO(close) int mounts = users < 0 ? users : sys_namespace_open(sandbox, "mnt");
    AUTO(close) int ours = -EBADF, theirs = -EBADF, helper = -EBADF;
    struct sys_clone how = {.exit_signal = SIGCHLD, .ret_pidfd = &helper};
    struct sys_exit ended = {.kind = SYS_EXIT_UNKNOWN};
    int pair[2], fds[2] = {-EBADF, -EBADF};
    size_t count = 0;
    char byte;
    int r = mounts < 0 ? mounts : sys_socket_pair(SOCK_SEQPACKET, pair);
    pid_t pid;

    if (r < 0)
        return r;
    ours = pair[0];
    theirs = pair[1];
    pid = sys_clone(&how);
    if (pid == 0) {
        (void) sys_signal_reset();
        r = make(users, mounts, theirs);
        _exit(r < 0 && r >= -ERRNO_MAX ? -r : 0);
    }
    r = pid < 0 ? (int) pid : sys_process_wait_or_kill(helper, MAKE_MS, &ended);
    if (r == 0)
        r = ended.kind == SYS_EXIT_STATUS ? -ended.value : -ECANCELED;
    if (r == 0)
        r = (int) sys_fd_pass_receive(ours, &byte, 1, fds, 2, &count);
    if (r >= 0 && count < 2) {
        (void) fd_close(fds[0]);
        r = -EPROTO;
    }
    if (r < 0)
        return r;
    *ret_server = fds[0];
    *ret_filesystem = fds[1];
    return 0;
}

int fuse_mount_start(const struct fuse_mount_job *job, int *ret_helper, struct error *err)
{
    struct sys_clone how = {.exit_signal = SIGCHLD, .ret_pidfd = ret_helper};
    pid_t parent = getpid();
    pid_t pid = sys_clone(&how);

    if (pid == 0) {
        const int kept[] = {job->sandbox, job->mount};
        int r;

        (void) sys_signal_reset();
        (void) sys_process_die_with_parent(SIGKILL, parent);
        /* Above all no copy of anybody's /dev/fuse. */
        r = sys_close_all_but(STDERR_FILENO + 1, kept, job->mount >= 0 ? 2 : 1);
        if (r == 0)
            r = work(job);
        _exit(r < 0 && r >= -ERRNO_MAX ? -r : 0);
    }
    return pid < 0 ? error_set(err, ERR_UNAVAILABLE, pid, "start a helper for a mount") : 0;
}

int fuse_mount_finish(int helper)
{
    struct sys_exit ended = {.kind = SYS_EXIT_UNKNOWN};
    int r = sys_process_wait(helper, 0, &ended);

    if (r < 0)
        return r;
    return ended.kind == SYS_EXIT_STATUS ? -ended.value : -ECANCELED;
}

void fuse_mount_kill(int helper)
{
    (void) sys_process_kill(helper, SIGKILL); /* -ESRCH: it has ended */
}

void fuse_mount_cancel(int helper)
{
    struct sys_exit ended;

    fuse_mount_kill(helper);
    (void) sys_process_wait(helper, CANCEL_MS, &ended);
    (void) fd_close(helper);
}
