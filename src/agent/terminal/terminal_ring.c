#include "agent/terminal/terminal_ring.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* How far the entry may be from the start. */
#define ENTRY_MAX 4096

void terminal_ring_done(struct terminal_ring *ring)
{
    free(ring->bytes);
    *ring = (struct terminal_ring){.bytes = NULL};
}

void terminal_ring_append(struct terminal_ring *ring, const char *bytes, size_t length)
{
    if (!ring->bytes)
        ring->bytes = mem_alloc(TERMINAL_RING_SIZE);
    if (length > TERMINAL_RING_SIZE) { /* the rest would be overwritten at once */
        ring->end += length - TERMINAL_RING_SIZE;
        bytes += length - TERMINAL_RING_SIZE;
        length = TERMINAL_RING_SIZE;
    }
    while (length) {
        size_t place = (size_t) (ring->end % TERMINAL_RING_SIZE);
        size_t room = TERMINAL_RING_SIZE - place;
        size_t count = length < room ? length : room;

        memcpy(ring->bytes + place, bytes, count);
        ring->end += count;
        bytes += count;
        length -= count;
    }
}

uint64_t terminal_ring_start(const struct terminal_ring *ring)
{
    return ring->end > TERMINAL_RING_SIZE ? ring->end - TERMINAL_RING_SIZE : 0;
}

static unsigned char byte_at(const struct terminal_ring *ring, uint64_t position)
{
    return (unsigned char) ring->bytes[position % TERMINAL_RING_SIZE];
}

uint64_t terminal_ring_entry(const struct terminal_ring *ring)
{
    uint64_t start = terminal_ring_start(ring);

    if (!start)
        return 0;
    for (uint64_t at = start; at < start + ENTRY_MAX; at++) {
        if (byte_at(ring, at) == '\n')
            return at + 1;
    }
    /* A character of UTF-8 goes on for three bytes at most. */
    for (uint64_t at = start; at < start + 4; at++) {
        if ((byte_at(ring, at) & 0xc0) != 0x80)
            return at;
    }
    return start;
}

size_t terminal_ring_peek(const struct terminal_ring *ring, uint64_t position,
                          const char **ret_bytes)
{
    size_t place = (size_t) (position % TERMINAL_RING_SIZE);
    size_t room = TERMINAL_RING_SIZE - place;
    uint64_t left = ring->end - position;

    if (!left)
        return 0;
    *ret_bytes = ring->bytes + place;
    return left < room ? (size_t) left : room;
}
