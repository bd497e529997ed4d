/* Tar as bytes: one entry's header, written and read.
 *
 * Written is POSIX: ustar blocks, and before them a pax header for what they cannot hold (names
 * over 100 bytes, sizes over 8 GiB, fractions of seconds, large ids). Read is also what GNU tar
 * writes, and old tar. A file's bytes follow its header, filled up to whole blocks; two blocks of
 * zeros are the end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/text.h"

struct tar_attributes;

#define TAR_BLOCK    ((size_t) 512)
#define TAR_END_SIZE (2 * TAR_BLOCK)

/* The longest path or link target in an archive, NUL not counted. */
#define TAR_PATH_MAX ((size_t) 4095)

/* The most that tar_header_append appends for an entry without attributes. */
#define TAR_HEADER_MAX (4 * TAR_BLOCK + 2 * (TAR_PATH_MAX + 32) + 256)

#define TAR_FILE      '0'
#define TAR_HARD_LINK '1'
#define TAR_LINK      '2'
#define TAR_CHARACTER '3'
#define TAR_BLOCK_DEV '4'
#define TAR_FOLDER    '5'
#define TAR_PIPE      '6'

struct tar_entry {
    char type;
    const char *path; /* of a folder without a slash at the end */
    const char *link; /* where a link leads; "" for others */
    uint64_t size;    /* bytes that follow; 0 for all but files */
    mode_t mode;      /* 07777 */
    uid_t uid;
    gid_t gid;
    struct timespec mtime;
    const struct tar_attributes *attributes; /* NULL: it has none */
};

/* Append the header, with a slash at the end of a folder's path. */
void tar_header_append(struct text *out, const struct tar_entry *entry);

/* Append the zeros that follow `size` bytes of content; those that end an archive. */
void tar_padding_append(struct text *out, uint64_t size);
void tar_end_append(struct text *out);

/* How many zeros follow `size` bytes. */
static inline size_t tar_padding(uint64_t size)
{
    return (size_t) (-size % TAR_BLOCK);
}

/* A header block as it is, without the extended headers before it. */
struct tar_header {
    char type;      /* any byte: see tar_reader.c */
    char path[257]; /* prefix and name; may end in slashes */
    char link[101];
    uint64_t size;
    mode_t mode;
    uint64_t uid, gid;
    int64_t mtime;
};

/* Returns 0, 1 for a block of zeros, or -EINVAL: the checksum is wrong, or a number is none. */
int tar_header_decode(const unsigned char bytes[static TAR_BLOCK], struct tar_header *ret_header);
