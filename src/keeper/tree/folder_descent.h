/* Where somebody is who makes a tree: one folder, open, and the way back up.
 *
 * Only the folder itself is open, so that a tree may be as deep as it likes. Going up is by "..",
 * which is believed only when it leads to the folder that we came down from: a tree that others
 * move meanwhile cannot lead us out of it. 16 bytes a level. */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/auto.h"

struct folder_identity {
    dev_t device;
    ino_t inode;
};

struct folder_descent {
    int folder;                    /* owned: where we are; -EBADF: nowhere yet */
    struct folder_identity *above; /* owned: the folders we came through */
    size_t depth, capacity;
};

#define FOLDER_DESCENT_INIT                                                                        \
    {                                                                                              \
        .folder = -EBADF                                                                           \
    }

/* Begin at `top`, which stays the caller's. 0 or -errno. */
int folder_descent_begin(struct folder_descent *descent, int top);

/* Down into `name`, which is a folder and no link. 0, or -errno and nobody moved. */
int folder_descent_enter(struct folder_descent *descent, const char *name);

/* The folder above, open; the caller owns it. -errno; -ESTALE: not the one we came from. */
int folder_descent_open_above(const struct folder_descent *descent);

/* Up to `above`, which folder_descent_open_above gave, and which is ours from here on. */
void folder_descent_leave(struct folder_descent *descent, int above);

/* Nowhere again, wherever we are. */
void folder_descent_end(struct folder_descent *descent);

void folder_descent_done(struct folder_descent *descent);

AUTO_DEFINE(folder_descent, struct folder_descent, folder_descent_done);
