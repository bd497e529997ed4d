#include "keeper/squash/squash_image.h"

#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "keeper/squash/squash_image_internal.h"
#include "sys/file/sys_file.h"

/* --- bytes and metadata --------------------------------------------------------------------- */

int squash_image_read(struct squash_image *image, void *buffer, size_t size, uint64_t offset,
                      struct error *err)
{
    uint64_t end = image->superblock.bytes_used;
    ssize_t got;

    if (offset > end || size > end - offset)
        return squash_broken(err, "something lies behind its end");
    got = sys_file_pread_full(image->file, buffer, size, (off_t) offset);
    if (got < 0)
        return error_set(err, error_code_from_errno((int) got), (int) got, "read the archive");
    return (size_t) got == size ? 0 : squash_broken(err, "it is cut short");
}

/* The one that was not used for longest. */
static struct squash_metadata *oldest(struct squash_image *image)
{
    struct squash_metadata *oldest = &image->cache[0];

    for (size_t i = 1; i < SQUASH_IMAGE_CACHE; i++)
        if (image->cache[i].used < oldest->used)
            oldest = &image->cache[i];
    return oldest;
}

static int load(struct squash_image *image, uint64_t position, uint64_t end,
                struct squash_metadata *metadata, struct error *err)
{
    uint8_t header[2];
    uint8_t packed[SQUASH_METADATA_SIZE];
    uint8_t *target;
    bool is_plain;
    ssize_t size;

    metadata->position = 0;
    if (squash_image_read(image, header, sizeof(header), position, err) < 0)
        return -1;
    is_plain = squash_get16(header) & SQUASH_METADATA_PLAIN;
    size = squash_get16(header) & ~SQUASH_METADATA_PLAIN;
    if (size == 0 || size > SQUASH_METADATA_SIZE || position + 2 + (uint64_t) size > end)
        return squash_broken(err, "a block of metadata has a wrong size");
    metadata->next = position + 2 + (uint64_t) size;
    target = is_plain ? metadata->bytes : packed;
    if (squash_image_read(image, target, (size_t) size, position + 2, err) < 0)
        return -1;
    if (!is_plain)
        size = squash_codec_unpack(image->codec, packed, (size_t) size, metadata->bytes,
                                   sizeof(metadata->bytes));
    if (size <= 0)
        return squash_broken(err, "a block of metadata cannot be unpacked");
    metadata->size = (uint32_t) size;
    metadata->position = position;
    return 0;
}

static struct squash_metadata *find(struct squash_image *image, const struct squash_cursor *cursor,
                                    struct error *err)
{
    struct squash_metadata *metadata = NULL;

    if (cursor->block < SQUASH_SUPERBLOCK_SIZE || cursor->block >= cursor->end) {
        (void) squash_broken(err, "metadata lies outside of its table");
        return NULL;
    }
    for (size_t i = 0; i < SQUASH_IMAGE_CACHE && !metadata; i++)
        if (image->cache[i].position == cursor->block)
            metadata = &image->cache[i];
    if (!metadata) {
        metadata = oldest(image);
        if (load(image, cursor->block, cursor->end, metadata, err) < 0)
            return NULL;
    }
    metadata->used = ++image->clock;
    return metadata;
}

int squash_image_metadata(struct squash_image *image, struct squash_cursor *cursor, void *buffer,
                          size_t size, struct error *err)
{
    uint8_t *to = buffer;

    while (size) {
        const struct squash_metadata *metadata = find(image, cursor, err);
        size_t part;

        if (!metadata)
            return -1;
        if (cursor->offset >= metadata->size)
            return squash_broken(err, "a place in metadata does not exist");
        part = metadata->size - cursor->offset;
        if (part > size)
            part = size;
        memcpy(to, metadata->bytes + cursor->offset, part);
        to += part;
        size -= part;
        cursor->offset += (uint32_t) part;
        if (cursor->offset == metadata->size) {
            cursor->block = metadata->next;
            cursor->offset = 0;
        }
    }
    return 0;
}

int squash_image_entry(struct squash_image *image, uint64_t list, uint64_t index, size_t size,
                       void *buffer, struct error *err)
{
    uint64_t per_block = SQUASH_METADATA_SIZE / size;
    struct squash_cursor cursor = {.end = image->superblock.bytes_used};
    uint8_t position[8];

    if (list > cursor.end)
        return squash_broken(err, "a table lies behind its end");
    if (squash_image_read(image, position, sizeof(position), list + index / per_block * 8, err) < 0)
        return -1;
    cursor.block = squash_get64(position);
    cursor.offset = (uint32_t) (index % per_block * size);
    return squash_image_metadata(image, &cursor, buffer, size, err);
}

/* --- opening -------------------------------------------------------------------------------- */

static int read_superblock(struct squash_image *image, struct error *err)
{
    uint8_t bytes[SQUASH_SUPERBLOCK_SIZE];
    struct squash_superblock *superblock = &image->superblock;
    struct stat status;
    const char *problem;

    if (fstat(image->file, &status) < 0)
        return error_set(err, error_code_from_errno(errno), errno, "look at the archive");
    superblock->bytes_used = (uint64_t) status.st_size; /* until it tells itself */
    if (status.st_size < SQUASH_SUPERBLOCK_SIZE)
        return error_set(err, ERR_INVALID, 0, "the archive is no squashfs image");
    if (squash_image_read(image, bytes, sizeof(bytes), 0, err) < 0)
        return -1;
    problem = squash_superblock_decode(bytes, superblock);
    if (problem)
        return error_set(err, ERR_INVALID, 0, "the archive %s", problem);
    if (superblock->bytes_used > (uint64_t) status.st_size)
        return squash_broken(err, "it is cut short");
    if (!squash_codec_of(superblock->compression))
        return error_set(err, ERR_INVALID, 0,
                         "the archive is compressed in a way (%u) that is not supported: only "
                         "gzip, xz, lz4 and zstd are",
                         superblock->compression);
    if (superblock->inode_table >= superblock->folder_table ||
        superblock->folder_table > superblock->bytes_used || superblock->id_count == 0)
        return squash_broken(err, "its tables are not in order");
    return 0;
}

static int read_ids(struct squash_image *image, struct error *err)
{
    size_t count = image->superblock.id_count;

    image->ids = mem_alloc_array(count, sizeof(*image->ids));
    for (size_t i = 0; i < count; i++) {
        uint8_t bytes[4];

        if (squash_image_entry(image, image->superblock.id_table, i, sizeof(bytes), bytes, err) < 0)
            return -1;
        image->ids[i] = squash_get32(bytes);
    }
    return 0;
}

static int read_xattr_header(struct squash_image *image, struct error *err)
{
    uint8_t bytes[SQUASH_XATTR_HEADER_SIZE];

    if (image->superblock.xattr_table == SQUASH_NO_TABLE)
        return 0;
    if (squash_image_read(image, bytes, sizeof(bytes), image->superblock.xattr_table, err) < 0)
        return -1;
    image->xattr_pairs = squash_get64(bytes);
    image->xattr_count = squash_get32(bytes + 8);
    return image->xattr_pairs < image->superblock.bytes_used
               ? 0
               : squash_broken(err, "its attributes lie behind its end");
}

int squash_image_new(int file, struct squash_image **ret_image, struct error *err)
{
    AUTO(squash_image) struct squash_image *image = mem_alloc(sizeof(*image));
    const struct squash_superblock *superblock = &image->superblock;

    image->file = file;
    image->fragment_index = SQUASH_NONE;
    if (read_superblock(image, err) < 0)
        return -1;
    image->codec = squash_codec_new(superblock->compression, 1, superblock->block_size);
    image->cache = mem_alloc_array(SQUASH_IMAGE_CACHE, sizeof(*image->cache));
    image->packed = mem_alloc(superblock->block_size);
    image->block = mem_alloc(superblock->block_size);
    image->fragment = mem_alloc(superblock->block_size);
    if (read_ids(image, err) < 0 || read_xattr_header(image, err) < 0)
        return -1;
    *ret_image = TAKE_PTR(image);
    return 0;
}

void squash_image_free(struct squash_image *image)
{
    if (!image)
        return;
    squash_codec_free(image->codec);
    free(image->cache);
    free(image->ids);
    free(image->packed);
    free(image->block);
    free(image->fragment);
    free(image->value);
    free(image);
}

const struct squash_superblock *squash_image_superblock(const struct squash_image *image)
{
    return &image->superblock;
}
