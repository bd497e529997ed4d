/* Closing all descriptors in a range at once, so that nothing leaks into another program. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Close the open descriptors from `first` to `last` (both included, ~0u for no end), or with
 * `only_on_exec` mark them close-on-exec. Returns 0 or -errno.
 *
 * Without close_range the descriptors are read from /proc/self/fd; without /proc too that is an
 * error and not a guess. Async-signal-safe: for use between fork and exec. Descriptors that
 * another thread opens meanwhile may be missed. */
int sys_close_range(unsigned int first, unsigned int last, bool only_on_exec);

/* Close all descriptors from `first` on but the `count` of `kept`, which may come in any order. The
 * same otherwise; for a handful, it looks at them again and again. */
int sys_close_all_but(unsigned int first, const int *kept, size_t count);
