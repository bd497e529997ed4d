/* Inside launcher/sandbox: what the parent prepares and the child uses between clone and exec. */
#pragma once

#include <stddef.h>

#include "launcher/sandbox.h"

/* Descriptors that only exist once the child's user namespace does, sent over the socket. */
enum { CHILD_LOWER, CHILD_DISK, CHILD_FIXED_COUNT };

struct child {
    const struct sandbox_host *host;
    const struct sandbox_plan *plan;
    const struct image_view *image;
    struct cgroup_entry entry;
    int socket; /* the child's end: descriptors come in here */
    int status; /* the child's end: failures go out here */
    int listener;
    int mounts[CHILD_FIXED_COUNT + IMAGE_MOUNTS_MAX]; /* as received */
    size_t mount_count;
};

/* What a failed child writes before it exits. */
struct child_failure {
    int step;
    int error; /* -errno */
};

/* The child's whole life; does not return. */
_Noreturn void child_run(struct child *child);

/* The name of a step, for messages. Never NULL. */
const char *child_step_text(int step);
