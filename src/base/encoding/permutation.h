/* Numbers that count something, shown so that they do not: a permutation of the numbers below 2^52
 * by a key. Whoever has not the key cannot tell which of two is the later one, or how many are
 * between them. All are exact as numbers of JSON.
 *
 * A Feistel network with SipHash-2-4 as its function. Pure, no allocation. */
#pragma once

#include <stdint.h>

#define PERMUTATION_BITS     52
#define PERMUTATION_KEY_SIZE 16

struct permutation {
    uint8_t key[PERMUTATION_KEY_SIZE];
};

/* `number` must be below 2^PERMUTATION_BITS; so is what comes out. */
uint64_t permutation_apply(const struct permutation *permutation, uint64_t number);
uint64_t permutation_undo(const struct permutation *permutation, uint64_t number);

/* SipHash-2-4 of 16 bytes, for tests with vectors of others. */
uint64_t permutation_siphash(const uint8_t key[static PERMUTATION_KEY_SIZE], uint64_t first,
                             uint64_t second);
