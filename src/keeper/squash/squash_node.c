#include "keeper/squash/squash_node.h"

#include <string.h>
#include <sys/sysmacros.h>

#include "base/memory.h"

/* The largest inode without what follows it: an extended file. */
#define FIXED_MAX 64

static const struct {
    mode_t format;
    enum squash_type type;
} types[] = {
    {S_IFDIR, SQUASH_FOLDER},           {S_IFREG, SQUASH_FILE}, {S_IFLNK, SQUASH_LINK},
    {S_IFBLK, SQUASH_BLOCK_DEVICE},     {S_IFIFO, SQUASH_FIFO}, {S_IFSOCK, SQUASH_SOCKET},
    {S_IFCHR, SQUASH_CHARACTER_DEVICE},
};

static enum squash_type type_of(mode_t mode)
{
    for (size_t i = 0; i < ARRAY_COUNT(types); i++)
        if (types[i].format == (mode & S_IFMT))
            return types[i].type;
    abort(); /* Linux has no other */
}

/* As the kernel writes them down: 8 bits of minor, 12 of major, the rest of minor. */
static uint32_t encode_device(dev_t device)
{
    return (uint32_t) ((minor(device) & 0xff) | (major(device) & 0xfff) << 8 |
                       (minor(device) & ~0xffu) << 12);
}

struct squash_node *squash_node_new(const char *name, const struct stat *status)
{
    size_t length = strlen(name);
    struct squash_node *node = mem_alloc(sizeof(*node) + length + 1);

    node->type = type_of(status->st_mode);
    node->mode = (uint16_t) (status->st_mode & 07777);
    node->links = (uint32_t) status->st_nlink;
    node->xattr = SQUASH_NONE;
    node->fragment = SQUASH_NONE;
    if (S_ISBLK(status->st_mode) || S_ISCHR(status->st_mode))
        node->device = encode_device(status->st_rdev);
    if (S_ISREG(status->st_mode))
        node->size = (uint64_t) status->st_size;
    node->name_length = length;
    memcpy(node->name, name, length + 1);
    return node;
}

void squash_node_free(struct squash_node *node)
{
    if (!node)
        return;
    free(node->blocks);
    free(node->target);
    free(node->index);
    free(node);
}

static uint8_t *put_header(const struct squash_node *node, bool is_extended, uint8_t *at)
{
    at = squash_put16(at, (uint16_t) (node->type + (is_extended ? SQUASH_EXTENDED : 0)));
    at = squash_put16(at, node->mode);
    at = squash_put16(at, node->uid);
    at = squash_put16(at, node->gid);
    at = squash_put32(at, node->mtime);
    return squash_put32(at, node->number);
}

static void write_folder(const struct squash_node *node, struct squash_table *inodes)
{
    uint32_t size = node->listing_size + SQUASH_FOLDER_LISTING_BASE;
    uint32_t start = (uint32_t) (node->listing_place >> 16);
    uint16_t offset = (uint16_t) node->listing_place;
    bool is_extended = size > UINT16_MAX || node->index_count || node->xattr != SQUASH_NONE;
    uint8_t bytes[FIXED_MAX], *at = put_header(node, is_extended, bytes);

    if (is_extended) {
        at = squash_put32(at, node->links);
        at = squash_put32(at, size);
        at = squash_put32(at, start);
        at = squash_put32(at, node->parent);
        at = squash_put16(at, node->index_count);
        at = squash_put16(at, offset);
        at = squash_put32(at, node->xattr);
    } else {
        at = squash_put32(at, start);
        at = squash_put32(at, node->links);
        at = squash_put16(at, (uint16_t) size);
        at = squash_put16(at, offset);
        at = squash_put32(at, node->parent);
    }
    squash_table_append(inodes, bytes, (size_t) (at - bytes));
    squash_table_append(inodes, node->index, node->index_size);
}

static void write_blocks(const struct squash_node *node, struct squash_table *inodes)
{
    for (size_t i = 0; i < node->block_count; i++) {
        uint8_t bytes[4];

        (void) squash_put32(bytes, node->blocks[i]);
        squash_table_append(inodes, bytes, sizeof(bytes));
    }
}

static void write_file(const struct squash_node *node, struct squash_table *inodes)
{
    bool is_extended = node->size > UINT32_MAX || node->start > UINT32_MAX || node->sparse ||
                       node->links > 1 || node->xattr != SQUASH_NONE;
    uint8_t bytes[FIXED_MAX], *at = put_header(node, is_extended, bytes);

    if (is_extended) {
        at = squash_put64(at, node->start);
        at = squash_put64(at, node->size);
        at = squash_put64(at, node->sparse);
        at = squash_put32(at, node->links);
        at = squash_put32(at, node->fragment);
        at = squash_put32(at, node->fragment_offset);
        at = squash_put32(at, node->xattr);
    } else {
        at = squash_put32(at, (uint32_t) node->start);
        at = squash_put32(at, node->fragment);
        at = squash_put32(at, node->fragment_offset);
        at = squash_put32(at, (uint32_t) node->size);
    }
    squash_table_append(inodes, bytes, (size_t) (at - bytes));
    write_blocks(node, inodes);
}

/* All others have their link count, something of their own, and at the end the attributes. */
static void write_other(const struct squash_node *node, struct squash_table *inodes)
{
    bool is_extended = node->xattr != SQUASH_NONE;
    uint8_t bytes[FIXED_MAX], *at = put_header(node, is_extended, bytes);
    uint8_t xattr[4];
    size_t length = node->type == SQUASH_LINK ? strlen(node->target) : 0;

    at = squash_put32(at, node->links);
    if (node->type == SQUASH_LINK)
        at = squash_put32(at, (uint32_t) length);
    else if (node->type == SQUASH_BLOCK_DEVICE || node->type == SQUASH_CHARACTER_DEVICE)
        at = squash_put32(at, node->device);
    squash_table_append(inodes, bytes, (size_t) (at - bytes));
    squash_table_append(inodes, node->target, length);
    (void) squash_put32(xattr, node->xattr);
    if (is_extended)
        squash_table_append(inodes, xattr, sizeof(xattr));
}

uint64_t squash_node_write(const struct squash_node *node, struct squash_table *inodes)
{
    uint64_t place = squash_table_place(inodes);

    if (node->type == SQUASH_FOLDER)
        write_folder(node, inodes);
    else if (node->type == SQUASH_FILE)
        write_file(node, inodes);
    else
        write_other(node, inodes);
    return place;
}
