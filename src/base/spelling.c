#include "base/spelling.h"

#include <stdint.h>
#include <string.h>

#define NEAR_ENOUGH 3 /* changes that a slip of typing explains */

/* Levenshtein's, with one row of the table: row[j] is how far what we saw of `one` is from the
 * first j letters of `other`. */
size_t spelling_distance(const char *one, const char *other)
{
    size_t row[SPELLING_MAX + 1];
    size_t width = strlen(other);

    if (width > SPELLING_MAX || strlen(one) > SPELLING_MAX)
        return SIZE_MAX;
    for (size_t j = 0; j <= width; j++)
        row[j] = j;
    for (size_t i = 0; one[i]; i++) {
        size_t corner = row[0]++;

        for (size_t j = 0; j < width; j++) {
            size_t change = corner + (one[i] != other[j]);
            size_t least = row[j] < row[j + 1] ? row[j] + 1 : row[j + 1] + 1;

            corner = row[j + 1];
            row[j + 1] = change < least ? change : least;
        }
    }
    return row[width];
}

const char *spelling_nearest(const char *text, const char *const *names, size_t count)
{
    const char *nearest = NULL;
    /* Of a short word nearly every letter would be a slip. */
    size_t best = strlen(text) / 2 < NEAR_ENOUGH ? strlen(text) / 2 + 1 : NEAR_ENOUGH;

    for (size_t i = 0; i < count; i++) {
        size_t d = spelling_distance(text, names[i]);

        if (d < best) {
            best = d;
            nearest = names[i];
        }
    }
    return nearest;
}
