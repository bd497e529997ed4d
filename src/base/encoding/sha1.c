#include "base/encoding/sha1.h"

#include <string.h>

#define BLOCK_SIZE  64
#define LENGTH_SIZE 8 /* of the bit count that ends the last block */
#define ROUNDS      80
#define WORDS       5

static uint32_t rotate(uint32_t value, unsigned int bits)
{
    return value << bits | value >> (32 - bits);
}

static uint32_t read_word(const uint8_t *bytes)
{
    return (uint32_t) bytes[0] << 24 | (uint32_t) bytes[1] << 16 | (uint32_t) bytes[2] << 8 |
           bytes[3];
}

/* FIPS 180-4, section 6.1.2: the message schedule. */
static void expand(const uint8_t *block, uint32_t words[static ROUNDS])
{
    for (int i = 0; i < 16; i++)
        words[i] = read_word(block + (size_t) i * 4);
    for (int i = 16; i < ROUNDS; i++)
        words[i] = rotate(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
}

/* The function and constant of each quarter of the rounds. */
static uint32_t mix(int round, uint32_t b, uint32_t c, uint32_t d)
{
    if (round < 20)
        return ((b & c) | (~b & d)) + 0x5a827999;
    if (round < 40)
        return (b ^ c ^ d) + 0x6ed9eba1;
    if (round < 60)
        return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
    return (b ^ c ^ d) + 0xca62c1d6;
}

static void add_block(uint32_t state[static WORDS], const uint8_t *block)
{
    uint32_t words[ROUNDS], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];

    expand(block, words);
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t next = rotate(a, 5) + mix(i, b, c, d) + e + words[i];

        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
}

/* What is left after the whole blocks, a 1 bit, zeros, and the number of bits: one block or two. */
static void add_end(uint32_t state[static WORDS], const uint8_t *rest, size_t count, uint64_t total)
{
    uint8_t end[2 * BLOCK_SIZE] = {0};
    size_t size = count + 1 + LENGTH_SIZE <= BLOCK_SIZE ? BLOCK_SIZE : 2 * BLOCK_SIZE;
    uint64_t bits = total * 8;

    if (count)
        memcpy(end, rest, count);
    end[count] = 0x80;
    for (size_t i = 0; i < LENGTH_SIZE; i++)
        end[size - 1 - i] = (uint8_t) (bits >> (8 * i));
    for (size_t at = 0; at < size; at += BLOCK_SIZE)
        add_block(state, end + at);
}

void sha1_bytes(const void *bytes, size_t count, uint8_t ret_digest[static SHA1_SIZE])
{
    uint32_t state[WORDS] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    const uint8_t *at = bytes;
    size_t left = count;

    for (; left >= BLOCK_SIZE; left -= BLOCK_SIZE, at += BLOCK_SIZE)
        add_block(state, at);
    add_end(state, at, left, count);
    for (size_t i = 0; i < SHA1_SIZE; i++)
        ret_digest[i] = (uint8_t) (state[i / 4] >> (24 - 8 * (i % 4)));
}
