/* A queue of bytes in blocks: what waits to be written to a socket.
 *
 * Appending copies into the last block or a new one; blocks come from a store shared by all queues
 * of a loop, so that an idle connection holds none and a busy server allocates none. Not
 * thread-safe. */
#pragma once

#include <stddef.h>
#include <sys/uio.h>

#define BYTE_BLOCK_SIZE ((size_t) 16 * 1024)

struct byte_block;
struct block_store;

struct byte_queue {
    struct byte_block *first; /* owned */
    struct byte_block *last;
    struct block_store *store; /* borrowed: outlives us */
    size_t length;
};

/* A store that keeps up to `spare` unused blocks. */
struct block_store *block_store_new(size_t spare);
void block_store_free(struct block_store *store);

void byte_queue_init(struct byte_queue *queue, struct block_store *store);

/* Give all blocks back. The queue is empty and usable again. */
void byte_queue_done(struct byte_queue *queue);

void byte_queue_append(struct byte_queue *queue, const void *bytes, size_t length);

/* Point up to `count` parts at the front of the queue, in order; returns how many were filled.
 * Borrowed until the next change. */
int byte_queue_peek(const struct byte_queue *queue, struct iovec *parts, int count);

/* Drop `count` bytes at the front (at most the length). */
void byte_queue_consume(struct byte_queue *queue, size_t count);

static inline size_t byte_queue_length(const struct byte_queue *queue)
{
    return queue->length;
}
