/* Processes, threads, zombies, and what is counted per process or user. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attack_resources.h"
#include "base/auto.h"

#define FILES_EACH    5000
#define ORPHANS_EACH  25 /* zombies until their parent ends: fewer than a sandbox may have */
#define ORPHAN_TRIES  20000
#define THREAD_STACK  ((size_t) 65536)
#define KEY_LENGTH    64
#define SIGNAL_NUMBER (SIGRTMIN + 1)

static int result(long r)
{
    return r < 0 ? -errno : 0;
}

static _Noreturn void stay(void)
{
    for (;;)
        (void) pause();
}

/* --- processes ------------------------------------------------------------------------------ */

static int take_process(size_t number)
{
    pid_t pid = resource_fork();

    (void) number;
    if (pid == 0)
        stay();
    return result(pid);
}

/* Its children fork too, without end: what the name promises, and nothing counts for it. One is
 * enough. */
static int take_bomb(size_t number)
{
    pid_t pid = fork();

    (void) number;
    if (pid != 0)
        return result(pid);
    for (;;)
        (void) fork();
}

static int take_zombie(size_t number)
{
    siginfo_t information;
    pid_t pid = fork();

    (void) number;
    if (pid == 0)
        _exit(0);
    return pid < 0 ? -errno : result(waitid(P_PID, (id_t) pid, &information, WEXITED | WNOWAIT));
}

static void *run_thread(void *context)
{
    for (;;)
        (void) pause();
    return context;
}

static int take_thread(size_t number)
{
    pthread_attr_t attributes;
    pthread_t thread;

    (void) number;
    (void) pthread_attr_init(&attributes);
    (void) pthread_attr_setstacksize(&attributes, THREAD_STACK);
    return -pthread_create(&thread, &attributes, run_thread, NULL);
}

/* A process that burns. */
static int take_burner(size_t number)
{
    pid_t pid = resource_fork();

    (void) number;
    if (pid == 0) {
        for (volatile uint64_t i = 0;; i++)
            ;
    }
    return result(pid);
}

/* A process that waits a moment for others to be reaped when there are too many. */
static pid_t fork_patiently(void)
{
    static const struct timespec moment = {.tv_nsec = 1000000};
    pid_t pid = fork();

    for (int i = 0; pid < 0 && errno == EAGAIN && i < ORPHAN_TRIES; i++) {
        (void) nanosleep(&moment, NULL);
        pid = fork();
    }
    return pid;
}

/* Short processes whose parent is gone, for the sandbox to reap. */
static int take_orphans(size_t number)
{
    pid_t pid = fork_patiently();
    int status = 0;

    (void) number;
    if (pid == 0) {
        for (int i = 0; i < ORPHANS_EACH; i++) {
            pid_t child = fork_patiently();

            if (child <= 0)
                _exit(child < 0 ? errno : 0);
        }
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return -errno;
    return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

/* --- descriptors ---------------------------------------------------------------------------- */

static int take_descriptor(size_t number)
{
    (void) number;
    return result(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

/* More than one process may have: by many of them. */
static int take_files(size_t number)
{
    int ends[2];
    char byte;
    pid_t pid;

    (void) number;
    if (pipe2(ends, O_CLOEXEC) < 0 || (pid = resource_fork()) < 0)
        return -errno;
    if (pid == 0) {
        int r = 0;

        for (int i = 0; r == 0 && i < FILES_EACH; i++)
            r = result(eventfd(0, EFD_CLOEXEC));
        byte = (char) -r;
        if (write(ends[1], &byte, 1) == 1)
            stay();
        _exit(1);
    }
    (void) close(ends[1]);
    if (read(ends[0], &byte, 1) != 1)
        return -ENOMEM; /* it was killed */
    (void) close(ends[0]);
    return -byte;
}

static int take_watcher(size_t number)
{
    (void) number;
    return result(inotify_init1(IN_CLOEXEC));
}

/* A terminal that cannot be opened, because all numbers are taken, says ENOSPC. */
static int take_terminal(size_t number)
{
    (void) number;
    return result(open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
}

/* --- what is counted per user --------------------------------------------------------------- */

static int take_key(size_t number)
{
    char name[32], bytes[KEY_LENGTH] = {1};

    (void) snprintf(name, sizeof(name), "burrow-lab-%zu", number);
    /* Kept by this process's own ring, and gone with it. */
    return result(syscall(SYS_add_key, "user", name, bytes, sizeof(bytes), -2));
}

static int take_signal(size_t number)
{
    union sigval value = {.sival_int = (int) number};
    sigset_t set;

    (void) sigemptyset(&set);
    (void) sigaddset(&set, SIGNAL_NUMBER);
    (void) sigprocmask(SIG_BLOCK, &set, NULL);
    return result(sigqueue(getpid(), SIGNAL_NUMBER, value));
}

static int take_timer(size_t number)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGNAL_NUMBER};
    timer_t timer;

    (void) number;
    return result(timer_create(CLOCK_MONOTONIC, &event, &timer));
}

const struct resource resource_processes[] = {
    {"processes", "a process that sleeps", take_process},
    {"bomb", "a process that forks for ever, as its children do", take_bomb},
    {"zombies", "a process that ended and is not waited for", take_zombie},
    {"threads", "a thread that sleeps", take_thread},
    {"burners", "a process that uses all the CPU it gets", take_burner},
    {"orphans", "25 processes that end at once and have no parent", take_orphans},
    {"descriptors", "a descriptor of one process", take_descriptor},
    {"files", "5000 open files of a process of their own", take_files},
    {"watchers", "an inotify instance", take_watcher},
    {"terminals", "a pseudo terminal", take_terminal},
    {"keys", "a key of the kernel's", take_key},
    {"signals", "a queued signal", take_signal},
    {"timers", "a POSIX timer", take_timer},
    {NULL, NULL, NULL},
};
