/* attack_resources: take more of something than a sandbox shall have. For tests of isolation only.
 *
 *     attack_resources NAME GOAL          take GOAL of it, one after another, and print
 *                                             NAME succeeded GOAL
 *                                             NAME refused ENOSPC 117     (or SIGKILL) after so
 * many attack_resources NAME GOAL hold     the same, and then keep everything until killed
 *     attack_resources --list             the names, each with what one of it is
 *
 * Exit status: 0 succeeded, 1 refused, 2 the program is used wrongly.
 *
 * The goal is chosen by the test: more than the sandbox's limit, less than the guard's. What is
 * taken goes with the processes that took it, but for files and System V objects, which stay: that
 * they do is part of the attack. Static: runs where there is nothing. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct resource {
    const char *name;
    const char *unit;
    /* Take one more, the nth from 0. 0 or -errno. */
    int (*take)(size_t number);
};

/* Tables, each ends with a NULL name. */
extern const struct resource resource_processes[];
extern const struct resource resource_memory[];
extern const struct resource resource_objects[];

#define RESOURCE_MEGABYTE ((size_t) 1 << 20)

/* fork; the child dies with us. */
pid_t resource_fork(void);

/* Append a megabyte that neither compresses nor is all zero. 0 or -errno. */
int resource_write_megabyte(int fd);
