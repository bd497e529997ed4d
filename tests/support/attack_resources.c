#include "attack_resources.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/number.h"

#define GOAL_MAX 1000000000

enum { EXIT_SUCCEEDED, EXIT_REFUSED, EXIT_USAGE };

static const struct resource *const tables[] = {
    resource_processes,
    resource_memory,
    resource_objects,
};

/* Shared with the process that takes: it may be killed at any moment. */
struct progress {
    _Atomic size_t taken;
    _Atomic int error; /* errno of the refusal */
    _Atomic int over;
};

pid_t resource_fork(void)
{
    pid_t parent = getpid(), pid = fork();

    if (pid == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent))
        _exit(1);
    return pid;
}

int resource_write_megabyte(int fd)
{
    static uint64_t bytes[65536 / sizeof(uint64_t)];
    uint64_t state = (uint64_t) clock() * 0x9e3779b97f4a7c15u + 1;

    for (size_t done = 0; done < RESOURCE_MEGABYTE; done += sizeof(bytes)) {
        ssize_t written;

        for (size_t i = 0; i < ARRAY_COUNT(bytes); i++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            bytes[i] = state;
        }
        written = write(fd, bytes, sizeof(bytes));
        if (written != (ssize_t) sizeof(bytes))
            return written < 0 ? -errno : -ENOSPC;
    }
    return 0;
}

static const struct resource *find(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(tables); i++) {
        for (const struct resource *resource = tables[i]; resource->name; resource++) {
            if (strcmp(resource->name, name) == 0)
                return resource;
        }
    }
    return NULL;
}

/* Every process gets what it may ask for. */
static void raise_limits(void)
{
    static const __rlimit_resource_t limits[] = {RLIMIT_NOFILE, RLIMIT_CORE};

    for (size_t i = 0; i < ARRAY_COUNT(limits); i++) {
        struct rlimit limit;

        (void) getrlimit(limits[i], &limit);
        limit.rlim_cur = limit.rlim_max;
        (void) setrlimit(limits[i], &limit);
    }
}

static _Noreturn void take_all(const struct resource *resource, size_t goal,
                               struct progress *progress)
{
    int r = 0;

    raise_limits();
    while (r == 0 && progress->taken < goal) {
        r = resource->take(progress->taken);
        if (r == 0)
            progress->taken++;
    }
    progress->error = -r;
    progress->over = 1;
    for (;;)
        (void) pause(); /* what was taken goes with us */
}

/* Returns the signal that killed it, or 0 when it is over. */
static int wait_for_end(pid_t pid, const struct progress *progress)
{
    static const struct timespec moment = {.tv_nsec = 2000000};
    int status = 0;

    while (!progress->over) {
        if (waitpid(pid, &status, WNOHANG) != 0)
            return WIFSIGNALED(status) ? WTERMSIG(status) : SIGKILL;
        (void) nanosleep(&moment, NULL);
    }
    return 0;
}

static int report(const char *name, const struct progress *progress, int killer)
{
    if (killer)
        (void) printf("%s refused SIG%s %zu\n", name, sigabbrev_np(killer), progress->taken);
    else if (progress->error)
        (void) printf("%s refused %s %zu\n", name, strerrorname_np(progress->error),
                      progress->taken);
    else
        (void) printf("%s succeeded %zu\n", name, progress->taken);
    (void) fflush(stdout);
    return killer || progress->error ? EXIT_REFUSED : EXIT_SUCCEEDED;
}

static int attack(const struct resource *resource, size_t goal, bool hold)
{
    struct progress *progress =
        mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status, killer;
    pid_t pid;

    if (progress == MAP_FAILED)
        return EXIT_USAGE;
    pid = resource_fork();
    if (pid == 0)
        take_all(resource, goal, progress);
    if (pid < 0)
        return EXIT_USAGE;
    killer = wait_for_end(pid, progress);
    status = report(resource->name, progress, killer);
    while (hold)
        (void) pause();
    if (!killer) {
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
    }
    return status;
}

int main(int argc, char **argv)
{
    const struct resource *resource = argc > 1 ? find(argv[1]) : NULL;
    int64_t goal;

    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < ARRAY_COUNT(tables); i++) {
            for (resource = tables[i]; resource->name; resource++)
                (void) printf("%s: %s\n", resource->name, resource->unit);
        }
        return 0;
    }
    if (!resource || argc < 3 || number_parse(argv[2], 0, GOAL_MAX, &goal) < 0) {
        (void) fputs("usage: attack_resources NAME GOAL [hold]\n", stderr);
        return EXIT_USAGE;
    }
    return attack(resource, (size_t) goal, argc > 3);
}
