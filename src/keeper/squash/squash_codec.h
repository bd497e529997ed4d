/* The compressions of squashfs, one block at a time.
 *
 *     gzip   zlib streams          level 1 to 9, 6 unless told
 *     xz     .xz with CRC32        level 0 to 9, 6
 *     lz4    blocks of LZ4         level 1, or 2 to 12: the slow "HC"; 1
 *     zstd   frames                level 1 to 22, 3
 *
 * lzma and lzo, which squashfs has too, are of the past. A codec holds the working memory of its
 * library and belongs to one thread at a time; different ones do not meet. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/auto.h"

/* Their numbers in a superblock. */
enum squash_compression {
    SQUASH_GZIP = 1,
    SQUASH_XZ = 4,
    SQUASH_LZ4 = 5,
    SQUASH_ZSTD = 6,
};

struct squash_codec_name {
    const char *name;
    enum squash_compression compression;
    int level_min, level_max, level_default;
};

/* NULL for none with that name or number. Static. */
const struct squash_codec_name *squash_codec_find(const char *name);
const struct squash_codec_name *squash_codec_of(unsigned int compression);

struct squash_codec;

/* For blocks of at most `block_size` bytes. A level out of range is the nearest. */
struct squash_codec *squash_codec_new(enum squash_compression compression, int level,
                                      size_t block_size);

/* Accepts NULL. */
void squash_codec_free(struct squash_codec *codec);

AUTO_DEFINE_PTR(squash_codec, struct squash_codec, squash_codec_free);

/* Pack `length` bytes (not 0) into `ret_bytes`, which has room for as many. Returns the size, or 0:
 * it does not become smaller. */
size_t squash_codec_pack(struct squash_codec *codec, const uint8_t *bytes, size_t length,
                         uint8_t *ret_bytes);

/* Unpack into at most `room` bytes. Returns how many, or -EIO: this is nothing that was packed, or
 * becomes larger. Hostile bytes do no more harm. */
ssize_t squash_codec_unpack(struct squash_codec *codec, const uint8_t *bytes, size_t length,
                            uint8_t *ret_bytes, size_t room);
