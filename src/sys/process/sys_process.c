#include "sys/process/sys_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "sys/file/sys_file.h"
#include "sys/sys_call.h"

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

/* Numbers and 16 bytes of name: far more than the kernel writes. */
#define STAT_SIZE 2048

/* Which field of /proc/PID/stat, counted from 1; the name is the second. */
#define STAT_START_TIME 22
#define STAT_AFTER_NAME 3

int sys_process_open(pid_t pid)
{
    int result = sys_call_fault();

    return result ? result : sys_call_result(syscall(SYS_pidfd_open, pid, 0));
}

int sys_process_kill(int pidfd, int signal)
{
    int result = sys_call_fault();

    return result ? result
                  : sys_call_result(syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0));
}

int sys_process_get_descriptor(int pidfd, int fd)
{
    int result = sys_call_fault_or_missing(SYS_FEATURE_PIDFD_GETFD);

    return result ? result : sys_call_result(syscall(SYS_pidfd_getfd, pidfd, fd, 0));
}

static int reap(int pidfd, siginfo_t *ret_information)
{
    int result;

    do {
        result = sys_call_fault();
        if (result == 0)
            result = sys_call_result(
                waitid((idtype_t) P_PIDFD, (id_t) pidfd, ret_information, WEXITED | WNOHANG));
    } while (result == -EINTR);
    return result;
}

static struct sys_exit exit_of(const siginfo_t *information)
{
    return (struct sys_exit){
        .kind = information->si_code == CLD_EXITED ? SYS_EXIT_STATUS : SYS_EXIT_SIGNAL,
        .value = information->si_status,
        .dumped_core = information->si_code == CLD_DUMPED,
    };
}

int sys_process_wait(int pidfd, int timeout_ms, struct sys_exit *ret_exit)
{
    siginfo_t information = {0};
    int result;

    /* First look, so that -ECHILD comes at once and not when a stranger's process ends. */
    result = reap(pidfd, &information);
    if (result == 0 && information.si_pid == 0) {
        result = sys_file_poll(pidfd, POLLIN, timeout_ms);
        if (result > 0)
            result = reap(pidfd, &information);
    }
    if (result < 0)
        return result;
    if (information.si_pid == 0)
        return -ETIMEDOUT;
    *ret_exit = exit_of(&information);
    return 0;
}

int sys_process_wait_or_kill(int pidfd, int timeout_ms, struct sys_exit *ret_exit)
{
    int result = sys_process_wait(pidfd, timeout_ms, ret_exit);

    if (result < 0 && result != -ECHILD && sys_process_kill(pidfd, SIGKILL) == 0)
        (void) sys_process_wait(pidfd, -1, ret_exit);
    return result;
}

static int wait_without_blocking(idtype_t type, id_t id, siginfo_t *ret_information, int options)
{
    int result;

    do {
        result = sys_call_fault();
        if (result == 0)
            result = sys_call_result(waitid(type, id, ret_information, options | WNOHANG));
    } while (result == -EINTR);
    return result;
}

/* Newer than the headers we build with: the first version of what the kernel tells of a pidfd. */
struct pidfd_information {
    uint64_t mask;
    uint64_t cgroup;
    uint32_t ids[11];
    int32_t exit_code; /* as wait(2) would give it */
};
#define PIDFD_INFORMATION      _IOWR(0xFF, 11, struct pidfd_information)
#define PIDFD_INFORMATION_EXIT (UINT64_C(1) << 3)

int sys_process_exit_of_other(int pidfd, struct sys_exit *ret_exit)
{
    struct pidfd_information information = {.mask = PIDFD_INFORMATION_EXIT};
    int result = sys_call_fault();

    if (result == 0)
        result = sys_call_result(ioctl(pidfd, PIDFD_INFORMATION, &information));
    if (result < 0)
        /* Kernels that know the call and not the exit answer that the process is gone. */
        return result == -ESRCH || result == -EINVAL ? -ENOTTY : result;
    if (!(information.mask & PIDFD_INFORMATION_EXIT))
        return -EAGAIN;
    *ret_exit = (struct sys_exit){
        .kind = WIFEXITED(information.exit_code) ? SYS_EXIT_STATUS : SYS_EXIT_SIGNAL,
        .value = WIFEXITED(information.exit_code) ? WEXITSTATUS(information.exit_code)
                                                  : WTERMSIG(information.exit_code),
        .dumped_core = !WIFEXITED(information.exit_code) && WCOREDUMP(information.exit_code),
    };
    return 0;
}

int sys_process_reap(pid_t *ret_pid, struct sys_exit *ret_exit)
{
    siginfo_t information = {0};
    int result = wait_without_blocking(P_ALL, 0, &information, WEXITED);

    if (result < 0)
        return result;
    if (information.si_pid == 0)
        return -EAGAIN;
    *ret_pid = information.si_pid;
    *ret_exit = exit_of(&information);
    return 0;
}

int sys_process_is_child(pid_t pid)
{
    siginfo_t information = {0};
    int result = wait_without_blocking(P_PID, (id_t) pid, &information, WEXITED | WNOWAIT);

    if (result == -ECHILD)
        return 0;
    return result < 0 ? result : 1;
}

static int parse_ticks(const char *at, uint64_t *ret_ticks)
{
    uint64_t ticks = 0;

    if (*at < '0' || *at > '9')
        return -EINVAL;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (ticks > (UINT64_MAX - 9) / 10)
            return -EINVAL;
        ticks = ticks * 10 + (uint64_t) (*at - '0');
    }
    if (*at != ' ')
        return -EINVAL;
    *ret_ticks = ticks;
    return 0;
}

int sys_process_parse_start_time(const char *stat, uint64_t *ret_ticks)
{
    /* The last one: the name may hold more, what follows never does. */
    const char *at = strrchr(stat, ')');

    if (!at)
        return -EINVAL;
    at++;
    for (int field = STAT_AFTER_NAME; field < STAT_START_TIME; field++) {
        at = *at ? strchr(at + 1, ' ') : NULL;
        if (!at)
            return -EINVAL;
    }
    return *at == ' ' ? parse_ticks(at + 1, ret_ticks) : -EINVAL;
}

int sys_process_start_time(pid_t pid, uint64_t *ret_ticks)
{
    char path[sizeof("/proc/-2147483648/stat")], stat[STAT_SIZE];
    AUTO(close) int fd = -EBADF;
    ssize_t length;

    if (pid <= 0)
        return -EINVAL;
    (void) snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    fd = sys_file_open(AT_FDCWD, path, O_RDONLY, 0);
    if (fd < 0)
        return fd;
    length = sys_file_read_full(fd, stat, sizeof(stat) - 1);
    if (length < 0)
        return (int) length;
    stat[length] = '\0';
    return sys_process_parse_start_time(stat, ret_ticks);
}

static int set_option(int option, unsigned long value)
{
    int result = sys_call_fault();

    return result ? result : sys_call_result(prctl(option, value, 0UL, 0UL, 0UL));
}

int sys_process_set_no_new_privileges(void)
{
    return set_option(PR_SET_NO_NEW_PRIVS, 1);
}

int sys_process_set_subreaper(bool on)
{
    return set_option(PR_SET_CHILD_SUBREAPER, on);
}

int sys_process_set_dumpable(bool on)
{
    return set_option(PR_SET_DUMPABLE, on);
}

int sys_process_die_with_parent(int signal, pid_t parent)
{
    int result = set_option(PR_SET_PDEATHSIG, (unsigned long) signal);

    if (result < 0)
        return result;
    return getppid() == parent ? 0 : -ESRCH;
}

int sys_process_die_with_pidfd(int signal, int parent)
{
    int result = set_option(PR_SET_PDEATHSIG, (unsigned long) signal);

    if (result == 0)
        result = sys_file_poll(parent, POLLIN, 0);
    return result > 0 ? -ESRCH : result;
}
