/* The last 256 KiB of a terminal's output, for those who connect later and those who read slowly.
 *
 * Bytes have positions, counted from the terminal's start; a reader is a position. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define TERMINAL_RING_SIZE ((size_t) 256 * 1024)

struct terminal_ring {
    char *bytes;  /* owned; NULL while empty. Untouched pages cost nothing */
    uint64_t end; /* position behind the newest byte */
};

void terminal_ring_done(struct terminal_ring *ring);

void terminal_ring_append(struct terminal_ring *ring, const char *bytes, size_t length);

/* The position of the oldest byte that is still there. */
uint64_t terminal_ring_start(const struct terminal_ring *ring);

/* Where somebody who missed the beginning should start: behind the first line break near the start,
 * else at the first whole character. Without a beginning missed, 0. */
uint64_t terminal_ring_entry(const struct terminal_ring *ring);

/* The bytes from `position` (at least terminal_ring_start) on, as far as they lie in one piece.
 * Returns how many; 0 at the end. Borrowed until the next append. */
size_t terminal_ring_peek(const struct terminal_ring *ring, uint64_t position,
                          const char **ret_bytes);
