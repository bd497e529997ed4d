/* How near two words are, for "did you mean". */
#pragma once

#include <stddef.h>

/* Longer words are near nothing. */
#define SPELLING_MAX 128

/* How many letters must be changed, added or taken away to make one of the other; SIZE_MAX when one
 * of them is longer than SPELLING_MAX. */
size_t spelling_distance(const char *one, const char *other);
