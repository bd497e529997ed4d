/* What a folder of Unix knows of a file and a bucket does not: mode, owner, time of change. Kept as
 * metadata of the object, with the names and forms of s3fs, so that both read each other's files:
 *
 *     mode   33188        type and permissions, decimal
 *     uid    1000
 *     gid    1000
 *     mtime  1700000000   or with a fraction: 1700000000.123456789
 *
 * Metadata is written by strangers: what cannot be read, or is not a file, a folder or a symbolic
 * link, counts as not there. Pure, thread-safe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "objects/objects.h"

/* Ids that a sandbox has; others could not be shown in it. */
#define MOUNT_ID_MAX 65535

struct mount_marks {
    mode_t mode; /* type included */
    uint32_t uid, gid;
    int64_t seconds;
    uint32_t nanoseconds;
};

/* Change those of `marks` that the object has something to say about. */
void mount_marks_read(struct mount_marks *marks, const struct object_info *info);

#define MOUNT_MARKS_COUNT 4

/* Metadata to put, and the memory of its values. */
struct mount_marks_text {
    char values[MOUNT_MARKS_COUNT][32];
    struct object_pair pairs[MOUNT_MARKS_COUNT];
};

void mount_marks_write(const struct mount_marks *marks, struct mount_marks_text *ret_text);
