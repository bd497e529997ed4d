/* The host's mounts, for a launcher that has mounts of its own.
 *
 * Every launcher begins by leaving the host's mount namespace: the disk pool, the stages of
 * sandboxes and whatever else it mounts exist in its own and nowhere else, and they are gone when
 * its last process is. Nothing of them is ever in a peer group of the host, so nothing can
 * propagate to where the host's programs look.
 *
 *     struct host_mounts host = HOST_MOUNTS_INIT;
 *     host_mounts_leave(&host, err);
 *
 * One thing has to be seen by every launcher of the host and to outlive them all: the network
 * namespace of the router, which is kept by a mount on a file of RUN, as `ip netns` does. This
 * module is the only way to put something there. It takes namespaces and nothing else: a file of
 * the kernel's, without content, that no sandbox has a part in.
 *
 * For a program with one thread. Where `host` may be NULL the caller has not left: its mounts are
 * the host's. Everything returns 0 or -errno, unless stated. */
#pragma once

#include "base/auto.h"
#include "base/error.h"

struct host_mounts {
    int namespace; /* owned: the mount namespace we came from */
    int root;      /* owned: its root, for looking at files as the host sees them */
};

#define HOST_MOUNTS_INIT                                                                           \
    {                                                                                              \
        .namespace = -EBADF, .root = -EBADF                                                        \
    }

/* Leave. On failure, -1 with `err`, the process is good for nothing but its end. */
int host_mounts_leave(struct host_mounts *ret_host, struct error *err);

void host_mounts_done(struct host_mounts *host);

AUTO_DEFINE(host_mounts, struct host_mounts, host_mounts_done);

/* Open a folder as the host sees it, with what is mounted in it there. Returns a descriptor. */
int host_mounts_open_folder(const struct host_mounts *host, const char *path);

/* Mount the namespace behind `fd` on the file at `path`. -EINVAL: it is none. */
int host_mounts_keep_namespace(const struct host_mounts *host, int fd, const char *path);

/* Take that mount away again; the namespace goes with its last user. -EINVAL: nothing is mounted
 * there. */
int host_mounts_drop_namespace(const struct host_mounts *host, const char *path);
