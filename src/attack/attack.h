/* attack: attempts at what a sandbox must not do, by name. What `burrow attack` runs inside of a
 * sandbox (burrow-attack-inside), and the tests of isolation inside of sandboxes without walls.
 *
 *     attack NAME...      try them one after another, each in a process of its own, and print
 *                             NAME succeeded
 *                             NAME refused EPERM         (or the signal that ended it: SIGSYS)
 *                             NAME impossible REASON     this machine cannot tell
 *     attack --list       the names
 *
 * Exit status: that of the last one, 0 succeeded, 1 refused, 2 impossible.
 *
 * Attempts are chosen so that they do no harm when they succeed: on the sandbox itself, or on
 * targets outside that whoever runs them made for it, and where the thing itself would be harmful,
 * only as far as the kernel's word that it would be allowed. Targets are variables:
 *
 *     TARGET_FOLDER    a folder with the files `public` (everybody may read) and `private`
 *     TARGET_PID       a process
 *     TARGET_ABSTRACT  the abstract unix socket somebody listens at (without the leading NUL)
 *     TARGET_PORT      a TCP port somebody listens at on 127.0.0.1
 *     TARGET_SHARED    the key of a System V shared memory segment
 *     TARGET_HOSTNAME  the host's name
 *     TARGET_GROUP     a file of a cgroup that root may write
 *     TARGET_POOL      a folder on the pool's btrfs, or nothing there
 *     TARGET_PIPE      where somebody opens any pipe he sees, as root of the host runs what is in
 *                      /usr/local/bin
 *
 * An attempt without its target is refused, which says nothing. Static: runs where there is
 * nothing. */
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

/* The whole program. Returns its exit status. */
int attack_main(int argc, char **argv);

/* A variable, "" without one. */
const char *attack_target(const char *variable);

/* The same as a number, 0 without one. */
int attack_number(const char *variable);

/* Tables, each ends with a NULL name. */
extern const struct attack attack_namespaces[];
extern const struct attack attack_processes[];
extern const struct attack attack_files[];
extern const struct attack attack_sockets[];
extern const struct attack attack_kernel[];
