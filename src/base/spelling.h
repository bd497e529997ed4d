/* How near two words are, for "did you mean". */
#pragma once

#include <stddef.h>

/* Longer words are near nothing. */
#define SPELLING_MAX 128

/* How many letters must be changed, added or taken away to make one of the other; SIZE_MAX when one
 * of them is longer than SPELLING_MAX. */
size_t spelling_distance(const char *one, const char *other);

/* The one of `names` nearest to `text`, if a slip of typing explains the difference; else NULL. */
const char *spelling_nearest(const char *text, const char *const *names, size_t count);
