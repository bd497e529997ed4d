/* Where a file watch is: from what a client wrote to a folder that exists, inside a root. */
#pragma once

#include "agent/filewatch/file_watch_tree.h"
#include "base/pool.h"

/* `path` with "." and ".." resolved by their text; relative ones begin at `root`. In the pool. */
char *watch_place_normalize(const char *root, const char *path, struct pool *pool);

/* Whether a normalized path is `root` or inside it, by its text. */
bool watch_place_is_inside(const char *root, const char *path);

/* Find the folder, or the folder around a file, behind a normalized path; links are followed as
 * long as they end inside `root`. Returns 0 with a place the caller owns, or -errno; -EXDEV:
 * outside of `root`. Who changes links meanwhile gets an error, never something outside. */
int watch_place_find(const char *root, const char *path, struct watch_place *ret_place);
