#include "net/http/http_range.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"

/* Digits up to `length`; what is too large for a number is as large as can be. */
static int read_number(const char *digits, size_t length, uint64_t *ret_number)
{
    int r = number_parse_digits(digits, length, UINT64_MAX - 1, ret_number);

    if (r == -ERANGE)
        *ret_number = UINT64_MAX - 1;
    return r == -ERANGE ? 0 : r;
}

/* "-500": the last 500 bytes. */
static enum http_range read_suffix(const char *digits, uint64_t size, uint64_t *ret_first,
                                   uint64_t *ret_last)
{
    uint64_t count;

    if (read_number(digits, strlen(digits), &count) < 0)
        return HTTP_RANGE_WHOLE;
    if (!count || !size)
        return HTTP_RANGE_OUTSIDE;
    *ret_first = count < size ? size - count : 0;
    *ret_last = size - 1;
    return HTTP_RANGE_PART;
}

enum http_range http_range_read(const char *value, uint64_t size, uint64_t *ret_first,
                                uint64_t *ret_last)
{
    uint64_t first, last = UINT64_MAX - 1;
    const char *dash;

    if (!value || strncasecmp(value, "bytes=", 6) != 0)
        return HTTP_RANGE_WHOLE;
    value += 6;
    dash = strchr(value, '-');
    if (dash == value)
        return read_suffix(dash + 1, size, ret_first, ret_last);
    if (!dash || read_number(value, (size_t) (dash - value), &first) < 0 ||
        (dash[1] && (read_number(dash + 1, strlen(dash + 1), &last) < 0 || last < first)))
        return HTTP_RANGE_WHOLE;
    if (first >= size)
        return HTTP_RANGE_OUTSIDE;
    *ret_first = first;
    *ret_last = last < size ? last : size - 1;
    return HTTP_RANGE_PART;
}
