#include "launcher/host/host_mounts.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "sys/file/sys_file.h"
#include "sys/mount/sys_mount.h"
#include "sys/mount/sys_mount_path.h"
#include "sys/process/sys_clone.h"
#include "sys/process/sys_namespace.h"
#include "sys/process/sys_process.h"
#include "sys/process/sys_signal.h"

/* An errno is less, and fits into an exit status. */
#define ERRNO_MAX 255

int host_mounts_leave(struct host_mounts *ret_host, struct error *err)
{
    AUTO(host_mounts) struct host_mounts host = HOST_MOUNTS_INIT;
    int r = host.namespace = sys_namespace_open(0, "mnt");

    if (r >= 0)
        r = host.root = sys_file_open(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0);
    if (r >= 0)
        r = sys_mount_path_separate();
    if (r < 0)
        return error_set(err, ERR_UNAVAILABLE, r, "make a mount namespace of our own");
    ret_host->namespace = TAKE_FD(host.namespace);
    ret_host->root = TAKE_FD(host.root);
    return 0;
}

void host_mounts_done(struct host_mounts *host)
{
    host->namespace = fd_close(host->namespace);
    host->root = fd_close(host->root);
}

int host_mounts_open_folder(const struct host_mounts *host, const char *path)
{
    const char *beneath = path + strspn(path, "/");

    if (!host)
        return sys_file_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    return sys_file_open(host->root, *beneath ? beneath : ".", O_RDONLY | O_DIRECTORY, 0);
}

/* --- mounting there -------------------------------------------------------------------------- */

struct errand {
    const struct host_mounts *host;
    const char *path;
    int mount; /* to be attached; -EBADF: take away what is there */
};

static int run_errand(const struct errand *errand)
{
    int r = errand->host ? sys_namespace_enter(errand->host->namespace, CLONE_NEWNS) : 0;

    if (r < 0)
        return r;
    if (errand->mount >= 0)
        return sys_mount_attach(errand->mount, AT_FDCWD, errand->path);
    return sys_mount_unmount(errand->path, SYS_UNMOUNT_DETACH | SYS_UNMOUNT_NOFOLLOW);
}

/* In a process of its own: entering a mount namespace changes root and working folder for good. */
static int send_errand(const struct errand *errand)
{
    AUTO(close) int pidfd = -EBADF;
    struct sys_clone how = {.exit_signal = SIGCHLD, .ret_pidfd = &pidfd};
    struct sys_exit ended = {.kind = SYS_EXIT_UNKNOWN};
    pid_t pid = sys_clone(&how);
    int r;

    if (pid == 0) {
        (void) sys_signal_reset();
        r = run_errand(errand);
        _exit(r < 0 && r >= -ERRNO_MAX ? -r : 0);
    }
    r = pid < 0 ? (int) pid : sys_process_wait(pidfd, -1, &ended);
    if (r < 0)
        return r;
    return ended.kind == SYS_EXIT_STATUS ? -ended.value : -ECANCELED;
}

int host_mounts_keep_namespace(const struct host_mounts *host, int fd, const char *path)
{
    AUTO(close) int mount = -EBADF;
    struct statfs filesystem;

    if (fstatfs(fd, &filesystem) < 0)
        return -errno;
    if (filesystem.f_type != NSFS_MAGIC)
        return -EINVAL;
    mount = sys_mount_copy(fd, "", false);
    return mount < 0 ? mount
                     : send_errand(&(struct errand){.host = host, .path = path, .mount = mount});
}

int host_mounts_drop_namespace(const struct host_mounts *host, const char *path)
{
    return send_errand(&(struct errand){.host = host, .path = path, .mount = -EBADF});
}
