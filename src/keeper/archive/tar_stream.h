/* A tar (base/format/tar_header.h) that goes to a descriptor, in pieces of a pipe's size. */
#pragma once

#include "base/format/tar_header.h"

struct tar_stream {
    int fd; /* borrowed */
    struct text out;
    uint64_t left; /* bytes of the file that still come */
    uint64_t size; /* of the file */
};

void tar_stream_init(struct tar_stream *stream, int fd);
void tar_stream_done(struct tar_stream *stream);

AUTO_DEFINE(tar_stream, struct tar_stream, tar_stream_done);

/* The next: 0, or -errno of writing. All bytes of the last file must have come. */
int tar_stream_entry(struct tar_stream *stream, const struct tar_entry *entry);

/* The next bytes of the file; not more than it has. */
int tar_stream_bytes(struct tar_stream *stream, const void *bytes, size_t length);

/* The end; everything is written. */
int tar_stream_end(struct tar_stream *stream);
