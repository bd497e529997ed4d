/* The content of one file into another, holes left out. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Copy all of `source` (a regular file open for reading, `size` bytes long) into `target` (empty,
 * open for writing), through `buffer`. Adds the bytes written to `*written`. 0 or -errno; -EIO when
 * the source has become shorter meanwhile. May block for long. */
int file_copy(int source, uint64_t size, int target, void *buffer, size_t buffer_size,
              uint64_t *written);
