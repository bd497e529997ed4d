/* Where the content of a file lies on the disk: a cheap proof that two files are the same.
 *
 * btrfs never overwrites what a snapshot refers to. Two files of one such filesystem whose content
 * lies at the same places therefore have the same content, whatever their names, times and inode
 * numbers say. No rights are needed beyond the open files. Thread-safe, may block. */
#pragma once

#include <stdbool.h>

/* Whether both (open files or folders) lie in the same btrfs filesystem, in whichever subvolume. */
bool sys_extents_comparable(int left, int right);

/* Whether all of both files lies at the same places; what is not yet on the disk is written first.
 * Only for files that are comparable. 1: the same content. 0: not known, look at it: it may be the
 * same all the same (small files lie in the metadata, compressed ones are not believed). -errno. */
int sys_extents_same(int left, int right);
