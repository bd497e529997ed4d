#include "sys/process/sys_clone.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "sys/sys_call.h"

#define FLAGS_KNOWN                                                                                \
    (CLONE_NEWCGROUP | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWTIME |  \
     CLONE_NEWUSER | CLONE_NEWUTS | CLONE_PARENT | CLONE_CLEAR_SIGHAND | CLONE_INTO_CGROUP)

/* CLONE_NEWTIME lies within the bits where clone takes the exit signal, the others above 32. */
#define FLAGS_ONLY_CLONE3 (CLONE_NEWTIME | CLONE_CLEAR_SIGHAND | CLONE_INTO_CGROUP)

static pid_t clone_new(const struct sys_clone *how, int *pidfd)
{
    struct clone_args arguments = {
        .flags = how->flags | (pidfd ? CLONE_PIDFD : 0) | (how->ret_pid ? CLONE_PARENT_SETTID : 0),
        .exit_signal = (unsigned int) how->exit_signal,
        .pidfd = (uintptr_t) pidfd,
        .parent_tid = (uintptr_t) how->ret_pid,
    };
    pid_t result = sys_call_fault_or_missing(SYS_FEATURE_CLONE3);

    if (result < 0)
        return result;
    if (how->flags & CLONE_INTO_CGROUP) {
        if (sys_feature_missing(SYS_FEATURE_CLONE_INTO_CGROUP))
            return -ENOSYS;
        arguments.cgroup = (unsigned int) how->cgroup;
    }
    return sys_call_result(syscall(SYS_clone3, &arguments, sizeof(arguments)));
}

static pid_t clone_old(const struct sys_clone *how, int *pidfd)
{
    unsigned long flags = (unsigned long) how->flags | (unsigned long) how->exit_signal;

    if (how->flags & FLAGS_ONLY_CLONE3)
        return -ENOSYS;
    if (pidfd)
        flags |= CLONE_PIDFD;
    if (how->ret_pid)
        flags |= CLONE_PARENT_SETTID;
    /* One argument for both, which is why they are refused together. */
    return sys_call_result(
        syscall(SYS_clone, flags, NULL, pidfd ? pidfd : how->ret_pid, NULL, NULL));
}

pid_t sys_clone(const struct sys_clone *how)
{
    int pidfd = -EBADF;
    int *wanted = how->ret_pidfd ? &pidfd : NULL;
    pid_t result;

    if (how->flags & ~(uint64_t) FLAGS_KNOWN || how->exit_signal < 0 || how->exit_signal > 64)
        return -EINVAL;
    if (how->ret_pid && how->ret_pidfd)
        return -EINVAL;
    if (how->flags & CLONE_PARENT && how->exit_signal)
        return -EINVAL; /* clone3 says so, clone would quietly use the caller's own */
    result = clone_new(how, wanted);
    if (result == -ENOSYS)
        result = clone_old(how, wanted);
    if (result > 0 && wanted)
        *how->ret_pidfd = pidfd;
    return result;
}
