#include <string.h>

#include "base/memory.h"
#include "keeper/squash/squash_writer_internal.h"

/* The index of a long folder helps those who mount an archive and look up one name. The library
 * counts its entries, of 13 bytes and more, in 16 bits. */
#define INDEX_SIZE_MAX ((size_t) 13 * UINT16_MAX)

/* Before each name in a listing. */
struct entry {
    uint64_t place; /* of the inode */
    uint32_t number;
    uint16_t type;
    uint16_t size; /* of the name with its NUL */
};

int squash_too_large(struct error *err, const char *what)
{
    return error_set(err, ERR_TOO_LARGE, 0, "the tree has too many %s for an archive", what);
}

/* --- blocks --------------------------------------------------------------------------------- */

/* Blocks that are holes have their entry, 0, already. */
static void note_block(struct squash_node *node, uint32_t word, uint64_t location)
{
    sqfs_inode_generic_t *inode = node->inode;

    if (inode->data.file_ext.blocks_start == 0)
        inode->data.file_ext.blocks_start = location;
    while (inode->extra[node->written] == 0)
        node->written++;
    inode->extra[node->written++] = word;
}

/* When a block cannot be written, the library stops and never frees the others it has. So it is not
 * told: whoever asks for something next sees it by the output's error. */
int squash_writer_take_block(sqfs_block_writer_t *base, void *user, sqfs_u32 size,
                             sqfs_u32 checksum, sqfs_u32 flags, const sqfs_u8 *bytes,
                             sqfs_u64 *ret_location)
{
    struct squash_writer *writer = CONTAINER_OF(base, struct squash_writer, block_writer);
    uint32_t word = size | (flags & SQFS_BLK_IS_COMPRESSED ? 0 : SQUASH_BLOCK_PLAIN);

    (void) checksum;
    *ret_location = writer->output.size;
    if (writer->output.error || squash_output_append(&writer->output, bytes, size) < 0)
        return 0;
    if (!user)
        return sqfs_frag_table_append(writer->fragments, *ret_location, word, NULL);
    note_block(user, word, *ret_location);
    return 0;
}

/* --- inodes --------------------------------------------------------------------------------- */

static int write_inode(struct squash_writer *writer, const sqfs_inode_generic_t *inode,
                       uint64_t *ret_place, struct error *err)
{
    uint64_t block;
    uint32_t offset;
    int result;

    sqfs_meta_writer_get_position(writer->inodes.meta, &block, &offset);
    *ret_place = block << 16 | offset;
    result = sqfs_meta_writer_write_inode(writer->inodes.meta, inode);
    if (result < 0)
        return squash_library_error(result, &writer->output, err);
    if (writer->inodes.output.size + writer->folders.output.size + writer->xattrs_size >
        SQUASH_TABLES_MAX)
        return squash_too_large(err, "files");
    return 0;
}

static int list_name(struct squash_writer *writer, const struct squash_node *node, uint64_t place,
                     uint32_t number, struct error *err)
{
    struct squash_open_folder *folder = &writer->open[writer->open_count - 1];
    struct entry entry = {place, number, (uint16_t) node->type,
                          (uint16_t) (strlen(node->name) + 1)};

    text_append_bytes(&folder->listing, &entry, sizeof(entry));
    text_append_bytes(&folder->listing, node->name, entry.size);
    folder->folders += S_ISDIR(node->type);
    writer->listed += sizeof(entry) + entry.size;
    return writer->listed > SQUASH_LISTINGS_MAX ? squash_too_large(err, "names in its folders") : 0;
}

static int take_other(struct squash_writer *writer, struct squash_node *node, struct error *err)
{
    uint64_t place;

    if (sqfs_inode_make_basic(node->inode) < 0 || write_inode(writer, node->inode, &place, err) < 0)
        return -1;
    if (node->link) {
        node->link->place = place;
        node->link->number = node->inode->base.inode_number;
        squash_links_written(&writer->links, node->link);
    }
    return list_name(writer, node, place, node->inode->base.inode_number, err);
}

static int take_again(struct squash_writer *writer, struct squash_node *node, struct error *err)
{
    uint64_t place = node->link->place;
    uint32_t number = node->link->number;

    squash_links_written(&writer->links, node->link);
    return list_name(writer, node, place, number, err);
}

/* --- folders -------------------------------------------------------------------------------- */

static void take_enter(struct squash_writer *writer, struct squash_node *node)
{
    if (writer->open_count == writer->open_capacity) {
        writer->open_capacity = writer->open_capacity ? writer->open_capacity * 2 : 64;
        writer->open = mem_resize(writer->open, writer->open_capacity * sizeof(*writer->open));
    }
    writer->open[writer->open_count++] = (struct squash_open_folder){
        .node = node,
        .listing = TEXT_INIT(SQUASH_LISTINGS_MAX * 2),
    };
}

static int write_listing(struct squash_writer *writer, const struct text *listing)
{
    sqfs_dir_writer_t *folder = writer->folder_writer;
    int result = sqfs_dir_writer_begin(folder, 0);
    struct entry entry;

    for (size_t at = 0; result == 0 && at < listing->length; at += entry.size) {
        memcpy(&entry, listing->data + at, sizeof(entry));
        at += sizeof(entry);
        result = sqfs_dir_writer_add_entry(folder, listing->data + at, entry.number, entry.place,
                                           entry.type);
    }
    return result < 0 ? result : sqfs_dir_writer_end(folder);
}

/* The library makes the inode, but counts links as it likes. */
static sqfs_inode_generic_t *new_folder_inode(struct squash_writer *writer,
                                              const struct squash_open_folder *folder)
{
    const struct squash_node *node = folder->node;
    sqfs_inode_generic_t *inode =
        sqfs_dir_writer_create_inode(writer->folder_writer, 0, node->xattr, node->parent);
    uint16_t type;

    if (!inode)
        return NULL;
    type = inode->base.type;
    inode->base = node->inode->base;
    inode->base.type = type;
    if (type == SQFS_INODE_DIR) {
        inode->data.dir.nlink = 2 + folder->folders;
    } else {
        inode->data.dir_ext.nlink = 2 + folder->folders;
        if (inode->payload_bytes_used > INDEX_SIZE_MAX) {
            inode->payload_bytes_used = 0;
            inode->data.dir_ext.inodex_count = 0;
        }
    }
    return inode;
}

static int take_leave(struct squash_writer *writer, struct error *err)
{
    struct squash_open_folder *folder = &writer->open[--writer->open_count];
    AUTO(squash_node) struct squash_node *node = folder->node;
    int result = write_listing(writer, &folder->listing);
    sqfs_inode_generic_t *inode;
    uint64_t place;

    if (writer->open_count == 0)
        node->parent = writer->inode_count + 1; /* what the format wants of the top */
    writer->listed -= folder->listing.length;
    text_done(&folder->listing);
    if (result < 0)
        return squash_library_error(result, &writer->output, err);
    inode = new_folder_inode(writer, folder);
    if (!inode)
        return squash_library_error(SQFS_ERROR_ALLOC, &writer->output, err);
    result = write_inode(writer, inode, &place, err);
    sqfs_free(inode);
    if (result < 0)
        return -1;
    if (writer->open_count)
        return list_name(writer, node, place, node->inode->base.inode_number, err);
    writer->root = place;
    return 0;
}

/* --- all ------------------------------------------------------------------------------------ */

static int take_node(struct squash_writer *writer, struct squash_node *node, struct error *err)
{
    int result = -1;

    if (node->kind == SQUASH_NODE_ENTER) {
        take_enter(writer, node);
        return 0;
    }
    if (node->kind == SQUASH_NODE_LEAVE)
        result = take_leave(writer, err);
    else if (node->kind == SQUASH_NODE_OTHER)
        result = take_other(writer, node, err);
    else
        result = take_again(writer, node, err);
    squash_node_free(node);
    return result;
}

int squash_writer_take_nodes(struct squash_writer *writer, struct error *err)
{
    size_t count = writer->node_count;
    int result = sqfs_block_processor_sync(writer->processor);

    if (result == 0 && writer->output.error)
        result = SQFS_ERROR_IO;
    if (result < 0)
        return squash_library_error(result, &writer->output, err);
    writer->node_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct squash_node *node = writer->nodes[i];

        if (result == 0)
            result = take_node(writer, node, err);
        else
            squash_node_free(node);
    }
    return result;
}
