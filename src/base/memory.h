/* Memory: allocate or abort.
 *
 * A dead daemon is a restart and loses nothing (the launcher keeps sandboxes alive), a daemon that
 * limps on half-built state may lose everything. So the plain functions never return NULL. Sizes
 * that come from outside are capped by a named limit before they reach this module;
 * mem_try_alloc is for the few large ones that may be refused politely. All memory is released
 * with free(3), by hand or through AUTO(free).
 *
 * Thread-safe. */
#pragma once

#include <stddef.h>

/* Zeroed memory of `size` bytes (at least 1). Aborts when there is none. */
void *mem_alloc(size_t size);

/* Zeroed array; aborts on overflow of count * size too. */
void *mem_alloc_array(size_t count, size_t size);

/* Grow or shrink; new bytes are not zeroed. Aborts when there is none. */
void *mem_resize(void *memory, size_t size);

char *mem_copy_text(const char *text);

/* `length` bytes and a NUL behind them. */
char *mem_copy_bytes(const void *bytes, size_t length);

/* Like mem_alloc, but NULL when the system has none or `size` is above `limit`. */
void *mem_try_alloc(size_t size, size_t limit);
