/* Paths that clients give: where they begin, and how they are written back.
 *
 * There is no jail: the agent's filesystem is the client's own. A path is not empty, has no NUL and
 * at most FILE_PATH_MAX bytes. A relative one begins at a directory of the session. */
#pragma once

#include <stddef.h>

#include "base/auto.h"
#include "base/pool.h"

#define FILE_PATH_MAX ((size_t) 4096)

/* Returns 0, -EINVAL for an empty path or one with NUL inside, or -ENAMETOOLONG. */
int file_path_check(const char *path, size_t length);

/* The absolute path, in the pool: `path` itself or behind `directory`, without empty components,
 * "." and slashes at the end. ".." stays: what it means depends on links. */
char *file_path_join(struct pool *pool, const char *directory, const char *path);

/* The last component of a path that file_path_join made; "" for the root. */
const char *file_path_name(const char *absolute);

/* A path and what it is relative to, as openat wants them. */
struct file_place {
    int base;             /* owned; AT_FDCWD for an absolute path */
    const char *path;     /* borrowed: as the client gave it */
    const char *absolute; /* borrowed: for people and replies */
};

#define FILE_PLACE_INIT                                                                            \
    {                                                                                              \
        .base = -EBADF                                                                             \
    }

/* `path` was checked. `directory` is where relative ones begin; it is opened for those only.
 * Returns 0 or -errno. `place` keeps `path` and memory of the pool. */
int file_place_open(struct file_place *place, const char *directory, const char *path,
                    struct pool *pool);

void file_place_done(struct file_place *place);

AUTO_DEFINE(file_place, struct file_place, file_place_done);
