/* JSON text into jansson's values, quickly: jansson's own parser looks at each byte of a string
 * through some ten calls, which is 15 to 20 ms of a loop's time for a file of 1 MB.
 *
 * The language is jansson's, strict and without duplicate keys (RFC 8259), and the values are the
 * same; json_parser_fuzz.c holds the two against each other. (jansson loses NUL bytes behind
 * numbers, here they are refused.) Numbers that are no short integers are read by jansson itself.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

struct json_limits;

/* Parse one array or object with nothing behind it. Of the limits `depth`, as which the recursion
 * is as deep, and `nul` count here. Returns an owned value, or NULL: this is no JSON, or too deep.
 * Why and where is jansson's to say, which refuses it, too. */
json_t *json_parse(const char *bytes, size_t length, const struct json_limits *limits);
