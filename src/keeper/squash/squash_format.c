#include "keeper/squash/squash_format.h"

#include <stddef.h>

#include "base/auto.h"

#define MAJOR 4
#define MINOR 0

static uint16_t log_of(uint32_t block_size)
{
    return (uint16_t) __builtin_ctz(block_size);
}

const char *squash_superblock_decode(const uint8_t bytes[static SQUASH_SUPERBLOCK_SIZE],
                                     struct squash_superblock *ret_superblock)
{
    uint32_t size = squash_get32(bytes + 12);

    if (squash_get32(bytes) != SQUASH_MAGIC)
        return "is no squashfs image";
    if (squash_get16(bytes + 28) != MAJOR || squash_get16(bytes + 30) != MINOR)
        return "is of another version of squashfs than 4.0";
    if (size < SQUASH_BLOCK_SIZE_MIN || size > SQUASH_BLOCK_SIZE_MAX || (size & (size - 1)) ||
        squash_get16(bytes + 22) != log_of(size))
        return "has a wrong block size";
    *ret_superblock = (struct squash_superblock){
        .inode_count = squash_get32(bytes + 4),
        .made_at = squash_get32(bytes + 8),
        .block_size = size,
        .fragment_count = squash_get32(bytes + 16),
        .compression = squash_get16(bytes + 20),
        .flags = squash_get16(bytes + 24),
        .id_count = squash_get16(bytes + 26),
        .root = squash_get64(bytes + 32),
        .bytes_used = squash_get64(bytes + 40),
        .id_table = squash_get64(bytes + 48),
        .xattr_table = squash_get64(bytes + 56),
        .inode_table = squash_get64(bytes + 64),
        .folder_table = squash_get64(bytes + 72),
        .fragment_table = squash_get64(bytes + 80),
        .export_table = squash_get64(bytes + 88),
    };
    return NULL;
}

const char *squash_xattr_prefix(unsigned int type)
{
    static const char *const prefixes[] = {"user.", "trusted.", "security."};

    return type < ARRAY_COUNT(prefixes) ? prefixes[type] : NULL;
}
