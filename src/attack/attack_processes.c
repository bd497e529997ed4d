/* PID 1 of the sandbox, processes outside, rights by set-id programs, core dumps. */
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attack/attack.h"
#include "base/auto.h"

#define AGENT_FDS_END 300

static void wait_a_moment(void)
{
    static const struct timespec moment = {.tv_nsec = 100000000};

    (void) nanosleep(&moment, NULL);
}

/* --- PID 1 ---------------------------------------------------------------------------------- */

static int trace(pid_t pid)
{
    /* Ends with us, and stops nobody. */
    return attack_result(ptrace(PTRACE_SEIZE, pid, NULL, NULL));
}

static int trace_init(void)
{
    return trace(1);
}

static int open_init_memory(void)
{
    return attack_result(open("/proc/1/mem", O_RDWR | O_CLOEXEC));
}

static int read_init_environment(void)
{
    char byte;
    int fd = open("/proc/1/environ", O_RDONLY | O_CLOEXEC);

    return fd < 0 ? -errno : attack_result(read(fd, &byte, 1));
}

/* An address of our own is as good as any: EFAULT would mean that we may. */
static int read_init_memory(void)
{
    char byte = 0;
    struct iovec here = {&byte, 1}, there = {&byte, 1};

    if (process_vm_readv(1, &here, 1, &there, 1, 0) < 0 && errno != EFAULT)
        return -errno;
    return 0;
}

static int take_init_descriptor(void)
{
    long pidfd = syscall(SYS_pidfd_open, 1, 0);

    return pidfd < 0 ? -errno : attack_result(syscall(SYS_pidfd_getfd, pidfd, 3, 0));
}

static int list_init_descriptors(void)
{
    return opendir("/proc/1/fd") ? 0 : -errno;
}

/* So that it is killed before all others. To lower it takes a right that nobody here has. */
static int change_init_oom_score(void)
{
    int fd = open("/proc/1/oom_score_adj", O_WRONLY | O_CLOEXEC);

    return fd < 0 ? -errno : attack_result(write(fd, "1000", 4));
}

static int delay_init_timers(void)
{
    int fd = open("/proc/1/timerslack_ns", O_WRONLY | O_CLOEXEC);

    return fd < 0 ? -errno : attack_result(write(fd, "50000", 5));
}

static int limit_init(void)
{
    struct rlimit limit = {4096, 4096};

    return attack_result(syscall(SYS_prlimit64, 1, RLIMIT_NOFILE, &limit, NULL));
}

static int slow_init(void)
{
    return attack_result(setpriority(PRIO_PROCESS, 1, 5));
}

static int slow_user(void)
{
    return attack_result(setpriority(PRIO_USER, 0, 5));
}

static int schedule_init(void)
{
    struct sched_param parameters = {0};

    return attack_result(sched_setscheduler(1, SCHED_BATCH, &parameters));
}

static int pin_init(void)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(0, &set);
    return attack_result(sched_setaffinity(1, sizeof(set), &set));
}

static int delay_init_io(void)
{
    return attack_result(syscall(SYS_ioprio_set, 1, 1, 3 << 13 /* idle */));
}

/* The kernel says yes and does nothing. */
static int kill_init(void)
{
    static const int signals[] = {SIGKILL, SIGSTOP, SIGTERM, SIGSEGV};

    for (size_t i = 0; i < ARRAY_COUNT(signals); i++) {
        if (kill(1, signals[i]) < 0)
            return -errno;
    }
    wait_a_moment();
    return kill(1, 0) == 0 ? -EPERM : 0; /* were it dead, we would be too */
}

/* --- what PID 1 has open -------------------------------------------------------------------- */

/* Any descriptor of ours or of PID 1 for which `is` says yes. */
static int find_descriptor(int (*is)(int fd))
{
    long pidfd = syscall(SYS_pidfd_open, 1, 0);

    for (int number = 3; number < AGENT_FDS_END; number++) {
        int fd;

        if (is(number))
            return number;
        fd = pidfd < 0 ? -1 : (int) syscall(SYS_pidfd_getfd, pidfd, number, 0);
        if (fd < 0)
            continue;
        if (is(fd))
            return fd;
        (void) close(fd);
    }
    return -ENOENT;
}

static int is_host_folder(int fd)
{
    return faccessat(fd, "public", F_OK, 0) == 0;
}

static int use_leaked_folder(void)
{
    int fd = find_descriptor(is_host_folder);

    return fd < 0 ? fd : attack_result(openat(fd, "public", O_RDONLY | O_CLOEXEC));
}

static int is_program(int fd)
{
    char magic[4];

    return pread(fd, magic, 4, 0) == 4 && memcmp(magic, "\177ELF", 4) == 0;
}

/* One byte of the agent's program, with the value it has. */
static int change_agent(void)
{
    int fd = find_descriptor(is_program);
    char byte;

    if (fd < 0)
        return fd;
    if (pread(fd, &byte, 1, 15) != 1)
        return -EIO;
    return attack_result(pwrite(fd, &byte, 1, 15));
}

/* The same by the way that broke out of containers: the program of a process that runs it. */
static int change_agent_by_link(void)
{
    int fd = open("/proc/1/exe", O_RDONLY | O_CLOEXEC), again;
    char path[64];

    if (fd < 0)
        return -errno;
    (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    again = open(path, O_WRONLY | O_CLOEXEC);
    return again < 0 ? -errno : 0;
}

static int read_agent(void)
{
    int fd = open("/proc/1/exe", O_RDONLY | O_CLOEXEC);

    return fd < 0 ? -errno : is_program(fd) ? 0 : -EIO;
}

/* --- outside -------------------------------------------------------------------------------- */

/* One that its receiver does not notice. */
static int signal_outside(void)
{
    return attack_result(kill(attack_number("TARGET_PID"), SIGWINCH));
}

static int trace_outside(void)
{
    return trace(attack_number("TARGET_PID"));
}

/* --- rights --------------------------------------------------------------------------------- */

static int copy_ourselves(const char *path)
{
    static char bytes[65536];
    AUTO(close) int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    AUTO(close) int to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    ssize_t got;

    if (from < 0 || to < 0)
        return -errno;
    while ((got = read(from, bytes, sizeof(bytes))) > 0) {
        if (write(to, bytes, (size_t) got) != got)
            return -EIO;
    }
    return fchmod(to, 04755) < 0 ? -errno : 0;
}

/* A user of the sandbox becomes its root. */
static int run_set_id_program(void)
{
    static const char path[] = "/tmp/set-id-program";
    int status = 0, r = copy_ourselves(path);
    pid_t pid;

    if (r < 0)
        return r;
    pid = fork();
    if (pid == 0) {
        if (setresgid(1000, 1000, 1000) < 0 || setresuid(1000, 1000, 1000) < 0)
            _exit(2);
        (void) execl(path, path, "--am-i-root", NULL);
        _exit(2);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return -errno;
    (void) unlink(path);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EPERM;
}

/* --- core dumps ----------------------------------------------------------------------------- */

static int core_goes_to_a_program(void)
{
    AUTO(close) int fd = open("/proc/sys/kernel/core_pattern", O_RDONLY | O_CLOEXEC);
    char first;

    return read(fd, &first, 1) != 1 || first == '|' || first == '@';
}

static int leave_core(void)
{
    struct rlimit limit;
    int status = 0;
    pid_t pid;

    if (core_goes_to_a_program())
        return attack_impossible("cores go to a program of this host, which shall not run");
    if (chdir("/tmp") < 0 || getrlimit(RLIMIT_CORE, &limit) < 0)
        return -errno;
    limit.rlim_cur = limit.rlim_max;
    (void) setrlimit(RLIMIT_CORE, &limit);
    pid = fork();
    if (pid == 0) {
        (void) signal(SIGQUIT, SIG_DFL);
        (void) kill(getpid(), SIGQUIT);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return -errno;
    return WIFSIGNALED(status) && WCOREDUMP(status) ? 0 : -EPERM;
}

/* A limit of 0 lets a piped handler run, the limit 1 that a sandbox has does not. */
static int lower_core_limit(void)
{
    struct rlimit limit = {0, 0};

    if (setrlimit(RLIMIT_CORE, &limit) < 0 || getrlimit(RLIMIT_CORE, &limit) < 0)
        return -errno;
    return limit.rlim_max == 0 ? 0 : -EPERM;
}

const struct attack attack_processes[] = {
    {"trace_init", trace_init},
    {"open_init_memory", open_init_memory},
    {"read_init_environment", read_init_environment},
    {"read_init_memory", read_init_memory},
    {"take_init_descriptor", take_init_descriptor},
    {"list_init_descriptors", list_init_descriptors},
    {"change_init_oom_score", change_init_oom_score},
    {"delay_init_timers", delay_init_timers},
    {"limit_init", limit_init},
    {"slow_init", slow_init},
    {"slow_user", slow_user},
    {"schedule_init", schedule_init},
    {"pin_init", pin_init},
    {"delay_init_io", delay_init_io},
    {"kill_init", kill_init},
    {"use_leaked_folder", use_leaked_folder},
    {"change_agent", change_agent},
    {"change_agent_by_link", change_agent_by_link},
    {"read_agent", read_agent},
    {"signal_outside", signal_outside},
    {"trace_outside", trace_outside},
    {"run_set_id_program", run_set_id_program},
    {"leave_core", leave_core},
    {"lower_core_limit", lower_core_limit},
    {NULL, NULL},
};
