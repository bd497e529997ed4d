#include "keeper/squash/squash_table.h"

#include <string.h>

#include "base/memory.h"
#include "sys/file/sys_file.h"

#define CHUNK_SIZE ((size_t) 256 << 10)

void squash_table_init(struct squash_table *table, struct squash_codec *codec)
{
    *table = (struct squash_table){.codec = codec};
}

void squash_table_done(struct squash_table *table)
{
    for (size_t i = 0; i < table->chunk_count; i++)
        free(table->chunks[i]);
    free((void *) table->chunks);
    free(table->starts);
    table->chunks = NULL;
    table->starts = NULL;
    table->chunk_count = 0;
}

static uint8_t *last_chunk(struct squash_table *table)
{
    if (table->size / CHUNK_SIZE < table->chunk_count)
        return table->chunks[table->chunk_count - 1];
    if (table->chunk_count == table->chunk_capacity) {
        table->chunk_capacity = table->chunk_capacity ? table->chunk_capacity * 2 : 16;
        table->chunks =
            mem_resize((void *) table->chunks, table->chunk_capacity * sizeof(*table->chunks));
    }
    return table->chunks[table->chunk_count++] = mem_alloc(CHUNK_SIZE);
}

static void store(struct squash_table *table, const uint8_t *bytes, size_t length)
{
    while (length) {
        uint8_t *chunk = last_chunk(table);
        size_t at = table->size % CHUNK_SIZE;
        size_t part = length < CHUNK_SIZE - at ? length : CHUNK_SIZE - at;

        memcpy(chunk + at, bytes, part);
        table->size += part;
        bytes += part;
        length -= part;
    }
}

static void note_start(struct squash_table *table)
{
    if (table->block_count == table->start_capacity) {
        table->start_capacity = table->start_capacity ? table->start_capacity * 2 : 64;
        table->starts = mem_resize(table->starts, table->start_capacity * sizeof(*table->starts));
    }
    table->starts[table->block_count++] = table->size;
}

void squash_table_close(struct squash_table *table)
{
    uint8_t packed[SQUASH_METADATA_SIZE], header[2];
    size_t size;

    if (!table->used)
        return;
    size = squash_codec_pack(table->codec, table->block, table->used, packed);
    note_start(table);
    (void) squash_put16(header, (uint16_t) (size ? size : table->used | SQUASH_METADATA_PLAIN));
    store(table, header, sizeof(header));
    store(table, size ? packed : table->block, size ? size : table->used);
    table->used = 0;
}

void squash_table_append(struct squash_table *table, const void *bytes, size_t length)
{
    const uint8_t *at = bytes;

    while (length) {
        size_t room = sizeof(table->block) - table->used;
        size_t part = length < room ? length : room;

        memcpy(table->block + table->used, at, part);
        table->used += part;
        at += part;
        length -= part;
        if (table->used == sizeof(table->block))
            squash_table_close(table);
    }
}

int squash_table_write(const struct squash_table *table, int file, uint64_t offset)
{
    uint64_t left = table->size;
    int result = 0;

    for (size_t i = 0; result == 0 && left; i++) {
        size_t part = left < CHUNK_SIZE ? (size_t) left : CHUNK_SIZE;

        result = sys_file_pwrite_full(file, table->chunks[i], part, (off_t) offset);
        offset += part;
        left -= part;
    }
    return result;
}
