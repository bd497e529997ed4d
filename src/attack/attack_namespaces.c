/* New mounts, new namespaces, others' namespaces. All of it would stay inside the sandbox: the way
 * out begins with the kernel code these open up. */
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attack/attack.h"

#define PLACE "/workspace/place"

static int make_place(void)
{
    return mkdir(PLACE, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

static int mount_tmpfs(void)
{
    int r = make_place();

    return r < 0 ? r : attack_result(mount("tmpfs", PLACE, "tmpfs", 0, NULL));
}

static int mount_new_interface(void)
{
    return attack_result(syscall(SYS_fsopen, "tmpfs", 0));
}

static int mount_copy(void)
{
    return attack_result(syscall(SYS_open_tree, AT_FDCWD, "/usr", 1 /* OPEN_TREE_CLONE */));
}

static int mount_group(void)
{
    int r = make_place();

    return r < 0 ? r : attack_result(mount("cgroup2", PLACE, "cgroup2", 0, NULL));
}

/* Uncovers what a mount hides. */
static int unmount_mask(void)
{
    return attack_result(umount2("/sys", MNT_DETACH));
}

static int unshare_user(void)
{
    return attack_result(unshare(CLONE_NEWUSER));
}

static int unshare_mount(void)
{
    return attack_result(unshare(CLONE_NEWNS));
}

static int unshare_network(void)
{
    return attack_result(unshare(CLONE_NEWNET));
}

static int unshare_pid(void)
{
    return attack_result(unshare(CLONE_NEWPID));
}

static int unshare_ipc(void)
{
    return attack_result(unshare(CLONE_NEWIPC));
}

static int unshare_uts(void)
{
    return attack_result(unshare(CLONE_NEWUTS));
}

static int unshare_group(void)
{
    return attack_result(unshare(CLONE_NEWCGROUP));
}

static int end_child(long pid)
{
    if (pid == 0)
        _exit(0);
    if (pid < 0)
        return -errno;
    (void) waitpid((pid_t) pid, NULL, 0);
    return 0;
}

static int clone_user(void)
{
    return end_child(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL));
}

/* The upper half of a register that the kernel takes as an int must not hide a flag. */
static int clone_user_by_upper_half(void)
{
    uint64_t flags = UINT64_C(1) << 32 | CLONE_NEWUSER | SIGCHLD;

    return end_child(syscall(SYS_clone, flags, NULL, NULL, NULL, NULL));
}

static int clone3_user(void)
{
    struct clone_args how = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};

    return end_child(syscall(SYS_clone3, &how, sizeof(how)));
}

static int enter_namespace(void)
{
    int fd = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);

    return fd < 0 ? -errno : attack_result(setns(fd, CLONE_NEWUTS));
}

const struct attack attack_namespaces[] = {
    {"mount_tmpfs", mount_tmpfs},
    {"mount_new_interface", mount_new_interface},
    {"mount_copy", mount_copy},
    {"mount_group", mount_group},
    {"unmount_mask", unmount_mask},
    {"unshare_user", unshare_user},
    {"unshare_mount", unshare_mount},
    {"unshare_network", unshare_network},
    {"unshare_pid", unshare_pid},
    {"unshare_ipc", unshare_ipc},
    {"unshare_uts", unshare_uts},
    {"unshare_group", unshare_group},
    {"clone_user", clone_user},
    {"clone_user_by_upper_half", clone_user_by_upper_half},
    {"clone3_user", clone3_user},
    {"enter_namespace", enter_namespace},
    {NULL, NULL},
};
