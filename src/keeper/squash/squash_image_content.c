#include <string.h>

#include "base/memory.h"
#include "keeper/squash/squash_image_internal.h"

/* --- content -------------------------------------------------------------------------------- */

/* Unpack a data block into `buffer`, a block large. Returns its length, or -1. */
static ssize_t read_block(struct squash_image *image, uint64_t position, uint32_t word,
                          uint8_t *buffer, struct error *err)
{
    size_t size = word & SQUASH_BLOCK_SIZE_MASK;
    bool is_plain = word & SQUASH_BLOCK_PLAIN;
    ssize_t length = (ssize_t) size;

    if (size == 0 || size > image->superblock.block_size ||
        word & ~(SQUASH_BLOCK_PLAIN | SQUASH_BLOCK_SIZE_MASK))
        return squash_broken(err, "a block of data has a wrong size");
    if (squash_image_read(image, is_plain ? buffer : image->packed, size, position, err) < 0)
        return -1;
    if (!is_plain)
        length = squash_codec_unpack(image->codec, image->packed, size, buffer,
                                     image->superblock.block_size);
    return length > 0 ? length : squash_broken(err, "a block of data cannot be unpacked");
}

static int send_block(struct squash_image *image, uint64_t position, uint32_t word, size_t length,
                      squash_image_sink *sink, void *context, struct error *err)
{
    ssize_t got;

    if (word == 0) { /* a hole */
        memset(image->block, 0, length);
        return sink(context, image->block, length, err);
    }
    got = read_block(image, position, word, image->block, err);
    if (got < 0)
        return -1;
    if ((size_t) got != length)
        return squash_broken(err, "a block of data has a wrong length");
    return sink(context, image->block, length, err);
}

static int load_fragment(struct squash_image *image, uint32_t index, struct error *err)
{
    uint8_t bytes[SQUASH_FRAGMENT_SIZE];
    ssize_t size;

    if (index == image->fragment_index)
        return 0;
    if (index >= image->superblock.fragment_count)
        return squash_broken(err, "a fragment is not in its table");
    if (squash_image_entry(image, image->superblock.fragment_table, index, sizeof(bytes), bytes,
                           err) < 0)
        return -1;
    image->fragment_index = SQUASH_NONE;
    size = read_block(image, squash_get64(bytes), squash_get32(bytes + 8), image->fragment, err);
    if (size < 0)
        return -1;
    image->fragment_index = index;
    image->fragment_size = (size_t) size;
    return 0;
}

static int send_fragment(struct squash_image *image, const struct squash_inode *inode,
                         size_t length, squash_image_sink *sink, void *context, struct error *err)
{
    if (load_fragment(image, inode->fragment, err) < 0)
        return -1;
    if (inode->fragment_offset > image->fragment_size ||
        length > image->fragment_size - inode->fragment_offset)
        return squash_broken(err, "a file lies outside of its fragment");
    return sink(context, image->fragment + inode->fragment_offset, length, err);
}

int squash_image_content(struct squash_image *image, const struct squash_inode *inode,
                         squash_image_sink *sink, void *context, struct error *err)
{
    const uint32_t block_size = image->superblock.block_size;
    struct squash_cursor cursor = inode->rest;
    uint64_t position = inode->start, left = inode->size;

    while (left) {
        size_t length = left < block_size ? (size_t) left : block_size;
        uint8_t bytes[4];

        if (length < block_size && inode->fragment != SQUASH_NONE)
            return send_fragment(image, inode, length, sink, context, err);
        if (squash_image_metadata(image, &cursor, bytes, sizeof(bytes), err) < 0 ||
            send_block(image, position, squash_get32(bytes), length, sink, context, err) < 0)
            return -1;
        position += squash_get32(bytes) & SQUASH_BLOCK_SIZE_MASK;
        left -= length;
    }
    return 0;
}

/* --- attributes ----------------------------------------------------------------------------- */

static int read_value(struct squash_image *image, struct squash_cursor *cursor, size_t *ret_length,
                      struct error *err)
{
    uint8_t bytes[4];

    if (squash_image_metadata(image, cursor, bytes, sizeof(bytes), err) < 0)
        return -1;
    *ret_length = squash_get32(bytes);
    if (*ret_length > SQUASH_XATTR_VALUE_MAX)
        return squash_broken(err, "an attribute is too long");
    return squash_image_metadata(image, cursor, image->value, *ret_length, err);
}

/* A value that another file has, too, is stored with that one. */
static int read_value_elsewhere(struct squash_image *image, struct squash_cursor *cursor,
                                size_t *ret_length, struct error *err)
{
    struct squash_cursor elsewhere = {.end = cursor->end};
    uint8_t bytes[8];

    if (read_value(image, cursor, ret_length, err) < 0)
        return -1;
    if (*ret_length != sizeof(bytes))
        return squash_broken(err, "an attribute is nowhere");
    memcpy(bytes, image->value, sizeof(bytes));
    elsewhere.block = image->xattr_pairs + (squash_get64(bytes) >> 16);
    elsewhere.offset = squash_get16(bytes);
    return read_value(image, &elsewhere, ret_length, err);
}

static int read_attribute(struct squash_image *image, struct squash_cursor *cursor,
                          squash_image_attribute *take, void *context, struct error *err)
{
    char name[SQUASH_XATTR_NAME_MAX + 1];
    const char *prefix;
    uint8_t bytes[4];
    size_t prefix_length, length;
    uint16_t type;
    int result;

    if (squash_image_metadata(image, cursor, bytes, sizeof(bytes), err) < 0)
        return -1;
    type = squash_get16(bytes);
    length = squash_get16(bytes + 2);
    prefix = squash_xattr_prefix(type & ~SQUASH_XATTR_ELSEWHERE);
    prefix_length = prefix ? strlen(prefix) : 0;
    if (!prefix || length == 0 || prefix_length + length > SQUASH_XATTR_NAME_MAX)
        return squash_broken(err, "an attribute has a wrong name");
    memcpy(name, prefix, prefix_length);
    if (squash_image_metadata(image, cursor, name + prefix_length, length, err) < 0)
        return -1;
    name[prefix_length + length] = '\0';
    if (strlen(name) != prefix_length + length)
        return squash_broken(err, "an attribute has a wrong name");
    result = type & SQUASH_XATTR_ELSEWHERE ? read_value_elsewhere(image, cursor, &length, err)
                                           : read_value(image, cursor, &length, err);
    return result < 0 ? -1 : take(context, name, image->value, length, err);
}

int squash_image_attributes(struct squash_image *image, const struct squash_inode *inode,
                            squash_image_attribute *take, void *context, struct error *err)
{
    struct squash_cursor cursor = {.end = image->superblock.bytes_used};
    uint8_t bytes[SQUASH_XATTR_ID_SIZE];
    uint32_t count;

    if (inode->xattr == SQUASH_NONE)
        return 0;
    if (inode->xattr >= image->xattr_count)
        return squash_broken(err, "attributes are not in their table");
    if (squash_image_entry(image, image->superblock.xattr_table + SQUASH_XATTR_HEADER_SIZE,
                           inode->xattr, sizeof(bytes), bytes, err) < 0)
        return -1;
    count = squash_get32(bytes + 8);
    if (count > SQUASH_XATTR_COUNT_MAX)
        return squash_broken(err, "a file has too many attributes");
    if (!image->value)
        image->value = mem_alloc(SQUASH_XATTR_VALUE_MAX);
    cursor.block = image->xattr_pairs + (squash_get64(bytes) >> 16);
    cursor.offset = squash_get16(bytes);
    for (; count; count--)
        if (read_attribute(image, &cursor, take, context, err) < 0)
            return -1;
    return 0;
}
