/* Inside the writer of squashfs: a table of metadata blocks that grows in memory, packed. */
#pragma once

#include "base/auto.h"
#include "keeper/squash/squash_codec.h"
#include "keeper/squash/squash_format.h"

struct squash_table {
    struct squash_codec *codec; /* borrowed */
    uint8_t **chunks;           /* owned, and each of them */
    size_t chunk_count, chunk_capacity;
    uint64_t size;    /* of all packed blocks, headers included */
    uint64_t *starts; /* owned: where each block begins */
    size_t block_count, start_capacity;
    size_t used; /* of the block that is not full yet */
    uint8_t block[SQUASH_METADATA_SIZE];
};

void squash_table_init(struct squash_table *table, struct squash_codec *codec);
void squash_table_done(struct squash_table *table);

AUTO_DEFINE(squash_table, struct squash_table, squash_table_done);

/* The place of what is appended next. */
static inline uint64_t squash_table_place(const struct squash_table *table)
{
    return table->size << 16 | table->used;
}

void squash_table_append(struct squash_table *table, const void *bytes, size_t length);

/* Pack the last block; nothing may be appended behind it. */
void squash_table_close(struct squash_table *table);

/* Write a closed table to `file` at `offset`. 0 or -errno. */
int squash_table_write(const struct squash_table *table, int file, uint64_t offset);
