/* Inside squash_image: its state, and what its files call of each other. */
#pragma once

#include "keeper/squash/squash_codec.h"
#include "keeper/squash/squash_image.h"

/* An unpacked block of metadata. */
struct squash_metadata {
    uint64_t position; /* in the file; 0: empty, since there is the superblock */
    uint64_t next;     /* where the next block begins */
    uint64_t used;     /* when, for the eviction */
    uint32_t size;
    uint8_t bytes[SQUASH_METADATA_SIZE];
};

struct squash_image {
    int file; /* borrowed */
    struct squash_superblock superblock;
    struct squash_codec *codec;    /* owned */
    struct squash_metadata *cache; /* owned: SQUASH_IMAGE_CACHE */
    uint64_t clock;
    uint32_t *ids; /* owned */

    uint8_t *packed;   /* owned: of a block, as the next two */
    uint8_t *block;    /* owned */
    uint8_t *fragment; /* owned: the unpacked fragment that was used last */
    uint32_t fragment_index;
    size_t fragment_size;

    uint64_t xattr_pairs; /* where they begin */
    uint32_t xattr_count; /* of sets */
    uint8_t *value;       /* owned: of an attribute; NULL until needed */
};

/* "the archive is broken: ...". -1, which analyzers see. */
#define squash_broken(err, what)                                                                   \
    error_set((err), ERR_INVALID, 0, "the archive is broken: %s", (what))

/* Read bytes of the file that must be there. */
int squash_image_read(struct squash_image *image, void *buffer, size_t size, uint64_t offset,
                      struct error *err);

/* Read metadata; the cursor moves on. */
int squash_image_metadata(struct squash_image *image, struct squash_cursor *cursor, void *buffer,
                          size_t size, struct error *err);

/* Entry `index` of `size` bytes in a table that is found through a list of its blocks at `list`. */
int squash_image_entry(struct squash_image *image, uint64_t list, uint64_t index, size_t size,
                       void *buffer, struct error *err);
