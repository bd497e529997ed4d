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
#include "keeper/tree/tree_walk.h"

/* Copy what is in `tree`, as one, to `target`, which is open for reading. Sets the umask to 0. 0,
 * or -1 with `err`; ERR_CONFLICT: the target is not empty. */
int tree_copy(const struct tree *tree, int target, struct output *output, struct error *err);

/* The job `copy-live`: the same of a tree that somebody works in, who stands still for the end
 * only.
 *
 *     input: a time  ──►  everything is copied, whatever changes meanwhile
 *                    ◄──  {"ready":true}
 *     nobody works in it any more; the input ends
 *                    ──►  what changed since that time is copied again
 *                    ◄──  the line of `copy`; its counts are of both passes together
 *
 * The copy shows the tree as it is when the input ends, exactly: times of change (which no program
 * can set) tell which files to copy again, names that are gone go, and a folder that another one's
 * name was given to is known by its number (folder_twins.h). For this nothing may be in the middle
 * of a write at the time that the input begins with: milliseconds since 1970, decimal, a line.
 * Where times do not tell everything (a filesystem in memory) all of it is copied at the end.
 *
 * Does not sync: who stands still must not wait for that. 0, or -1 with `err`; ERR_INVALID: not
 * such an input. */
int tree_copy_live(int folder, int target, int input, struct output *output, struct error *err);
