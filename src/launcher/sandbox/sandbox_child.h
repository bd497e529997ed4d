/* Inside launcher/sandbox: what the parent prepares and the child uses between clone and exec. */
#pragma once

#include <stddef.h>

#include "launcher/child/child_steps.h"
#include "launcher/sandbox/sandbox.h"
#include "sys/network/sys_fd_pass.h"

/* Descriptors that only exist once the child's user namespace does, sent over the socket. */
enum { CHILD_DISK, CHILD_FIRST_LOWER };
#define CHILD_MOUNTS_MAX                                                                           \
    (CHILD_FIRST_LOWER + DISK_LAYERS_MAX + IMAGE_LOWERS_MAX + IMAGE_MOUNTS_MAX + SANDBOX_BINDS_MAX)
#define CHILD_FDS_MAX (2 * CGROUP_HIERARCHY_MAX + 1 + CHILD_MOUNTS_MAX)
_Static_assert(CHILD_FDS_MAX <= SYS_FD_PASS_MAX, "one message has them all");

/* Whether a test left this wall out; never so in production. */
#define CHILD_IS_OPEN(child, name) (((child)->host->open_walls & SANDBOX_WALL_BIT(name)) != 0)

/* What the launcher sends: first one byte when the id maps are written, then this, with the
 * descriptors it counts, in this order. */
struct child_delivery {
    uint8_t agent_count, work_count, has_oom_kill_count, mount_count;
    uint8_t layer_count; /* of the mounts behind the disk, those that are its layers */
};

struct child {
    const struct sandbox_host *host;
    const struct sandbox_plan *plan;
    const struct image_view *image;
    struct cgroup_entry entry; /* as received */
    int socket;                /* the child's end: descriptors come in here */
    int status;                /* the child's end: failures go out here */
    int listener;
    /* As received: disk, its layers and the image's, the image's mounts, binds. */
    int mounts[CHILD_MOUNTS_MAX];
    size_t lower_count; /* layers of both */
    size_t next_mount;  /* the first that is not yet in its place */
    int shares;         /* /proc/sys/user, writable */
    int their_socket;   /* the launcher's end, which the child has a copy of */
    int work_group;     /* where to make the cgroup namespace, or -EBADF: where the child is */
    bool has_cgroup_namespace;
};

/* The child's whole life; its context is a struct child. */
extern const struct child_steps sandbox_child_steps;
