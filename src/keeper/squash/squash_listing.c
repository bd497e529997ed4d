#include "keeper/squash/squash_listing.h"

#include <string.h>

#include "base/memory.h"

#define CAPACITY_MIN ((size_t) 512)

/* Before each name. */
struct entry {
    uint64_t place;
    uint32_t number;
    uint16_t type;
    uint16_t length;
};

struct run {
    struct squash_table *table;
    struct squash_node *folder;
    uint64_t written; /* bytes of the listing so far */
    size_t index_capacity;
};

void squash_listing_done(struct squash_listing *listing)
{
    free(listing->bytes);
    *listing = (struct squash_listing){.bytes = NULL};
}

void squash_listing_add(struct squash_listing *listing, const char *name, size_t length,
                        enum squash_type type, uint64_t place, uint32_t number)
{
    struct entry entry = {place, number, (uint16_t) type, (uint16_t) length};
    size_t needed = listing->used + sizeof(entry) + length;

    if (needed > listing->capacity) {
        listing->capacity = listing->capacity * 2 > needed ? listing->capacity * 2 : needed;
        if (listing->capacity < CAPACITY_MIN)
            listing->capacity = CAPACITY_MIN;
        listing->bytes = mem_resize(listing->bytes, listing->capacity);
    }
    memcpy(listing->bytes + listing->used, &entry, sizeof(entry));
    memcpy(listing->bytes + listing->used + sizeof(entry), name, length);
    listing->used = needed;
    listing->folders += type == SQUASH_FOLDER;
}

static struct entry entry_at(const struct squash_listing *listing, size_t at)
{
    struct entry entry;

    memcpy(&entry, listing->bytes + at, sizeof(entry));
    return entry;
}

/* How many entries, beginning at `from`, can follow one header: their inodes begin in one metadata
 * block, their numbers are near, and the header of the next run will be in another block than this
 * one if it comes to that, so that an index can point there. */
static uint32_t count_run(const struct squash_listing *listing, size_t from, size_t offset)
{
    struct entry first = entry_at(listing, from);
    size_t at = from, size = offset + SQUASH_FOLDER_HEADER_SIZE;
    uint32_t count = 0;

    while (at < listing->used && count < SQUASH_FOLDER_RUN_MAX && size < SQUASH_METADATA_SIZE) {
        struct entry entry = entry_at(listing, at);
        int64_t distance = (int64_t) entry.number - first.number;

        if (entry.place >> 16 != first.place >> 16 || distance < INT16_MIN || distance > INT16_MAX)
            break;
        count++;
        at += sizeof(entry) + entry.length;
        size += SQUASH_FOLDER_ENTRY_SIZE + entry.length;
    }
    return count ? count : 1;
}

/* The next run begins in another metadata block than the last one: say so in the index. */
static int add_index(struct run *run, const uint8_t *name, uint16_t length)
{
    struct squash_node *folder = run->folder;
    uint8_t *at;

    if (folder->index_count == UINT16_MAX)
        return -EFBIG;
    if (folder->index_size + 12 + length > run->index_capacity) {
        run->index_capacity = run->index_capacity * 2 + 12 + length;
        folder->index = mem_resize(folder->index, run->index_capacity);
    }
    at = squash_put32(folder->index + folder->index_size, (uint32_t) run->written);
    at = squash_put32(at, (uint32_t) run->table->size);
    at = squash_put32(at, length - 1u);
    memcpy(at, name, length);
    folder->index_size += 12u + length;
    folder->index_count++;
    return 0;
}

static void write_header(struct run *run, const struct entry *first, uint32_t count)
{
    uint8_t bytes[SQUASH_FOLDER_HEADER_SIZE];

    (void) squash_put32(
        squash_put32(squash_put32(bytes, count - 1), (uint32_t) (first->place >> 16)),
        first->number);
    squash_table_append(run->table, bytes, sizeof(bytes));
    run->written += sizeof(bytes);
}

static void write_entry(struct run *run, const struct entry *entry, uint32_t base,
                        const uint8_t *name)
{
    uint8_t bytes[SQUASH_FOLDER_ENTRY_SIZE];
    uint8_t *at = squash_put16(bytes, (uint16_t) entry->place);

    at = squash_put16(at, (uint16_t) (entry->number - base));
    at = squash_put16(at, entry->type);
    (void) squash_put16(at, (uint16_t) (entry->length - 1));
    squash_table_append(run->table, bytes, sizeof(bytes));
    squash_table_append(run->table, name, entry->length);
    run->written += sizeof(bytes) + entry->length;
}

int squash_listing_write(const struct squash_listing *listing, struct squash_table *table,
                         struct squash_node *folder)
{
    struct run run = {.table = table, .folder = folder};
    uint64_t last_block = table->size;
    size_t at = 0;

    folder->listing_place = squash_table_place(table);
    while (at < listing->used) {
        struct entry first = entry_at(listing, at);
        uint32_t count = count_run(listing, at, table->used);

        if (table->size != last_block &&
            add_index(&run, listing->bytes + at + sizeof(first), first.length) < 0)
            return -EFBIG;
        last_block = table->size;
        write_header(&run, &first, count);
        for (; count; count--) {
            struct entry entry = entry_at(listing, at);

            write_entry(&run, &entry, first.number, listing->bytes + at + sizeof(entry));
            at += sizeof(entry) + entry.length;
        }
    }
    if (run.written > UINT32_MAX - SQUASH_FOLDER_LISTING_BASE)
        return -EFBIG;
    folder->listing_size = (uint32_t) run.written;
    folder->links = 2 + listing->folders;
    return 0;
}
