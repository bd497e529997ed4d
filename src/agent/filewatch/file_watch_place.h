/* Where a file watch is: from what a client wrote to a folder that exists, inside a root. */
#pragma once

#include "agent/filewatch/file_watch_tree.h"

/* Find the folder, or the folder around a file, behind a normalized path; links are followed as
 * long as they end inside `root`. Returns 0 with a place the caller owns, or -errno; -EXDEV:
 * outside of `root`. Who changes links meanwhile gets an error, never something outside. */
int watch_place_find(const char *root, const char *path, struct watch_place *ret_place);
