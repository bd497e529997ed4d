/* For tests only: how often the random ones go round, and from which number.
 *
 *     uint64_t first = rounds_seed(1);                  1, or what BURROW_SEED says
 *     uint64_t end = first + rounds_of(4, 24);          4 rounds, 24 with BURROW_FULL=1
 *
 * The same every time, so that a failure can be looked at again. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline uint64_t rounds_of(uint64_t some, uint64_t all)
{
    const char *full = getenv("BURROW_FULL");

    return full && strcmp(full, "1") == 0 ? all : some;
}

static inline uint64_t rounds_seed(uint64_t usual)
{
    const char *given = getenv("BURROW_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : usual;

    (void) printf("# seed: %llu (BURROW_SEED gives another)\n", (unsigned long long) seed);
    return seed;
}
