#include "sys/sys_probe.h"

#include <errno.h>
#include <linux/sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/auto.h"
#include "sys/file/sys_memfd.h"
#include "sys/process/sys_pty.h"

/* A call that can only fail: any error but ENOSYS shows that the kernel knows it. */
static int probe_call(long result)
{
    return !(result < 0 && errno == ENOSYS);
}

/* The flag is checked before the descriptor, so EBADF means that the kernel knows the flag, and
 * an older one answers E2BIG for the longer structure. */
static int probe_clone_into_cgroup(void)
{
    struct clone_args arguments = {.flags = CLONE_INTO_CGROUP, .cgroup = (unsigned int) -1 >> 1};
    long result = syscall(SYS_clone3, &arguments, sizeof(arguments));

    if (result == 0)
        _exit(0);
    return errno == EBADF;
}

static int probe_memfd_noexec(void)
{
    AUTO(close) int fd = sys_memfd_create("probe", SYS_MEMFD_DATA);
    int seals = fd < 0 ? fd : sys_memfd_get_seals(fd);

    return seals < 0 ? seals : (seals & SYS_MEMFD_SEAL_EXEC) != 0;
}

static int probe_pty_peer(void)
{
    AUTO(close) int control = sys_pty_open_control();
    AUTO(close) int terminal = control < 0 ? control : sys_pty_open_peer(control);

    return control < 0 ? control : terminal >= 0;
}

int sys_probe(enum sys_feature feature)
{
    if (sys_feature_missing(feature))
        return 0;
    switch (feature) {
    case SYS_FEATURE_OPENAT2:
        return probe_call(syscall(SYS_openat2, -1, NULL, NULL, 0));
    case SYS_FEATURE_CLONE3:
        return probe_call(syscall(SYS_clone3, NULL, 0));
    case SYS_FEATURE_CLONE_INTO_CGROUP:
        return probe_clone_into_cgroup();
    case SYS_FEATURE_CLOSE_RANGE:
        return probe_call(syscall(SYS_close_range, 1, 0, 0));
    case SYS_FEATURE_PIDFD_GETFD:
        return probe_call(syscall(SYS_pidfd_getfd, -1, -1, 0));
    case SYS_FEATURE_MOUNT_API:
        return probe_call(syscall(SYS_fsopen, NULL, ~0u));
    case SYS_FEATURE_MOUNT_SETATTR:
        return probe_call(syscall(SYS_mount_setattr, -1, NULL, 0, NULL, 0));
    case SYS_FEATURE_MEMFD_NOEXEC:
        return probe_memfd_noexec();
    case SYS_FEATURE_PTY_PEER:
        return probe_pty_peer();
    case SYS_FEATURE_COUNT:
        break;
    }
    return -EINVAL;
}
