/* Inside the writer of squashfs: what is in a folder, gathered until all of it is known. */
#pragma once

#include "keeper/squash/squash_node.h"

struct squash_listing {
    uint8_t *bytes; /* owned: entries with their names, one after the other */
    size_t used, capacity;
    uint32_t folders; /* among them */
};

void squash_listing_done(struct squash_listing *listing);

/* Names come in the order of their bytes. `place` and `number` are of the inode. */
void squash_listing_add(struct squash_listing *listing, const char *name, size_t length,
                        enum squash_type type, uint64_t place, uint32_t number);

/* Append it to the directory table and tell `folder` where it is. 0, or -EFBIG: so many names that
 * the format cannot count them. */
int squash_listing_write(const struct squash_listing *listing, struct squash_table *table,
                         struct squash_node *folder);
