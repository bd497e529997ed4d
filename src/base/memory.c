#include "base/memory.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"

/* No logging here: the log allocates. One write to stderr is all that is safe now. */
static _Noreturn void out_of_memory(size_t size)
{
    (void) fprintf(stderr, "burrow: out of memory allocating %zu bytes\n", size);
    abort();
}

void *mem_alloc(size_t size)
{
    void *memory = fault_hits(FAULT_ALLOCATION) ? NULL : calloc(1, size ? size : 1);

    if (!memory)
        out_of_memory(size);
    return memory;
}

void *mem_alloc_array(size_t count, size_t size)
{
    size_t total;

    if (__builtin_mul_overflow(count, size, &total))
        out_of_memory(SIZE_MAX);
    return mem_alloc(total);
}

void *mem_resize(void *memory, size_t size)
{
    void *moved = fault_hits(FAULT_ALLOCATION) ? NULL : realloc(memory, size ? size : 1);

    if (!moved)
        out_of_memory(size);
    return moved;
}

char *mem_copy_text(const char *text)
{
    return mem_copy_bytes(text, strlen(text));
}

char *mem_copy_bytes(const void *bytes, size_t length)
{
    char *copy;

    if (length == SIZE_MAX)
        out_of_memory(length);
    copy = mem_alloc(length + 1);
    if (length)
        memcpy(copy, bytes, length);
    return copy;
}

void *mem_try_alloc(size_t size, size_t limit)
{
    if (size > limit || fault_hits(FAULT_ALLOCATION))
        return NULL;
    return calloc(1, size ? size : 1);
}
