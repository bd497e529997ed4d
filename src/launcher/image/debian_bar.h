/* How far a Debian build is: one line on a terminal, written over itself, made of what mmdebstrap
 * says. Pure.
 *
 *     [=========>          ]  step 4 of 8  installing essential packages  21 s
 *
 * What it says besides its steps stays on the screen, above that line. */
#pragma once

#include <stdint.h>

#include "base/text.h"

#define DEBIAN_BAR_LINE_MAX 1000

struct debian_bar {
    unsigned int columns; /* of the terminal */
    size_t step;          /* 0: none began */
    char line[DEBIAN_BAR_LINE_MAX];
    size_t length; /* of the line that is not complete */
};

/* After `elapsed_ms` it said these bytes, perhaps none; append to `out` what is to be written. */
void debian_bar_take(struct debian_bar *bar, const char *bytes, size_t length, uint64_t elapsed_ms,
                     struct text *out);

/* It ended: take the line away; what was said last, without an end of line, is shown. */
void debian_bar_end(struct debian_bar *bar, struct text *out);
