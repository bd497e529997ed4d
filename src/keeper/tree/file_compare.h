/* Whether two files have the same content, as cheaply as can be proven.
 *
 * Times and inode numbers prove nothing: times can be set, the clock of files stands still for
 * milliseconds, and forks of a disk give the same numbers to different files. On btrfs, places on
 * the disk do (sys_extents.h); everything else is read and compared. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/auto.h"

struct file_compare {
    bool has_extents;    /* places on the disk can be compared */
    char *newer, *older; /* owned */
};

/* For files beneath these two folders. */
void file_compare_init(struct file_compare *compare, int newer, int older);
void file_compare_done(struct file_compare *compare);

AUTO_DEFINE(file_compare, struct file_compare, file_compare_done);

/* Compare the regular files `newer_name` in `newer` and `older_name` in `older`, both `size` bytes
 * long; links are not followed. 1 same, 0 different, or -errno: -ESTALE when one is not what it was
 * a moment ago. */
int file_compare(struct file_compare *compare, int newer, const char *newer_name, int older,
                 const char *older_name, uint64_t size);
