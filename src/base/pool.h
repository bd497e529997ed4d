/* A pool: memory that is given out piecemeal and freed all at once.
 *
 * Everything that lives as long as a request comes from the request's pool and is never freed by
 * hand; what must outlive it is copied out on purpose. Not thread-safe. */
#pragma once

#include <stddef.h>

#include "base/auto.h"

struct pool_block;

struct pool {
    struct pool_block *blocks; /* owned, newest first */
    char *next;                /* free bytes in the newest block */
    size_t left;
};

#define POOL_INIT                                                                                  \
    {                                                                                              \
        .blocks = NULL                                                                             \
    }

/* Zeroed memory aligned for any type; lives until pool_done or pool_reset. */
void *pool_alloc(struct pool *pool, size_t size);

/* The same, not zeroed: for buffers that are about to be filled. */
void *pool_alloc_raw(struct pool *pool, size_t size);

char *pool_copy_text(struct pool *pool, const char *text);

/* `length` bytes and a NUL behind them. */
char *pool_copy_bytes(struct pool *pool, const void *bytes, size_t length);

char *pool_format(struct pool *pool, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Forget everything but keep one block of the usual size for the next use. */
void pool_reset(struct pool *pool);

/* Free everything. The pool is empty and usable again. */
void pool_done(struct pool *pool);

AUTO_DEFINE(pool, struct pool, pool_done);
