/* A part of an image as it lies in an archive or a folder, read as the bytes that it stands for:
 * plain, or compressed by gzip or zstd, which is seen by its first bytes. Both sums are taken while
 * it is read. Memory is bounded, whatever the bytes say. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/auto.h"
#include "base/encoding/sha256.h"
#include "base/error.h"

/* Where the bytes lie: `size` of them from `offset` on. */
struct image_place {
    int file; /* borrowed, can be read by position */
    off_t offset;
    uint64_t size;
};

struct image_blob;

/* The caller frees it. */
struct image_blob *image_blob_new(const struct image_place *place);

/* Accepts NULL. */
void image_blob_free(struct image_blob *blob);

AUTO_DEFINE_PTR(image_blob, struct image_blob, image_blob_free);

/* Up to `size` bytes. How many, 0 at the end, or -1 with `err`: ERR_INVALID when it is cut off or
 * not what it seems, or what reading failed with. */
ssize_t image_blob_read(struct image_blob *blob, void *ret_bytes, size_t size, struct error *err);

/* After the end, in hex: the sums of the bytes as they lie, and of those that were read. 0, or -1
 * with `err` when what is left behind the end cannot be read. */
int image_blob_sums(struct image_blob *blob, char ret_raw[static 2 * SHA256_SIZE + 1],
                    char ret_plain[static 2 * SHA256_SIZE + 1], struct error *err);
