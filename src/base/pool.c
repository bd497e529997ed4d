#include "base/pool.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

/* Most requests need less than this for headers, parameters and replies. */
#define POOL_BLOCK_SIZE 4096

struct pool_block {
    struct pool_block *older; /* owned */
    size_t size;              /* of bytes[] */
    alignas(max_align_t) char bytes[];
};

static void add_block(struct pool *pool, size_t size)
{
    /* Not mem_alloc: zeroing happens per piece, a whole block would be touched for nothing. */
    struct pool_block *block = mem_resize(NULL, sizeof(*block) + size);

    block->older = pool->blocks;
    block->size = size;
    pool->blocks = block;
    pool->next = block->bytes;
    pool->left = size;
}

void *pool_alloc_raw(struct pool *pool, size_t size)
{
    size_t rounded;
    void *memory;

    if (size > SIZE_MAX / 4) /* no caller may get here: sizes from outside are capped */
        abort();
    rounded = ((size ? size : 1) + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    if (rounded > pool->left) {
        size_t usual = POOL_BLOCK_SIZE - sizeof(struct pool_block);

        add_block(pool, rounded > usual ? rounded : usual);
    }
    memory = pool->next;
    pool->next += rounded;
    pool->left -= rounded;
    return memory;
}

void *pool_alloc(struct pool *pool, size_t size)
{
    return memset(pool_alloc_raw(pool, size), 0, size);
}

char *pool_copy_text(struct pool *pool, const char *text)
{
    return pool_copy_bytes(pool, text, strlen(text));
}

char *pool_copy_bytes(struct pool *pool, const void *bytes, size_t length)
{
    char *copy = pool_alloc_raw(pool, length < SIZE_MAX ? length + 1 : length);

    if (length)
        memcpy(copy, bytes, length);
    copy[length] = '\0';
    return copy;
}

char *pool_format(struct pool *pool, const char *format, ...)
{
    va_list arguments, again;
    char *text;
    int length;

    va_start(arguments, format);
    va_copy(again, arguments);
    length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    text = pool_alloc(pool, length < 0 ? 1 : (size_t) length + 1);
    if (length > 0)
        (void) vsnprintf(text, (size_t) length + 1, format, again);
    va_end(again);
    return text;
}

static void free_older(struct pool *pool, struct pool_block *keep)
{
    struct pool_block *block = pool->blocks;

    while (block) {
        struct pool_block *older = block->older;

        if (block != keep)
            free(block);
        block = older;
    }
}

void pool_reset(struct pool *pool)
{
    struct pool_block *keep = pool->blocks;

    while (keep && keep->size != POOL_BLOCK_SIZE - sizeof(struct pool_block))
        keep = keep->older;
    free_older(pool, keep);
    *pool = (struct pool) POOL_INIT;
    if (keep) {
        keep->older = NULL;
        pool->blocks = keep;
        pool->next = keep->bytes;
        pool->left = keep->size;
    }
}

void pool_done(struct pool *pool)
{
    free_older(pool, NULL);
    *pool = (struct pool) POOL_INIT;
}
