/* The job `copy`: a tree with everything that overlay needs to mean the same.
 *
 * Kept are modes, owners, times (access and modification, to the nanosecond), links, hard links,
 * holes in files, pipes, whiteouts (character device 0:0, which needs no privilege), attributes
 * (attributes.h says which). Sockets are skipped: without their process they are nothing. Other
 * device nodes are refused: a sandbox cannot have made them. Both are counted. Content is read and
 * written, never shared by reference, so that the target pays for what it holds.
 *
 * The target is an empty folder; it gets the attributes of the source's top. A copy that failed is
 * not taken back: delete the target. Ends with one line of JSON when all of it is on the disk:
 *
 *     {"folders":2,"files":3,"links":1,"fifos":0,"whiteouts":0,"hard_links":1,"bytes":1234,
 *      "sockets_skipped":0,"devices_refused":0,"attributes_left_out":0,"hard_links_split":0}
 *
 * bytes is content written: holes are not in it. hard_links are further names of what was copied
 * already; hard_links_split are those that became files of their own, because the filesystem does
 * not take more names.
 *
 * Memory does not grow with the tree (but see tree_walk.h): the first copy of a file with several
 * names is found again through a folder in the target that exists only meanwhile. */
#pragma once

#include "base/error.h"
#include "keeper/output.h"

/* Copy what is in `folder` to `target`, both open for reading. Sets the umask to 0. 0, or -1 with
 * `err`; ERR_CONFLICT: the target is not empty. */
int tree_copy(int folder, int target, struct output *output, struct error *err);
