/* Words of a Dockerfile: split, and with their quotes and variables replaced.
 *
 *     "a b"  'a b'  a\ b        one word; in '...' nothing else means anything
 *     $NAME ${NAME}             its value; "" when there is none
 *     ${NAME:-text}             the text when it has none or an empty one
 *     ${NAME:+text}             the text when it has one that is not empty
 *     \$                        a dollar; a backslash makes any character mean itself
 *
 * Pure. */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "base/pool.h"
#include "base/text.h"

/* Of one text after its variables were replaced. */
#define RECIPE_TEXT_MAX ((size_t) 32 * 1024)

/* Words between blanks, as they are written. 0, or -1 with ERR_INVALID: a quote without its end;
 * ERR_TOO_LARGE: more than `maximum`. */
int recipe_text_split(const char *text, size_t maximum, struct pool *pool, const char ***ret_words,
                      size_t *ret_count, struct error *err);

/* Where values come from: the value of a variable, borrowed, or NULL. `name` is not terminated. */
struct recipe_variables {
    const char *(*find)(const void *context, const char *name, size_t length);
    const void *context;
};

/* Append a text with everything replaced. 0, or -1 with ERR_INVALID: a quote or ${ without its end,
 * or a form of ${} that is not above; ERR_TOO_LARGE. */
int recipe_text_expand(const char *text, const struct recipe_variables *variables, struct text *out,
                       struct error *err);
