/* Mounts whose files somebody else serves: FUSE, by the kernel's calls.
 *
 * The launcher makes the mount and puts it into a sandbox; the server has the descriptor of
 * /dev/fuse, and nobody else has a copy of it: when the server dies the kernel ends the mount, and
 * with a copy it would not. What waits for a server (the first look at a mount, paths inside a
 * sandbox) is done by a process of its own that can be killed.
 *
 *     fuse_mount_open    ──► mount, server        the server answers on `server`
 *     fuse_mount_start   ──► a helper: into its mounts, at its place
 *     fuse_mount_abort       whoever waits gets an error, whatever the server does
 *
 * The filesystem belongs to the sandbox's user namespace, as if its root had mounted it: ids need
 * no map, for which FUSE would want Linux 6.12, and nobody outside of that namespace, root
 * included, can be made to wait for the server. The kernel wants /dev/fuse opened and the
 * filesystem made in that namespace, by somebody who may mount there: a process that enters it.
 *
 * One thread. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

struct fuse_mount {
    int mount;          /* owned: attached nowhere */
    int server;         /* owned: of /dev/fuse */
    unsigned int minor; /* of its device: its name for the kernel's control of it */
};

#define FUSE_MOUNT_INIT                                                                            \
    {                                                                                              \
        .mount = -EBADF, .server = -EBADF                                                          \
    }

/* Whether this host has FUSE: makes one. 0, or -errno: -ENOENT or -ENODEV without the module. */
int fuse_mount_try(void);

/* A new one for the sandbox whose first process is `sandbox`: the ids of its files are the
 * sandbox's. 0, or -1 with ERR_INTERNAL. Takes a process for a moment, which waits for nobody. */
int fuse_mount_open(pid_t sandbox, bool read_only, struct fuse_mount *ret_mount, struct error *err);

/* The kernel's control of all FUSE mounts: a descriptor for fuse_mount_abort, the caller's, or
 * -errno. */
int fuse_mount_control(void);

/* End the connection: everything that waits on it, and all that is asked later, fails. One that is
 * gone already is fine. */
void fuse_mount_abort(int control, unsigned int minor);

/* The devices of all FUSE mounts that process `pid` sees; with `place` of those that are at this
 * place. Returns how many were written, at most `maximum`. */
size_t fuse_mount_find(pid_t pid, const char *place, unsigned int *ret_minors, size_t maximum);

/* The same, in the text of /proc/PID/mountinfo. Pure. */
size_t fuse_mount_find_in(const char *text, const char *place, unsigned int *ret_minors,
                          size_t maximum);

/* What a helper does. All borrowed. */
struct fuse_mount_job {
    int sandbox;       /* pidfd of its first process */
    int mount;         /* to attach; -EBADF: only take away what is at the place */
    bool replaces;     /* what is at the place goes first: it must be ours and dead */
    const char *place; /* made when it is missing; no link on the way is followed */
};

/* Returns 0 and a pidfd that is readable when the helper has ended, or -1. It ends with us. */
int fuse_mount_start(const struct fuse_mount_job *job, int *ret_helper, struct error *err);

/* Reap a helper that has ended: 0, or -errno of what went wrong in it. -EBUSY: something is mounted
 * there; -ECANCELED: it was killed. */
int fuse_mount_finish(int helper);

/* End one that takes too long; it is finished as always. */
void fuse_mount_kill(int helper);

/* Kill one, which should not wait for a server any more, reap it and close the descriptor. */
void fuse_mount_cancel(int helper);

/* Inside fuse_mount only: a filesystem, mounted nowhere, that is served on `server`; a descriptor,
 * or -errno. And the same by a process in the sandbox: 0 or -errno. */
int fuse_mount_make_filesystem(int server);
int fuse_mount_make_in(pid_t sandbox, int *ret_server, int *ret_filesystem);
