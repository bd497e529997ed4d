/* How much memory the machine has left, from /proc/meminfo. */
#pragma once

#include <stddef.h>

/* Percent of all memory that is available without swapping; -1 when it is not known. */
int host_memory_available(void);

/* The same from the text of that file, which need not end in a NUL. */
int host_memory_percent(const char *text, size_t length);
