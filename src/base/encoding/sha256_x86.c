#include "base/encoding/sha256_x86.h"

#include <immintrin.h>
#include <sys/platform/x86.h>

#define QUADS 16 /* rounds, four at a time */

bool sha256_x86_is_there(void)
{
    return x86_cpu_active(x86_cpu_SHA) && x86_cpu_active(x86_cpu_SSE4_1) &&
           x86_cpu_active(x86_cpu_SSSE3);
}

/* The instructions want the eight words as A B E F and C D G H, the first in the highest place. */
struct halves {
    __m128i abef, cdgh;
};

/* Four rounds: the instruction does two, on the lower half of its last argument. */
__attribute__((target("sha,sse4.1"))) static inline void mix_four(struct halves *state,
                                                                  __m128i input)
{
    state->cdgh = _mm_sha256rnds2_epu32(state->cdgh, state->abef, input);
    state->abef = _mm_sha256rnds2_epu32(state->abef, state->cdgh, _mm_shuffle_epi32(input, 0x0e));
}

/* Section 6.2.2, step 1: the four words that come sixteen behind those of `first`. */
__attribute__((target("sha,sse4.1"))) static inline __m128i
expand_four(__m128i first, __m128i second, __m128i third, __m128i fourth)
{
    __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(first, second),
                                _mm_alignr_epi8(fourth, third, sizeof(uint32_t)));

    return _mm_sha256msg2_epu32(sum, fourth);
}

__attribute__((target("sha,sse4.1"))) static inline void add_block(struct halves *state,
                                                                   const uint8_t *block)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    const struct halves before = *state;
    __m128i words[4];

    for (size_t i = 0; i < 4; i++) {
        const __m128i *at = (const __m128i *) (const void *) (block + i * sizeof(__m128i));

        words[i] = _mm_shuffle_epi8(_mm_loadu_si128(at), swap);
    }
    /* Unrolled, so that the four stay in registers. */
#pragma GCC unroll 16
    for (size_t i = 0; i < QUADS; i++) {
        const __m128i *constants = (const __m128i *) (const void *) (sha256_constants + i * 4);

        mix_four(state, _mm_add_epi32(words[i % 4], _mm_loadu_si128(constants)));
        if (i + 4 < QUADS)
            words[i % 4] = expand_four(words[i % 4], words[(i + 1) % 4], words[(i + 2) % 4],
                                       words[(i + 3) % 4]);
    }
    state->abef = _mm_add_epi32(state->abef, before.abef);
    state->cdgh = _mm_add_epi32(state->cdgh, before.cdgh);
}

__attribute__((target("sha,sse4.1"))) void
sha256_x86_add_blocks(uint32_t *words, const uint8_t *blocks, size_t count)
{
    struct halves state = {
        .abef = _mm_set_epi32((int) words[0], (int) words[1], (int) words[4], (int) words[5]),
        .cdgh = _mm_set_epi32((int) words[2], (int) words[3], (int) words[6], (int) words[7]),
    };

    for (size_t i = 0; i < count; i++)
        add_block(&state, blocks + i * 64);
    words[0] = (uint32_t) _mm_extract_epi32(state.abef, 3);
    words[1] = (uint32_t) _mm_extract_epi32(state.abef, 2);
    words[4] = (uint32_t) _mm_extract_epi32(state.abef, 1);
    words[5] = (uint32_t) _mm_extract_epi32(state.abef, 0);
    words[2] = (uint32_t) _mm_extract_epi32(state.cdgh, 3);
    words[3] = (uint32_t) _mm_extract_epi32(state.cdgh, 2);
    words[6] = (uint32_t) _mm_extract_epi32(state.cdgh, 1);
    words[7] = (uint32_t) _mm_extract_epi32(state.cdgh, 0);
}
