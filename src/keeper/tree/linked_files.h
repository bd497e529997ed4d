/* Which names of a tree are one file (hard links).
 *
 * The tree is walked once for it. Only files with several names in this tree are remembered, by
 * inode number: 80 bytes each, LINKED_FILES_MAX of them. Of their names a digest is kept, which is
 * the same for two trees when the same paths are one file in both. Folders have one name, and
 * whiteouts are left out: overlay makes as many of them one file as it likes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/auto.h"
#include "base/error.h"
#include "keeper/tree/tree_walk.h"

#define LINKED_FILES_MAX    ((size_t) 1 << 20)
#define LINKED_FILES_DIGEST 16

struct linked_file {
    uint64_t inode; /* 0: an empty place */
    uint8_t names[LINKED_FILES_DIGEST];
    uint32_t count;  /* of names found */
    bool is_kept;    /* for the caller, false at first */
    uint64_t number; /* for the caller, 0 at first */
};

struct linked_files {
    struct linked_file *places; /* owned: a table with open addressing */
    size_t capacity;            /* a power of two, or 0 */
    size_t used;
    bool is_scanned;
};

#define LINKED_FILES_INIT                                                                          \
    {                                                                                              \
        .places = NULL                                                                             \
    }

void linked_files_done(struct linked_files *files);

AUTO_DEFINE(linked_files, struct linked_files, linked_files_done);

/* The file with this status in `tree`, whose walk happens when the first file is asked for that may
 * have several names. *ret_file is NULL for one that has not; borrowed. 0, or -1 with `err`:
 * ERR_TOO_LARGE when there are too many. */
int linked_files_find(struct linked_files *files, const struct tree *tree,
                      const struct stat *status, struct linked_file **ret_file, struct error *err);
