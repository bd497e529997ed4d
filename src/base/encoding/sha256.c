#include "base/encoding/sha256.h"

#include <string.h>

#include "base/encoding/sha256_x86.h"

#define LENGTH_SIZE 8 /* of the bit count that ends the last block */
#define ROUNDS      SHA256_ROUNDS

/* Section 4.2.2: the first 32 bits of the fractional parts of the cube roots of the first 64
 * primes. */
const uint32_t sha256_constants[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t value, unsigned int bits)
{
    return value >> bits | value << (32 - bits);
}

static uint32_t read_word(const uint8_t *bytes)
{
    return (uint32_t) bytes[0] << 24 | (uint32_t) bytes[1] << 16 | (uint32_t) bytes[2] << 8 |
           bytes[3];
}

/* Section 6.2.2, step 1: the message schedule, with the constants that step 3 adds. */
static void expand(const uint8_t *block, uint32_t words[static ROUNDS])
{
    for (int i = 0; i < 16; i++)
        words[i] = read_word(block + (size_t) i * 4);
    for (int i = 16; i < ROUNDS; i++) {
        uint32_t early = words[i - 15], late = words[i - 2];

        words[i] = words[i - 16] + (rotate(early, 7) ^ rotate(early, 18) ^ early >> 3) +
                   words[i - 7] + (rotate(late, 17) ^ rotate(late, 19) ^ late >> 10);
    }
    for (int i = 0; i < ROUNDS; i++)
        words[i] += sha256_constants[i];
}

/* Step 3, one round on the eight working words. Instead of moving each word one place on, the
 * caller names them one place on, which makes it twice as fast. */
static inline void mix(uint32_t a, uint32_t b, uint32_t c, uint32_t *d, uint32_t e, uint32_t f,
                       uint32_t g, uint32_t *h, uint32_t input)
{
    uint32_t choice = (e & f) ^ (~e & g);
    uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
    uint32_t first = *h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + choice + input;

    *d += first;
    *h = first + (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + majority;
}

static void add_block(uint32_t state[static SHA256_WORDS], const uint8_t *block)
{
    uint32_t words[ROUNDS], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4],
                            f = state[5], g = state[6], h = state[7];

    expand(block, words);
    for (int i = 0; i < ROUNDS; i += SHA256_WORDS) {
        mix(a, b, c, &d, e, f, g, &h, words[i]);
        mix(h, a, b, &c, d, e, f, &g, words[i + 1]);
        mix(g, h, a, &b, c, d, e, &f, words[i + 2]);
        mix(f, g, h, &a, b, c, d, &e, words[i + 3]);
        mix(e, f, g, &h, a, b, c, &d, words[i + 4]);
        mix(d, e, f, &g, h, a, b, &c, words[i + 5]);
        mix(c, d, e, &f, g, h, a, &b, words[i + 6]);
        mix(b, c, d, &e, f, g, h, &a, words[i + 7]);
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
}

static void add_blocks(uint32_t state[static SHA256_WORDS], const uint8_t *blocks, size_t count)
{
    if (sha256_x86_is_there()) {
        sha256_x86_add_blocks(state, blocks, count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        add_block(state, blocks + i * SHA256_BLOCK);
}

void sha256_init(struct sha256 *sha)
{
    /* Section 5.3.3: of the square roots of the first eight primes. */
    *sha = (struct sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                     0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

/* Add to the block that is not full yet. Returns how much of it that took. */
static size_t fill_block(struct sha256 *sha, const uint8_t *bytes, size_t count)
{
    size_t filled = sha->total % SHA256_BLOCK;
    size_t piece = count < SHA256_BLOCK - filled ? count : SHA256_BLOCK - filled;

    memcpy(sha->block + filled, bytes, piece);
    if (filled + piece == SHA256_BLOCK)
        add_blocks(sha->state, sha->block, 1);
    sha->total += piece;
    return piece;
}

void sha256_add(struct sha256 *sha, const void *bytes, size_t count)
{
    const uint8_t *at = bytes;

    while (count) {
        size_t piece = count - count % SHA256_BLOCK;

        if (sha->total % SHA256_BLOCK || piece == 0) {
            piece = fill_block(sha, at, count);
        } else {
            add_blocks(sha->state, at, piece / SHA256_BLOCK);
            sha->total += piece;
        }
        at += piece;
        count -= piece;
    }
}

/* A 1 bit, zeros, and the number of bits: they fill the last block, or one more. */
void sha256_finish(struct sha256 *sha, uint8_t ret_digest[static SHA256_SIZE])
{
    uint8_t end[2 * SHA256_BLOCK] = {0x80};
    uint64_t bits = sha->total * 8;
    size_t filled = sha->total % SHA256_BLOCK;
    size_t size = SHA256_BLOCK - filled;

    if (size < 1 + LENGTH_SIZE)
        size += SHA256_BLOCK;
    for (size_t i = 0; i < LENGTH_SIZE; i++)
        end[size - 1 - i] = (uint8_t) (bits >> (8 * i));
    sha256_add(sha, end, size);
    for (size_t i = 0; i < SHA256_SIZE; i++)
        ret_digest[i] = (uint8_t) (sha->state[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256_bytes(const void *bytes, size_t count, uint8_t ret_digest[static SHA256_SIZE])
{
    struct sha256 sha;

    sha256_init(&sha);
    sha256_add(&sha, bytes, count);
    sha256_finish(&sha, ret_digest);
}
