/* attack: attempts at what a sandbox must not do, by name. For tests of isolation only.
 *
 *     attack NAME...      try them one after another, each in a process of its own, and print
 *                             NAME succeeded
 *                             NAME refused EPERM         (or the signal that ended it: SIGSYS)
 *                             NAME impossible REASON     this machine cannot tell
 *     attack --list       the names
 *
 * Exit status: that of the last one, 0 succeeded, 1 refused, 2 impossible.
 *
 * Attempts are chosen so that they do no harm when they succeed: inside an outer guard, on targets
 * that the lab made for it (wall_target.h) or on the sandbox itself, and where the thing itself
 * would be harmful, only as far as the kernel's word that it would be allowed. Static: runs where
 * there is nothing. */
#pragma once

#include <errno.h>

/* 0: succeeded; -errno: refused; or impossible, with a reason that `attack_impossible` was told. */
#define ATTACK_IMPOSSIBLE 1

struct attack {
    const char *name;
    int (*attempt)(void);
};

int attack_impossible(const char *reason);

/* r of a system call: 0 for success, otherwise -errno. */
static inline int attack_result(long r)
{
    return r < 0 ? -errno : 0;
}

/* A variable of the lab, "" without one. */
const char *attack_target(const char *variable);

/* The same as a number, 0 without one. */
int attack_number(const char *variable);

/* Tables, each ends with a NULL name. */
extern const struct attack attack_namespaces[];
extern const struct attack attack_processes[];
extern const struct attack attack_files[];
extern const struct attack attack_sockets[];
extern const struct attack attack_kernel[];
