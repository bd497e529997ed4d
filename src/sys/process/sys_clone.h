/* A new process, in new namespaces where asked, with a pidfd from its first moment.
 *
 *     int pidfd;
 *     struct sys_clone how = {.flags = CLONE_NEWPID, .exit_signal = SIGCHLD, .ret_pidfd = &pidfd};
 *     pid_t pid = sys_clone(&how);
 *     if (pid == 0)
 *         _exit(child());
 *
 * The child returns 0 on a copy of the caller's stack, as after fork. libc does not know of it:
 * handlers of pthread_atfork do not run and libc keeps the old thread id. Until it execs or exits
 * the child of a program with threads may use async-signal-safe functions only, and no child may
 * use raise, abort or pthread calls, nor leave by exit or return from main. libc's setuid, setgid,
 * setgroups and their kin hang in the child of a program with threads (a sanitizer's own thread
 * counts): they wait for threads that were not copied. Use the system calls there. */
#pragma once

#include <linux/sched.h>
#include <stdint.h>
#include <sys/types.h>

struct sys_clone {
    uint64_t flags;  /* CLONE_NEW..., CLONE_PARENT, CLONE_CLEAR_SIGHAND, CLONE_INTO_CGROUP */
    int exit_signal; /* what the parent gets: SIGCHLD, or 0; must be 0 with CLONE_PARENT */
    int cgroup;      /* with CLONE_INTO_CGROUP: open directory of a cgroup2 group */
    int *ret_pidfd;  /* NULL, or where the parent finds a CLOEXEC pidfd it owns */
    /* NULL, or where the kernel writes the pid before either process goes on: in memory shared with
     * others it is there even when both are killed at once. Not together with ret_pidfd. */
    pid_t *ret_pid;
};

/* Returns the pid in the parent and 0 in the child, or -errno. -EINVAL for flags that share memory
 * (CLONE_VM and its kin): both would run on one stack.
 *
 * Without clone3 the older clone serves, which knows neither CLONE_INTO_CGROUP nor CLONE_NEWTIME
 * nor CLONE_CLEAR_SIGHAND: then -ENOSYS, no child, and the caller may try again without the flag
 * (attach the child to the cgroup by writing cgroup.procs; sys_signal_reset). */
pid_t sys_clone(const struct sys_clone *how);
