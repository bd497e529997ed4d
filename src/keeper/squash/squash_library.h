/* Inside the writer of squashfs: what libsquashfs (of squashfs-tools-ng) asks of its caller. Where
 * its bytes go, how they are packed, and what its failures mean.
 *
 * Packing stays our codec's: so levels mean what they say, and the same code packs and unpacks. */
#pragma once

#include <sqfs/compressor.h>
#include <sqfs/error.h>
#include <sqfs/io.h>

#include "base/error.h"
#include "keeper/squash/squash_codec.h"

/* Bytes that only grow at their end: of a file, or in memory. */
struct squash_output {
    sqfs_file_t base;
    int file;       /* borrowed; -EBADF: in memory */
    uint8_t *bytes; /* owned: in memory */
    size_t capacity;
    uint64_t size;
    int error; /* -errno of the write that failed */
};

/* `start` bytes at the beginning of a file are left for later. */
void squash_output_init_file(struct squash_output *output, int file, uint64_t start);
void squash_output_init_memory(struct squash_output *output);
void squash_output_done(struct squash_output *output);

/* 0 or an SQFS_ERROR. */
int squash_output_append(struct squash_output *output, const void *bytes, size_t size);

/* A compressor of the library; it makes copies of itself, one for each thread. sqfs_destroy frees
 * it. */
sqfs_compressor_t *squash_compressor_new(enum squash_compression compression, int level,
                                         size_t block_size);

/* Fill `err` for an SQFS_ERROR that came while `output` was written. Returns -1. */
int squash_library_error(int result, const struct squash_output *output, struct error *err);
