/* Inside image only: copying chosen files of the host into an image that strangers will read.
 *
 * A file is copied when it is root's, readable by every user of the host, not too large, and holds
 * no private key. A link is copied as it is when it stays in the folder or leads into /usr (but not
 * /usr/local) or /etc, which exist in the image; one that leads elsewhere is replaced by a copy of
 * the file it leads to, under the same rules. Everything else is left out. Copies belong to root
 * and cannot be written by others. */
#pragma once

#include <stddef.h>

#define IMAGE_COPY_FILE_MAX    (8 << 20)
#define IMAGE_COPY_ENTRIES_MAX 20000
#define IMAGE_COPY_DEPTH_MAX   6

struct image_copy {
    int root;       /* borrowed: what "/" means in links */
    size_t entries; /* copied so far, of all calls */
};

/* Copy `name` (a path, or a prefix and '*') from the directory `from` to the same place in `to`.
 * Absent: nothing. Returns 0 or -errno; -E2BIG above the limits on number and depth. */
int image_copy_named(struct image_copy *copy, int from, int to, const char *name);
