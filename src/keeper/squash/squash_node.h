/* Inside the writer of squashfs: one inode, from when its file is met until its bytes are known. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "keeper/squash/squash_table.h"

struct squash_link;

struct squash_node {
    enum squash_type type;
    uint16_t mode;     /* 07777 */
    uint16_t uid, gid; /* indices into the id table */
    uint32_t mtime;
    uint32_t number;
    uint32_t links;
    uint32_t xattr;  /* index, or SQUASH_NONE */
    uint32_t device; /* of device nodes */

    /* Of files. */
    uint64_t size;
    uint64_t start; /* of the first block that is no hole */
    bool has_start;
    uint64_t sparse;  /* bytes in blocks of zeros */
    uint32_t *blocks; /* owned: sizes */
    size_t block_count;
    uint32_t fragment, fragment_offset;
    struct squash_link *link; /* borrowed: it has further names */

    char *target; /* owned: of links */

    /* Of folders. */
    uint32_t parent;
    uint64_t listing_place;
    uint32_t listing_size;
    uint8_t *index; /* owned: of a listing that is longer than a metadata block */
    size_t index_size;
    uint16_t index_count;

    size_t name_length;
    char name[];
};

/* A node of the type and rights that `status` says; 0 and none for the rest. */
struct squash_node *squash_node_new(const char *name, const struct stat *status);

/* Accepts NULL. */
void squash_node_free(struct squash_node *node);

AUTO_DEFINE_PTR(squash_node, struct squash_node, squash_node_free);

/* Append its inode, the small kind where that says everything. Returns its place. */
uint64_t squash_node_write(const struct squash_node *node, struct squash_table *inodes);
