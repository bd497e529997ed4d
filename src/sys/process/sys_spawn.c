#include "sys/process/sys_spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/auto.h"
#include "sys/file/sys_file.h"
#include "sys/process/sys_clone.h"
#include "sys/process/sys_close_range.h"
#include "sys/process/sys_process.h"
#include "sys/process/sys_pty.h"
#include "sys/process/sys_signal.h"
#include "sys/sys_call.h"

/* No program of ours is given higher numbers than this. */
#define TARGET_MAX 1023

/* stdin, stdout, stderr */
#define STANDARD_COUNT 3

static int sys_spawn_check(const struct sys_spawn *how)
{
    if (how->descriptor_count > SYS_SPAWN_DESCRIPTORS_MAX)
        return -EINVAL;
    for (size_t i = 0; i < how->descriptor_count; i++) {
        int to = how->descriptors[i].to;

        if (how->descriptors[i].from < 0 || to < 0 || to > TARGET_MAX)
            return -EINVAL;
        for (size_t j = 0; j < i; j++) {
            if (how->descriptors[j].to == to)
                return -EINVAL;
        }
    }
    return 0;
}

static bool names_target(const struct sys_spawn *how, int to)
{
    for (size_t i = 0; i < how->descriptor_count; i++) {
        if (how->descriptors[i].to == to)
            return true;
    }
    return false;
}

/* The lowest number above all targets, where sources are parked so that none is overwritten. */
static int parking_place(const struct sys_spawn *how)
{
    int place = STANDARD_COUNT;

    for (size_t i = 0; i < how->descriptor_count; i++) {
        if (how->descriptors[i].to >= place)
            place = how->descriptors[i].to + 1;
    }
    return place;
}

static int duplicate_above(int fd, int lowest)
{
    return sys_call_result(fcntl(fd, F_DUPFD_CLOEXEC, lowest));
}

/* dup2 may be interrupted only while it closes something slow; the descriptor is then unchanged. */
static int place(int from, int to)
{
    int result;

    do
        result = sys_call_result(dup2(from, to));
    while (result == -EINTR);
    return result;
}

static int place_standard(const struct sys_spawn *how, int lowest)
{
    int null = sys_file_open(AT_FDCWD, "/dev/null", O_RDWR | O_NOCTTY, 0);
    int result = null < 0 ? null : duplicate_above(null, lowest);

    if (result < 0)
        return result;
    null = result;
    for (int to = 0; to < STANDARD_COUNT; to++) {
        if (!names_target(how, to))
            result = place(null, to);
        if (result < 0)
            return result;
    }
    return 0;
}

static int place_descriptors(const struct sys_spawn *how)
{
    int parked[SYS_SPAWN_DESCRIPTORS_MAX];
    int lowest = parking_place(how);
    int result;

    for (size_t i = 0; i < how->descriptor_count; i++) {
        parked[i] = duplicate_above(how->descriptors[i].from, lowest);
        if (parked[i] < 0)
            return parked[i];
    }
    result = place_standard(how, lowest);
    for (size_t i = 0; result >= 0 && i < how->descriptor_count; i++)
        result = place(parked[i], how->descriptors[i].to);
    return result;
}

/* Plain calls: libc's would tell threads that this child does not have. For root becoming another
 * user the kernel takes all capabilities away. */
static int become_user(const struct sys_spawn_user *user)
{
    /* Until the kernel knows no higher one. */
    for (int capability = 0; prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0; capability++)
        ;
    if (syscall(SYS_setgroups, 0, NULL) < 0 ||
        syscall(SYS_setresgid, user->group, user->group, user->group) < 0 ||
        syscall(SYS_setresuid, user->user, user->user, user->user) < 0)
        return -errno;
    return sys_process_set_no_new_privileges();
}

/* Who starts it. */
struct parent {
    pid_t pid;
    int pidfd;    /* only where the child cannot see the pid; else -EBADF */
    int mapped;   /* a byte comes when the ids of the child are mapped; -EBADF: they are ours */
    int mapped_w; /* the parent's end */
};

/* The parent maps the ids: nothing can be done before that. */
static int become_root(const struct parent *parent)
{
    ssize_t got;
    char byte;

    (void) fd_close(parent->mapped_w); /* or the parent's death would not end the wait */
    got = sys_file_read_full(parent->mapped, &byte, 1);
    if (got != 1)
        return got < 0 ? (int) got : -ESRCH;
    if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, 0, 0, 0) < 0 ||
        syscall(SYS_setresuid, 0, 0, 0) < 0)
        return -errno;
    return sys_process_set_no_new_privileges();
}

static int map_ids(const struct sys_spawn *how, pid_t pid, int mapped_w)
{
    int result = sys_namespace_map_users(pid, how->root_of, 1);

    if (result == 0)
        result = sys_namespace_map_groups(pid, how->root_of, 1);
    return result < 0 ? result : sys_file_write_full(mapped_w, "", 1);
}

/* In the child, with all signals blocked: only async-signal-safe calls. Returns only on failure. */
static int become_program(const struct sys_spawn *how, const struct parent *parent)
{
    static const char *const nothing[] = {NULL};
    const char *const *environment = how->environment ? how->environment : nothing;
    int result = how->user ? become_user(how->user) : how->root_of ? become_root(parent) : 0;

    if (result < 0)
        return result;
    if (how->parent_signal) { /* a change of the user would have cleared it */
        result = parent->pidfd >= 0 ? sys_process_die_with_pidfd(how->parent_signal, parent->pidfd)
                                    : sys_process_die_with_parent(how->parent_signal, parent->pid);
        if (result < 0)
            return result;
    }
    if ((how->new_session || how->take_terminal) && setsid() < 0)
        return -errno;
    if (how->directory && chdir(how->directory) < 0)
        return -errno;
    /* Everything first, then dup2 clears the mark on what is wanted. */
    result = sys_close_range(0, ~0u, true);
    if (result == 0)
        result = place_descriptors(how);
    if (result >= 0 && how->take_terminal)
        result = sys_pty_take_control(0);
    if (result >= 0)
        result = sys_signal_reset();
    if (result < 0)
        return result;
    /* The type of execve predates const; it changes neither array. */
    (void) execve(how->path, (char *const *) (uintptr_t) how->arguments,
                  (char *const *) (uintptr_t) environment);
    return -errno;
}

static _Noreturn void run_child(const struct sys_spawn *how, int report,
                                const struct parent *parent)
{
    int place_for_report = parking_place(how);
    int result = duplicate_above(report, place_for_report);

    if (result >= 0) {
        report = result;
        result = become_program(how, parent);
    }
    (void) sys_file_write_full(report, &result, sizeof(result)); /* nobody else to tell */
    _exit(127);
}

/* The pipe closes by itself when the program starts; before that it may carry an errno. */
static int read_report(int fd)
{
    int result = 0;
    ssize_t count = sys_file_read_full(fd, &result, sizeof(result));

    if (count < 0)
        return (int) count;
    return count == sizeof(result) ? result : 0;
}

static pid_t start_child(const struct sys_spawn *how, int report, int *ret_pidfd)
{
    const int of_root = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;
    struct sys_clone clone = {.flags = (how->own_processes ? CLONE_NEWPID : 0) |
                                       (how->root_of ? of_root : 0),
                              .exit_signal = SIGCHLD,
                              .ret_pidfd = ret_pidfd};
    bool is_hidden = how->own_processes && how->parent_signal;
    AUTO(close) int pidfd = is_hidden ? sys_process_open(getpid()) : -EBADF;
    int mapped[2] = {-EBADF, -EBADF};
    int result = is_hidden && pidfd < 0 ? pidfd : 0;
    sigset_t before;

    if (result == 0 && how->root_of && pipe2(mapped, O_CLOEXEC) < 0)
        result = -errno;
    if (result == 0)
        result = sys_signal_block_all(&before);
    if (result == 0) {
        const struct parent parent = {getpid(), pidfd, mapped[0], mapped[1]};

        result = sys_clone(&clone);
        if (result == 0)
            run_child(how, report, &parent);
        (void) sys_signal_restore(&before); /* a mask the kernel gave us */
    }
    /* Without its ids it ends by itself, and says so. */
    if (result > 0 && how->root_of)
        (void) map_ids(how, result, mapped[1]);
    (void) fd_close(mapped[0]);
    (void) fd_close(mapped[1]);
    return result;
}

int sys_spawn(const struct sys_spawn *how, pid_t *ret_pid)
{
    AUTO(close) int read_end = -EBADF, write_end = -EBADF, pidfd = -EBADF;
    struct sys_exit gone;
    int ends[2];
    pid_t pid;
    int result = sys_spawn_check(how);

    if (result < 0)
        return result;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    read_end = ends[0];
    write_end = ends[1];
    pid = start_child(how, write_end, &pidfd);
    if (pid < 0)
        return pid;
    (void) fd_close(TAKE_FD(write_end)); /* or the pipe would never end */
    result = read_report(read_end);
    if (result < 0) {
        /* It is exiting already; killed all the same, so that the wait is short in any case. */
        (void) sys_process_kill(pidfd, SIGKILL);
        (void) sys_process_wait(pidfd, -1, &gone);
        return result;
    }
    if (ret_pid)
        *ret_pid = pid;
    return TAKE_FD(pidfd);
}
