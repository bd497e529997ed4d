#include "keeper/squash/squash_codec.h"

#include <lz4.h>
#include <lz4hc.h>
#include <lzma.h>
#include <stdbool.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/memory.h"

/* What an unpacked .xz block may take: its dictionary is at most a block of squashfs. */
#define XZ_MEMORY_MAX ((uint64_t) 16 << 20)

struct squash_codec {
    const struct squash_codec_kind *kind;
    int level;
    size_t block_size;
    z_stream pack, unpack; /* gzip */
    bool has_pack, has_unpack;
    ZSTD_CCtx *zstd_pack;
    ZSTD_DCtx *zstd_unpack;
    void *lz4_state;
};

struct squash_codec_kind {
    struct squash_codec_name name;
    size_t (*pack)(struct squash_codec *codec, const uint8_t *bytes, size_t length, uint8_t *out);
    ssize_t (*unpack)(struct squash_codec *codec, const uint8_t *bytes, size_t length, uint8_t *out,
                      size_t room);
};

/* A library without memory is like ours without memory. */
static void need(bool holds)
{
    if (!holds)
        abort();
}

/* --- gzip ----------------------------------------------------------------------------------- */

static size_t gzip_pack(struct squash_codec *codec, const uint8_t *bytes, size_t length,
                        uint8_t *out)
{
    z_stream *stream = &codec->pack;

    if (!codec->has_pack)
        need(deflateInit(stream, codec->level) == Z_OK);
    else
        need(deflateReset(stream) == Z_OK);
    codec->has_pack = true;
    stream->next_in = (Bytef *) (uintptr_t) bytes;
    stream->avail_in = (uInt) length;
    stream->next_out = out;
    stream->avail_out = (uInt) (length - 1);
    return deflate(stream, Z_FINISH) == Z_STREAM_END ? stream->total_out : 0;
}

static ssize_t gzip_unpack(struct squash_codec *codec, const uint8_t *bytes, size_t length,
                           uint8_t *out, size_t room)
{
    z_stream *stream = &codec->unpack;

    if (!codec->has_unpack)
        need(inflateInit(stream) == Z_OK);
    else
        need(inflateReset(stream) == Z_OK);
    codec->has_unpack = true;
    stream->next_in = (Bytef *) (uintptr_t) bytes;
    stream->avail_in = (uInt) length;
    stream->next_out = out;
    stream->avail_out = (uInt) room;
    return inflate(stream, Z_FINISH) == Z_STREAM_END ? (ssize_t) stream->total_out : -EIO;
}

/* --- xz ------------------------------------------------------------------------------------- */

static size_t xz_pack(struct squash_codec *codec, const uint8_t *bytes, size_t length, uint8_t *out)
{
    lzma_options_lzma options;
    lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, NULL}};
    size_t size = 0;

    need(!lzma_lzma_preset(&options, (uint32_t) codec->level));
    /* Readers without the options block take the block size for it. */
    options.dict_size = (uint32_t) (codec->block_size < LZMA_DICT_SIZE_MIN ? LZMA_DICT_SIZE_MIN
                                                                           : codec->block_size);
    if (lzma_stream_buffer_encode(filters, LZMA_CHECK_CRC32, NULL, bytes, length, out, &size,
                                  length - 1) != LZMA_OK)
        return 0;
    return size;
}

static ssize_t xz_unpack(struct squash_codec *codec, const uint8_t *bytes, size_t length,
                         uint8_t *out, size_t room)
{
    uint64_t memory = XZ_MEMORY_MAX;
    size_t in = 0, size = 0;

    (void) codec;
    if (lzma_stream_buffer_decode(&memory, 0, NULL, bytes, &in, length, out, &size, room) !=
        LZMA_OK)
        return -EIO;
    return (ssize_t) size;
}

/* --- lz4 ------------------------------------------------------------------------------------ */

static size_t lz4_pack(struct squash_codec *codec, const uint8_t *bytes, size_t length,
                       uint8_t *out)
{
    const char *in = (const char *) bytes;
    int room = (int) length - 1, size;

    if (!codec->lz4_state)
        codec->lz4_state =
            mem_alloc((size_t) (codec->level > 1 ? LZ4_sizeofStateHC() : LZ4_sizeofState()));
    if (codec->level > 1)
        size = LZ4_compress_HC_extStateHC(codec->lz4_state, in, (char *) out, (int) length, room,
                                          codec->level);
    else
        size =
            LZ4_compress_fast_extState(codec->lz4_state, in, (char *) out, (int) length, room, 1);
    return size > 0 ? (size_t) size : 0;
}

static ssize_t lz4_unpack(struct squash_codec *codec, const uint8_t *bytes, size_t length,
                          uint8_t *out, size_t room)
{
    int size = LZ4_decompress_safe((const char *) bytes, (char *) out, (int) length, (int) room);

    (void) codec;
    return size < 0 ? -EIO : size;
}

/* --- zstd ----------------------------------------------------------------------------------- */

static size_t zstd_pack(struct squash_codec *codec, const uint8_t *bytes, size_t length,
                        uint8_t *out)
{
    size_t size;

    if (!codec->zstd_pack)
        codec->zstd_pack = ZSTD_createCCtx();
    need(codec->zstd_pack != NULL);
    size = ZSTD_compressCCtx(codec->zstd_pack, out, length - 1, bytes, length, codec->level);
    return ZSTD_isError(size) ? 0 : size;
}

static ssize_t zstd_unpack(struct squash_codec *codec, const uint8_t *bytes, size_t length,
                           uint8_t *out, size_t room)
{
    size_t size;

    if (!codec->zstd_unpack)
        codec->zstd_unpack = ZSTD_createDCtx();
    need(codec->zstd_unpack != NULL);
    size = ZSTD_decompressDCtx(codec->zstd_unpack, out, room, bytes, length);
    return ZSTD_isError(size) ? -EIO : (ssize_t) size;
}

/* --- all ------------------------------------------------------------------------------------ */

static const struct squash_codec_kind kinds[] = {
    {{"lz4", SQUASH_LZ4, 1, LZ4HC_CLEVEL_MAX, 1}, lz4_pack, lz4_unpack},
    {{"zstd", SQUASH_ZSTD, 1, 22, 3}, zstd_pack, zstd_unpack},
    {{"gzip", SQUASH_GZIP, 1, 9, 6}, gzip_pack, gzip_unpack},
    {{"xz", SQUASH_XZ, 0, 9, 6}, xz_pack, xz_unpack},
};

const struct squash_codec_name *squash_codec_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++)
        if (strcmp(kinds[i].name.name, name) == 0)
            return &kinds[i].name;
    return NULL;
}

const struct squash_codec_name *squash_codec_of(unsigned int compression)
{
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++)
        if (kinds[i].name.compression == compression)
            return &kinds[i].name;
    return NULL;
}

struct squash_codec *squash_codec_new(enum squash_compression compression, int level,
                                      size_t block_size)
{
    const struct squash_codec_name *name = squash_codec_of(compression);
    struct squash_codec *codec = mem_alloc(sizeof(*codec));

    need(name != NULL);
    codec->kind = CONTAINER_OF(name, const struct squash_codec_kind, name);
    codec->level = level < name->level_min   ? name->level_min
                   : level > name->level_max ? name->level_max
                                             : level;
    codec->block_size = block_size;
    return codec;
}

void squash_codec_free(struct squash_codec *codec)
{
    if (!codec)
        return;
    if (codec->has_pack)
        (void) deflateEnd(&codec->pack);
    if (codec->has_unpack)
        (void) inflateEnd(&codec->unpack);
    (void) ZSTD_freeCCtx(codec->zstd_pack);
    (void) ZSTD_freeDCtx(codec->zstd_unpack);
    free(codec->lz4_state);
    free(codec);
}

size_t squash_codec_pack(struct squash_codec *codec, const uint8_t *bytes, size_t length,
                         uint8_t *ret_bytes)
{
    return length > 1 ? codec->kind->pack(codec, bytes, length, ret_bytes) : 0;
}

ssize_t squash_codec_unpack(struct squash_codec *codec, const uint8_t *bytes, size_t length,
                            uint8_t *ret_bytes, size_t room)
{
    return codec->kind->unpack(codec, bytes, length, ret_bytes, room);
}
