/* Running a program: exactly the descriptors, environment and directory that are named here.
 *
 *     struct sys_spawn_descriptor stdio[] = {{.from = in, .to = 0}, {.from = out, .to = 1}};
 *     struct sys_spawn how = {
 *         .path = "/usr/bin/sort",
 *         .arguments = (const char *const[]){"sort", "-u", NULL},
 *         .descriptors = stdio,
 *         .descriptor_count = ARRAY_COUNT(stdio),
 *     };
 *     int pidfd = sys_spawn(&how, NULL);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "sys/process/sys_namespace.h"

#define SYS_SPAWN_DESCRIPTORS_MAX 32

/* The program finds `from` of ours as its `to`. */
struct sys_spawn_descriptor {
    int from; /* borrowed */
    int to;
};

struct sys_spawn_user {
    uid_t user;
    gid_t group;
};

struct sys_spawn {
    const char *path;               /* not searched for: relative to `directory` or absolute */
    const char *const *arguments;   /* NULL at the end; the first is the program's name */
    const char *const *environment; /* NULL at the end; NULL itself means empty */
    const char *directory;          /* NULL: ours */
    const struct sys_spawn_descriptor *descriptors; /* any order, may overlap */
    size_t descriptor_count;
    bool new_session;   /* setsid: no controlling terminal, own process group */
    bool take_terminal; /* 0 is a terminal: make it the controlling one; implies new_session */
    int parent_signal;  /* sent to the program when the calling thread ends; 0: none */
    bool own_processes; /* a pid namespace: whatever it starts ends with it. Needs root */
    /* Not NULL: it is root of a user namespace with these ids, never anything else, and its mounts,
     * IPC and host name are its own as well. Needs root; not together with `user`. */
    const struct sys_id_range *root_of;

    /* NULL: our user and rights. Otherwise it runs as this user in this one group, without
     * capabilities, and can never gain any. */
    const struct sys_spawn_user *user;
};

/* Start it. Returns a CLOEXEC pidfd the caller owns (sys_process_wait) and, when wanted, the pid;
 * or the -errno of whatever failed, the exec in the child included (-ENOENT, -EACCES): then no
 * child is left. -EINVAL when a `to` is named twice or out of range.
 *
 * In the program 0, 1 and 2 are /dev/null unless named, every other descriptor is closed, and
 * signals have their defaults. Blocks until the child has exec'd. Thread-safe. */
int sys_spawn(const struct sys_spawn *how, pid_t *ret_pid);
