/* The job `list`: one line of JSON per entry, in the order of the walk (tree_walk.h).
 *
 *     {"path":"u/a","type":"file","mode":"0644","uid":0,"gid":0,"size":5,"links":1,
 *      "mtime":1700000000,"mtime_ns":123456789,"attributes":["user.a"]}
 *
 * path        from the top, which is "."; escaped as in name_escape.h. A path longer than
 *             TREE_LIST_PATH_MAX bytes is left out, since a deep chain would cost the square of
 *             its depth: there `depth` and `name` stand in its place, and the entry lies in the
 *             last folder listed with a depth one less.
 * type        file, folder, link, fifo, socket, character, block
 * size        of files and links only
 * target      of links only, escaped likewise
 * device      of device nodes only: [major, minor]; [0, 0] is overlay's whiteout
 * attributes  names of extended attributes that we may see, in order
 *
 * It ends with {"entries":N}: a list without that line is not whole. */
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "keeper/output.h"

#define TREE_LIST_PATH_MAX 4096

/* List what is in `folder`. 0, or -1 with `err`. */
int tree_list(int folder, struct output *output, struct error *err);

/* The text of a type. Static, never NULL. */
const char *tree_list_type(mode_t mode);
