/* The job `measure`: how much is in a tree. One line of JSON:
 *
 *     {"files":3,"folders":2,"links":1,"others":0,"names":8,"bytes":1234,"allocated":8192}
 *
 * files, folders, links (symbolic), others    the top counts among the folders
 * bytes                                       of content, as `size` in a list; files and links
 * allocated                                   on disk, folders included, as far as stat tells
 * names                                       a file with two names (hard links) is one file
 *
 * Sums that JSON readers cannot hold stop at 2^63 - 1: a sparse file is as long as it likes.
 *
 * A file with several names is counted once without remembering files: with n names it adds a nth
 * part at each. That is exact when all of them lie in the tree, as they do in a whole disk. */
#pragma once

#include "base/error.h"
#include "keeper/output.h"

/* Measure what is in `folder`. 0, or -1 with `err`. */
int tree_measure(int folder, struct output *output, struct error *err);
