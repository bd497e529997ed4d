/* Squashfs 4.0 as bytes: what the reader of archives believes, and the writer keeps to.
 *
 *     superblock, compressor options, data blocks and fragments, inode table, directory table,
 *     fragment table, id table, attribute table
 *
 * All numbers are little-endian. Tables are runs of metadata blocks: two bytes of size, with
 * SQUASH_METADATA_PLAIN when the block is stored as it is, then at most SQUASH_METADATA_SIZE bytes
 * when unpacked. A place in a table is "where its block begins, from the table's beginning" << 16 |
 * "offset in the unpacked block". Facts from Documentation/filesystems/squashfs.rst of Linux and
 * from what its readers accept. Pure functions. */
#pragma once

#include <stdint.h>

#define SQUASH_MAGIC           0x73717368u
#define SQUASH_SUPERBLOCK_SIZE 96
#define SQUASH_METADATA_SIZE   8192
#define SQUASH_METADATA_PLAIN  0x8000u

/* A data block's size in lists: 0 is a block of zeros. */
#define SQUASH_BLOCK_PLAIN     (1u << 24)
#define SQUASH_BLOCK_SIZE_MASK (SQUASH_BLOCK_PLAIN - 1)

#define SQUASH_BLOCK_SIZE_MIN 4096u
#define SQUASH_BLOCK_SIZE_MAX (1u << 20)

/* "None": of fragments and attributes, and of tables. */
#define SQUASH_NONE     UINT32_MAX
#define SQUASH_NO_TABLE UINT64_MAX

#define SQUASH_NAME_MAX 255

/* The longest path in an archive of ours, and that we unpack: with "./" and "/" around it no more
 * than readers of tar take. And the longest that a link leads. */
#define SQUASH_PATH_MAX   4090
#define SQUASH_TARGET_MAX 4095

/* Sizes of entries in tables. */
#define SQUASH_FOLDER_HEADER_SIZE  12
#define SQUASH_FOLDER_ENTRY_SIZE   8
#define SQUASH_FOLDER_RUN_MAX      256 /* entries behind one header */
#define SQUASH_FOLDER_LISTING_BASE 3   /* a folder's size counts "." and ".." as three bytes */
#define SQUASH_FRAGMENT_SIZE       16
#define SQUASH_XATTR_ID_SIZE       16
#define SQUASH_XATTR_HEADER_SIZE   16
#define SQUASH_INODE_HEADER_SIZE   16

/* Types of inodes; in folders only the first seven, in inodes each + SQUASH_EXTENDED, too. */
enum squash_type {
    SQUASH_FOLDER = 1,
    SQUASH_FILE,
    SQUASH_LINK,
    SQUASH_BLOCK_DEVICE,
    SQUASH_CHARACTER_DEVICE,
    SQUASH_FIFO,
    SQUASH_SOCKET,
    SQUASH_EXTENDED = 7,
};

struct squash_superblock {
    uint32_t inode_count;
    uint32_t made_at; /* seconds */
    uint32_t block_size;
    uint32_t fragment_count;
    uint16_t compression;
    uint16_t flags;
    uint16_t id_count;
    uint64_t root; /* place of its inode */
    uint64_t bytes_used;
    uint64_t id_table, xattr_table, inode_table, folder_table, fragment_table, export_table;
};

/* NULL, or what is wrong with it ("is no squashfs image"; static). Only what can be seen here:
 * magic, version, block size. */
const char *squash_superblock_decode(const uint8_t bytes[static SQUASH_SUPERBLOCK_SIZE],
                                     struct squash_superblock *ret_superblock);

/* Prefixes of attributes by their number: "user.", "trusted.", "security.". NULL beyond. */
const char *squash_xattr_prefix(unsigned int type);

/* Value stands elsewhere: a flag of an attribute's type. */
#define SQUASH_XATTR_ELSEWHERE 0x100u

static inline uint16_t squash_get16(const uint8_t *at)
{
    return (uint16_t) (at[0] | at[1] << 8);
}

static inline uint32_t squash_get32(const uint8_t *at)
{
    return (uint32_t) squash_get16(at) | (uint32_t) squash_get16(at + 2) << 16;
}

static inline uint64_t squash_get64(const uint8_t *at)
{
    return (uint64_t) squash_get32(at) | (uint64_t) squash_get32(at + 4) << 32;
}
