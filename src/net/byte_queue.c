#include "net/byte_queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct byte_block {
    struct byte_block *next; /* owned */
    size_t start;            /* first byte not yet consumed */
    size_t end;              /* first free byte */
    char bytes[];
};

#define BLOCK_BYTES (BYTE_BLOCK_SIZE - sizeof(struct byte_block))

struct block_store {
    struct byte_block *spare; /* owned */
    size_t count;
    size_t maximum;
};

struct block_store *block_store_new(size_t spare)
{
    struct block_store *store = mem_alloc(sizeof(*store));

    store->maximum = spare;
    return store;
}

void block_store_free(struct block_store *store)
{
    if (!store)
        return;
    while (store->spare) {
        struct byte_block *next = store->spare->next;

        free(store->spare);
        store->spare = next;
    }
    free(store);
}

static struct byte_block *take_block(struct block_store *store)
{
    struct byte_block *block = store->spare;

    if (block) {
        store->spare = block->next;
        store->count--;
    } else {
        block = mem_resize(NULL, BYTE_BLOCK_SIZE); /* not zeroed: it is about to be overwritten */
    }
    block->next = NULL;
    block->start = block->end = 0;
    return block;
}

static void give_block(struct block_store *store, struct byte_block *block)
{
    if (store->count >= store->maximum) {
        free(block);
        return;
    }
    block->next = store->spare;
    store->spare = block;
    store->count++;
}

void byte_queue_init(struct byte_queue *queue, struct block_store *store)
{
    *queue = (struct byte_queue){.store = store};
}

void byte_queue_done(struct byte_queue *queue)
{
    while (queue->first) {
        struct byte_block *block = queue->first;

        queue->first = block->next;
        give_block(queue->store, block);
    }
    byte_queue_init(queue, queue->store);
}

static struct byte_block *block_with_room(struct byte_queue *queue)
{
    struct byte_block *block = queue->last;

    if (block && block->end < BLOCK_BYTES)
        return block;
    block = take_block(queue->store);
    if (queue->last)
        queue->last->next = block;
    else
        queue->first = block;
    queue->last = block;
    return block;
}

void byte_queue_append(struct byte_queue *queue, const void *bytes, size_t length)
{
    const char *from = bytes;

    queue->length += length;
    while (length) {
        struct byte_block *block = block_with_room(queue);
        size_t room = BLOCK_BYTES - block->end;
        size_t part = length < room ? length : room;

        memcpy(block->bytes + block->end, from, part);
        block->end += part;
        from += part;
        length -= part;
    }
}

int byte_queue_peek(const struct byte_queue *queue, struct iovec *parts, int count)
{
    int filled = 0;

    for (struct byte_block *block = queue->first; block && filled < count; block = block->next) {
        parts[filled].iov_base = block->bytes + block->start;
        parts[filled].iov_len = block->end - block->start;
        filled++;
    }
    return filled;
}

void byte_queue_consume(struct byte_queue *queue, size_t count)
{
    struct byte_block *block;

    queue->length -= count;
    while (count && (block = queue->first)) {
        size_t available = block->end - block->start;

        if (count < available) {
            block->start += count;
            return;
        }
        count -= available;
        queue->first = block->next;
        if (!queue->first)
            queue->last = NULL;
        give_block(queue->store, block);
    }
}
