#include "base/encoding/permutation.h"

#include <endian.h>
#include <string.h>

#define HALF_BITS (PERMUTATION_BITS / 2)
#define HALF_MASK ((UINT64_C(1) << HALF_BITS) - 1)
#define ROUNDS    8

static uint64_t sip_rotate(uint64_t word, unsigned int bits)
{
    return word << bits | word >> (64 - bits);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = sip_rotate(v[1], 13) ^ v[0];
    v[0] = sip_rotate(v[0], 32);
    v[2] += v[3];
    v[3] = sip_rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = sip_rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = sip_rotate(v[1], 17) ^ v[2];
    v[2] = sip_rotate(v[2], 32);
}

static void sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_round(v);
    sip_round(v);
    v[0] ^= word;
}

uint64_t permutation_siphash(const uint8_t key[static PERMUTATION_KEY_SIZE], uint64_t first,
                             uint64_t second)
{
    uint64_t k[2], v[4];

    memcpy(k, key, sizeof(k));
    v[0] = le64toh(k[0]) ^ UINT64_C(0x736f6d6570736575);
    v[1] = le64toh(k[1]) ^ UINT64_C(0x646f72616e646f6d);
    v[2] = le64toh(k[0]) ^ UINT64_C(0x6c7967656e657261);
    v[3] = le64toh(k[1]) ^ UINT64_C(0x7465646279746573);
    sip_word(v, first);
    sip_word(v, second);
    sip_word(v, UINT64_C(16) << 56); /* the length, and no bytes left over */
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static uint64_t scramble(const struct permutation *permutation, unsigned int round, uint64_t half)
{
    return permutation_siphash(permutation->key, round, half) & HALF_MASK;
}

uint64_t permutation_apply(const struct permutation *permutation, uint64_t number)
{
    uint64_t left = number >> HALF_BITS & HALF_MASK, right = number & HALF_MASK;

    for (unsigned int round = 0; round < ROUNDS; round++) {
        uint64_t next = left ^ scramble(permutation, round, right);

        left = right;
        right = next;
    }
    return left << HALF_BITS | right;
}

uint64_t permutation_undo(const struct permutation *permutation, uint64_t number)
{
    uint64_t left = number >> HALF_BITS & HALF_MASK, right = number & HALF_MASK;

    for (unsigned int round = ROUNDS; round-- > 0;) {
        uint64_t before = right ^ scramble(permutation, round, left);

        right = left;
        left = before;
    }
    return left << HALF_BITS | right;
}
