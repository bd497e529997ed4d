/* Inside the writer of squashfs: the attributes of all files, each set stored once. */
#pragma once

#include "base/table.h"
#include "base/text.h"
#include "keeper/squash/squash_table.h"

/* Different sets in one archive. */
#define SQUASH_XATTR_SETS_MAX ((uint32_t) 1 << 20)

struct squash_xattrs {
    struct squash_table pairs; /* metadata: names and values */
    struct squash_table ids;   /* metadata: where each set is */
    struct table known;        /* of sets, by their digest */
    uint32_t count;            /* sets */
    struct text set;           /* being put together */
    uint32_t pair_count;
};

void squash_xattrs_init(struct squash_xattrs *xattrs, struct squash_codec *codec);
void squash_xattrs_done(struct squash_xattrs *xattrs);

/* Add to the set. False: squashfs has no place for an attribute of that name. */
bool squash_xattrs_add(struct squash_xattrs *xattrs, const char *name, const void *value,
                       size_t length);

/* The index of the set, SQUASH_NONE of an empty one; the next one begins. 0, or -EFBIG. */
int squash_xattrs_finish(struct squash_xattrs *xattrs, uint32_t *ret_index);

/* Write everything to `file` at `*offset`, which moves on. `ret_start` is for the superblock. 0 or
 * -errno. */
int squash_xattrs_write(struct squash_xattrs *xattrs, int file, uint64_t *offset,
                        uint64_t *ret_start);
