#include "keeper/squash/squash_library.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "sys/file/sys_file.h"

#define CAPACITY_MIN ((size_t) 64 << 10)

/* --- bytes ---------------------------------------------------------------------------------- */

static int write_file(struct squash_output *output, uint64_t offset, const void *bytes, size_t size)
{
    int result = sys_file_pwrite_full(output->file, bytes, size, (off_t) offset);

    if (result == 0)
        return 0;
    output->error = result;
    return SQFS_ERROR_IO;
}

static int write_memory(struct squash_output *output, uint64_t offset, const void *bytes,
                        size_t size)
{
    while (offset + size > output->capacity) {
        output->capacity = output->capacity ? output->capacity * 2 : CAPACITY_MIN;
        output->bytes = mem_resize(output->bytes, output->capacity);
    }
    memcpy(output->bytes + offset, bytes, size);
    return 0;
}

static int output_write_at(sqfs_file_t *base, sqfs_u64 offset, const void *bytes, size_t size)
{
    struct squash_output *output = CONTAINER_OF(base, struct squash_output, base);
    int result = output->file >= 0 ? write_file(output, offset, bytes, size)
                                   : write_memory(output, offset, bytes, size);

    if (result == 0 && offset + size > output->size)
        output->size = offset + size;
    return result;
}

static sqfs_u64 output_size(const sqfs_file_t *base)
{
    return CONTAINER_OF(base, const struct squash_output, base)->size;
}

void squash_output_init_file(struct squash_output *output, int file, uint64_t start)
{
    *output = (struct squash_output){
        .base = {.write_at = output_write_at, .get_size = output_size},
        .file = file,
        .size = start,
    };
}

void squash_output_init_memory(struct squash_output *output)
{
    squash_output_init_file(output, -EBADF, 0);
}

void squash_output_done(struct squash_output *output)
{
    free(output->bytes);
    output->bytes = NULL;
}

int squash_output_append(struct squash_output *output, const void *bytes, size_t size)
{
    return output_write_at(&output->base, output->size, bytes, size);
}

/* --- packing -------------------------------------------------------------------------------- */

struct compressor {
    sqfs_compressor_t base;
    struct squash_codec *codec; /* owned */
    enum squash_compression compression;
    int level;
    size_t block_size;
};

static void compressor_free(sqfs_object_t *object)
{
    struct compressor *compressor = CONTAINER_OF(object, struct compressor, base.base);

    squash_codec_free(compressor->codec);
    free(compressor);
}

static sqfs_object_t *compressor_copy(const sqfs_object_t *object)
{
    const struct compressor *from = CONTAINER_OF(object, const struct compressor, base.base);

    return &squash_compressor_new(from->compression, from->level, from->block_size)->base;
}

static sqfs_s32 compressor_pack(sqfs_compressor_t *base, const sqfs_u8 *bytes, sqfs_u32 size,
                                sqfs_u8 *out, sqfs_u32 room)
{
    struct compressor *compressor = CONTAINER_OF(base, struct compressor, base);

    return room < size ? 0 : (sqfs_s32) squash_codec_pack(compressor->codec, bytes, size, out);
}

sqfs_compressor_t *squash_compressor_new(enum squash_compression compression, int level,
                                         size_t block_size)
{
    struct compressor *compressor = mem_alloc(sizeof(*compressor));

    compressor->base.base.destroy = compressor_free;
    compressor->base.base.copy = compressor_copy;
    compressor->base.do_block = compressor_pack;
    compressor->codec = squash_codec_new(compression, level, block_size);
    compressor->compression = compression;
    compressor->level = level;
    compressor->block_size = block_size;
    return &compressor->base;
}

/* --- failures ------------------------------------------------------------------------------- */

int squash_library_error(int result, const struct squash_output *output, struct error *err)
{
    if (result == SQFS_ERROR_ALLOC)
        abort(); /* as our own memory.h does */
    if (result == SQFS_ERROR_IO)
        return error_set(err, error_code_from_errno(output->error), output->error,
                         "write the archive");
    return error_set(err, ERR_INTERNAL, 0, "write the archive: libsquashfs says %d", result);
}
