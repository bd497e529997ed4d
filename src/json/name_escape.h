/* Names of files as text. Linux takes any bytes but '/' and NUL for a name; text and JSON want
 * UTF-8. Valid UTF-8 stays as it is, newlines and the like included, with two exceptions:
 *
 *     a byte that is no part of a valid character     \xHH, lower-case digits
 *     a backslash                                     \\
 *
 * So two names never become the same text, and the text leads back to the name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/* Most bytes of text that one byte of a name becomes. */
#define NAME_ESCAPE_FACTOR 4

/* Append `length` bytes of a name or path to `text`, which is valid UTF-8 if it was before. */
void name_escape(struct text *text, const void *bytes, size_t length);

/* The way back: append the name or path that `length` bytes of text stand for. False when it is no
 * escaped name. */
bool name_unescape(struct text *name, const char *text, size_t length);
