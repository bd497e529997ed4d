/* What a child says that is not trusted, on its way to a terminal: plain characters, newlines,
 * carriage returns and "clear the rest of the line" stay, the last two for progress bars; every
 * other byte becomes '?'. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* How many bytes may come of one. */
#define CHILD_WORDS_GROWTH 3

/* Zeroed: nothing was said yet. Kept between two pieces of one stream. */
struct child_words {
    size_t matched; /* of a sequence that began */
};

/* Pure. Returns how many bytes `ret_bytes` got, which has room for CHILD_WORDS_GROWTH times
 * `length`. */
size_t child_words_make_harmless(struct child_words *words, const char *bytes, size_t length,
                                 char *ret_bytes);

/* Read the pipe `from` to its end and show it, made harmless. Returns true at the end, false as
 * soon as `stop` can be read (-1: nothing stops it); call again to go on. Blocks. */
bool child_words_pass_on(struct child_words *words, int from, int stop,
                         void (*show)(void *context, const char *bytes, size_t length),
                         void *context);
