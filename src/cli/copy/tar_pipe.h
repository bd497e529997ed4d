/* The tar program at the other end of a pipe: a folder here as a stream, and back.
 *
 * What comes out of a sandbox is not trusted. GNU tar refuses names that lead out of the folder and
 * makes links last; we keep it from making devices, and from setting owners and special modes. */
#pragma once

#include "base/auto.h"
#include "base/error.h"

struct tar_pipe {
    int fd;    /* owned: our end. Negative: closed */
    int pidfd; /* owned */
};

#define TAR_PIPE_INIT                                                                              \
    {                                                                                              \
        .fd = -EBADF, .pidfd = -EBADF                                                              \
    }

/* Read `fd` for an archive of all that is in `folder`; owners are root's. 0 or -1. */
int tar_pipe_pack(struct tar_pipe *pipe, const char *folder, struct error *err);

/* Write an archive to `fd`, and its content appears in `folder`, which exists. 0 or -1. */
int tar_pipe_unpack(struct tar_pipe *pipe, const char *folder, struct error *err);

/* Close our end and wait. Returns 0, or -1 when tar was not content (it has said why on stderr). */
int tar_pipe_finish(struct tar_pipe *pipe, struct error *err);

/* Leave without asking. */
void tar_pipe_done(struct tar_pipe *pipe);
AUTO_DEFINE(tar_pipe, struct tar_pipe, tar_pipe_done);
