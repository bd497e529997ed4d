/* Writing a tar stream: POSIX ustar blocks, with pax records before them for what they cannot hold
 * (paths and targets over 100 bytes, sizes over 8 GiB, large ids, attributes). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

#define TAR_STREAM_FILE      '0'
#define TAR_STREAM_HARD_LINK '1'
#define TAR_STREAM_LINK      '2'
#define TAR_STREAM_FOLDER    '5'
#define TAR_STREAM_FIFO      '6'

struct tar_stream_entry {
    char type;
    const char *path;
    const char *target; /* of links; "" else */
    uint64_t size;      /* of files; the bytes follow by tar_stream_bytes */
    uint16_t mode;
    uint32_t uid, gid;
    uint32_t mtime;
};

struct tar_stream {
    int fd; /* borrowed */
    struct text records;
    uint64_t left; /* bytes of the file that still come */
    size_t padding;
    size_t used;
    uint8_t *buffer; /* owned */
};

void tar_stream_init(struct tar_stream *stream, int fd);
void tar_stream_done(struct tar_stream *stream);

AUTO_DEFINE(tar_stream, struct tar_stream, tar_stream_done);

/* A pax record for the entry that comes next: "key=value". */
void tar_stream_record(struct tar_stream *stream, const char *key, const void *value,
                       size_t length);

/* Bytes of records that wait for their entry. */
size_t tar_stream_records(const struct tar_stream *stream);

/* The next: 0, or -errno of writing. All bytes of the last file must have come. */
int tar_stream_entry(struct tar_stream *stream, const struct tar_stream_entry *entry);

/* The next bytes of the file; not more than it has. */
int tar_stream_bytes(struct tar_stream *stream, const void *bytes, size_t length);

/* The end; everything is written. */
int tar_stream_end(struct tar_stream *stream);
