/* Deleting a tree that a stranger filled.
 *
 * Nothing outside the tree is touched, whatever is in it: links are removed and never followed, and
 * every step goes by descriptor. It works for directories that may not be read or changed (when
 * the caller may change their mode), and at any depth: at most SYS_TREE_DEPTH_MAX levels are open
 * at once, and a directory beneath those is moved to the top of the tree and done from there. So
 * there is no recursion, and memory and descriptors have a bound.
 *
 * Meant for a helper process: it takes as long as the tree is large. Nobody else should work in the
 * tree; whoever does may make it fail with -ENOTEMPTY, not make it leave the tree. */
#pragma once

#include <stdint.h>

#define SYS_TREE_DEPTH_MAX 48

/* Remove `name` (one component) from `directory`, with everything in it when it is a directory.
 * Returns 0, also when it is gone already, or the -errno of the first thing that could not be
 * removed; what was removed stays removed, and calling again goes on. -EINVAL: not a name. May
 * block for long. */
int sys_tree_delete(int directory, const char *name);

/* The same, unless there is more in it than `entries`: then -E2BIG, with some of it gone. */
int sys_tree_delete_small(int directory, const char *name, unsigned int entries);

/* Remove everything in `directory`, which is open for reading, but not itself. */
int sys_tree_empty(int directory);
