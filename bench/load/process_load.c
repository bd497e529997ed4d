/* process-load: start a program again and again and wait for it, without a shell in between.
 *
 *     process-load --count 20 -- PROGRAM ARGUMENT...            how long each took
 *     process-load --time 5s --loops 2 -- PROGRAM ARGUMENT...   how many ended in that time
 *
 * Prints one JSON object. A program that fails ends the measurement. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/number.h"
#include "load/fail.h"
#include "load/samples.h"

#define COUNT_MAX   1000000
#define LOOPS_MAX   64
#define TIME_MAX_MS 600000

struct process_load {
    char **command;
    uint64_t count;        /* so many times, or: */
    uint64_t milliseconds; /* for so long */
    uint64_t loops;        /* side by side */
};

static pid_t start(const struct process_load *load)
{
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int r = posix_spawn_file_actions_init(&actions);

    if (r == 0)
        r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    if (r == 0)
        r = posix_spawn(&pid, load->command[0], &actions, NULL, load->command, environ);
    if (r != 0)
        fail("start %s: %s", load->command[0], strerror(r));
    (void) posix_spawn_file_actions_destroy(&actions);
    return pid;
}

static void await(const struct process_load *load, pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            fail("wait for %s: %s", load->command[0], strerror(errno));
    }
    if (status != 0)
        fail("%s failed with wait status %#x", load->command[0], (unsigned int) status);
}

static void time_each(const struct process_load *load)
{
    AUTO(samples) struct samples samples = {.count = 0};

    for (uint64_t i = 0; i < load->count; i++) {
        uint64_t before = samples_now();

        await(load, start(load));
        samples_add(&samples, samples_now() - before);
    }
    printf("{");
    samples_print(&samples, "total_us");
    printf("}\n");
}

/* One that ended is replaced at once: the same as so many loops that know nothing of each other. */
static void count_all(const struct process_load *load)
{
    uint64_t begin = samples_now(), end = begin + load->milliseconds * 1000000, done = 0;

    for (uint64_t i = 0; i < load->loops; i++)
        (void) start(load);
    while (samples_now() < end) {
        await(load, -1);
        done++;
        (void) start(load);
    }
    end = samples_now();
    for (uint64_t i = 0; i < load->loops; i++)
        await(load, -1);
    printf("{\"done\":%" PRIu64 ",\"seconds\":%.3f}\n", done, (double) (end - begin) / 1e9);
}

static int parse_number(const char *text, int64_t most, uint64_t *ret_number)
{
    int64_t number = 0;
    int r = number_parse(text, 1, most, &number);

    *ret_number = (uint64_t) number;
    return r;
}

static void parse(struct process_load *load, int argc, char **argv)
{
    int at = 1, r = 0;

    for (; at + 1 < argc && strcmp(argv[at], "--") != 0; at += 2) {
        if (strcmp(argv[at], "--count") == 0)
            r = parse_number(argv[at + 1], COUNT_MAX, &load->count);
        else if (strcmp(argv[at], "--loops") == 0)
            r = parse_number(argv[at + 1], LOOPS_MAX, &load->loops);
        else if (strcmp(argv[at], "--time") == 0)
            r = number_parse_duration(argv[at + 1], TIME_MAX_MS, &load->milliseconds);
        else
            fail("unknown option '%s'", argv[at]);
        if (r < 0)
            fail("%s: '%s' will not do", argv[at], argv[at + 1]);
    }
    if (at + 1 >= argc || (!load->count && !load->milliseconds))
        fail("usage: process-load --count N | --time TIME [--loops N] -- PROGRAM ARGUMENT...");
    load->command = argv + at + 1;
}

int main(int argc, char **argv)
{
    struct process_load load = {.loops = 1};

    parse(&load, argc, argv);
    if (load.count)
        time_each(&load);
    else
        count_all(&load);
    return EXIT_SUCCESS;
}
