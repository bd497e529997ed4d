#include <string.h>

#include "base/memory.h"
#include "keeper/squash/squash_writer_internal.h"
#include "sys/file/sys_file.h"

void squash_writer_drop(unsigned int kind, void *thing)
{
    struct squash_node *node = thing;
    struct squash_again *again = thing;

    if (kind == SQUASH_PUT_AGAIN) {
        squash_link_taken(again->link);
        free(again);
    } else if (kind == SQUASH_PUT_ENTER || kind == SQUASH_PUT_NODE) {
        if (node->link)
            squash_link_taken(node->link);
        squash_node_free(node);
    }
}

static int too_large(struct error *err, const char *what)
{
    return error_set(err, ERR_TOO_LARGE, 0, "the tree has too many %s for an archive", what);
}

/* --- bytes ---------------------------------------------------------------------------------- */

static int write_bytes(struct squash_writer *writer, const struct squash_parcel *parcel,
                       uint32_t *ret_size, struct error *err)
{
    int result =
        sys_file_pwrite_full(writer->file, parcel->bytes, parcel->size, (off_t) writer->position);

    if (result < 0)
        return error_set(err, error_code_from_errno(result), result, "write the archive");
    writer->position += parcel->size;
    *ret_size = (uint32_t) parcel->size | (parcel->is_packed ? 0 : SQUASH_BLOCK_PLAIN);
    return 0;
}

static int take_block(struct squash_writer *writer, const struct squash_parcel *parcel,
                      struct error *err)
{
    struct squash_node *node = parcel->thing;
    uint64_t start = writer->position;

    if (parcel->length == 0) {
        node->blocks[node->block_count++] = 0;
        return 0;
    }
    if (write_bytes(writer, parcel, &node->blocks[node->block_count++], err) < 0)
        return -1;
    if (!node->has_start)
        node->start = start;
    node->has_start = true;
    return 0;
}

static int take_fragment(struct squash_writer *writer, const struct squash_parcel *parcel,
                         struct error *err)
{
    uint8_t bytes[SQUASH_FRAGMENT_SIZE];
    uint64_t start = writer->position;
    uint32_t size;

    if (write_bytes(writer, parcel, &size, err) < 0)
        return -1;
    (void) squash_put32(squash_put32(squash_put64(bytes, start), size), 0);
    squash_table_append(&writer->fragments, bytes, sizeof(bytes));
    return 0;
}

/* --- names ---------------------------------------------------------------------------------- */

static int list(struct squash_writer *writer, const char *name, size_t length,
                enum squash_type type, uint64_t place, uint32_t number, struct error *err)
{
    struct squash_listing *listing = &writer->open[writer->open_count - 1].listing;
    size_t before = listing->used;

    squash_listing_add(listing, name, length, type, place, number);
    writer->listed += listing->used - before;
    return writer->listed > SQUASH_LISTINGS_MAX ? too_large(err, "names in its folders") : 0;
}

static int write_node(struct squash_writer *writer, const struct squash_node *node,
                      uint64_t *ret_place, struct error *err)
{
    *ret_place = squash_node_write(node, &writer->inodes);
    if (writer->inodes.size + writer->folders.size + writer->xattrs.pairs.size > SQUASH_TABLES_MAX)
        return too_large(err, "files");
    return 0;
}

static int take_node(struct squash_writer *writer, const struct squash_parcel *parcel,
                     struct error *err)
{
    AUTO(squash_node) struct squash_node *node = parcel->thing;
    uint64_t place;
    int result = write_node(writer, node, &place, err);

    if (node->link) {
        node->link->place = place;
        node->link->number = node->number;
        node->link->type = node->type;
        squash_link_taken(node->link);
    }
    return result < 0
               ? -1
               : list(writer, node->name, node->name_length, node->type, place, node->number, err);
}

static int take_again(struct squash_writer *writer, const struct squash_parcel *parcel,
                      struct error *err)
{
    AUTO(free) struct squash_again *again = parcel->thing;
    struct squash_link *link = again->link;
    uint64_t place = link->place;
    uint32_t number = link->number;
    enum squash_type type = link->type;

    squash_link_taken(link);
    return list(writer, again->name, again->name_length, type, place, number, err);
}

/* --- folders -------------------------------------------------------------------------------- */

static int take_enter(struct squash_writer *writer, const struct squash_parcel *parcel,
                      struct error *err)
{
    (void) err;
    if (writer->open_count == writer->open_capacity) {
        writer->open_capacity = writer->open_capacity ? writer->open_capacity * 2 : 64;
        writer->open = mem_resize(writer->open, writer->open_capacity * sizeof(*writer->open));
    }
    writer->open[writer->open_count++] = (struct squash_open_folder){.node = parcel->thing};
    return 0;
}

static int take_leave(struct squash_writer *writer, const struct squash_parcel *parcel,
                      struct error *err)
{
    struct squash_open_folder *folder = &writer->open[--writer->open_count];
    AUTO(squash_node) struct squash_node *node = folder->node;
    uint64_t place;
    int result;

    (void) parcel;
    if (writer->open_count == 0)
        node->parent = writer->inode_count + 1; /* what the format wants of the top */
    writer->listed -= folder->listing.used;
    result = squash_listing_write(&folder->listing, &writer->folders, node);
    squash_listing_done(&folder->listing);
    if (result < 0)
        return too_large(err, "names in one folder");
    if (write_node(writer, node, &place, err) < 0)
        return -1;
    if (writer->open_count == 0) {
        writer->root = place;
        return 0;
    }
    return list(writer, node->name, node->name_length, SQUASH_FOLDER, place, node->number, err);
}

int squash_writer_take(void *owner, const struct squash_parcel *parcel, struct error *err)
{
    static int (*const takes[])(struct squash_writer *, const struct squash_parcel *,
                                struct error *) = {
        [SQUASH_PUT_ENTER] = take_enter, [SQUASH_PUT_LEAVE] = take_leave,
        [SQUASH_PUT_NODE] = take_node,   [SQUASH_PUT_AGAIN] = take_again,
        [SQUASH_PUT_BLOCK] = take_block, [SQUASH_PUT_FRAGMENT] = take_fragment,
    };

    return takes[parcel->kind](owner, parcel, err);
}
