/* The header Range, as far as one range of bytes goes (RFC 9110 14.2). */
#pragma once

#include <stdint.h>

enum http_range {
    HTTP_RANGE_WHOLE,   /* none, several, or not understood: answer with everything */
    HTTP_RANGE_PART,    /* 206 with first to last, both included */
    HTTP_RANGE_OUTSIDE, /* 416 */
};

/* What of something that has `size` bytes is asked for. `value` may be NULL. */
enum http_range http_range_read(const char *value, uint64_t size, uint64_t *ret_first,
                                uint64_t *ret_last);
