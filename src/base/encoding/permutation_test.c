#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "base/encoding/permutation.h"

#define END (UINT64_C(1) << PERMUTATION_BITS)

static struct permutation keyed(uint8_t first)
{
    struct permutation permutation;

    for (size_t i = 0; i < sizeof(permutation.key); i++)
        permutation.key[i] = (uint8_t) (first + i);
    return permutation;
}

/* From the paper's vectors: the key 00..0f, the message 00..0f. */
static void the_hash_is_siphash(void **state)
{
    const struct permutation permutation = keyed(0);

    (void) state;
    assert_true(permutation_siphash(permutation.key, UINT64_C(0x0706050403020100),
                                    UINT64_C(0x0f0e0d0c0b0a0908)) == UINT64_C(0x3f2acc7f57c29bdb));
}

static uint64_t random_number(void)
{
    return ((uint64_t) random() << 31 ^ (uint64_t) random()) % END;
}

static void what_goes_in_comes_out(void **state)
{
    static const uint64_t edges[] = {0, 1, 2, END / 2 - 1, END / 2, END - 2, END - 1};

    (void) state;
    for (int round = 0; round < 20000; round++) {
        const struct permutation permutation = keyed((uint8_t) random());
        uint64_t number = (size_t) round < ARRAY_COUNT(edges) ? edges[round] : random_number();
        uint64_t shown = permutation_apply(&permutation, number);

        assert_true(shown < END);
        assert_true(permutation_undo(&permutation, shown) == number);
        assert_true(permutation_apply(&permutation, permutation_undo(&permutation, number)) ==
                    number);
    }
}

static unsigned int count_bits(uint64_t word)
{
    return (unsigned int) __builtin_popcountll(word);
}

/* Two in a row differ in about half of their bits, and are as often smaller as larger. */
static void neighbours_tell_nothing(void **state)
{
    const struct permutation permutation = keyed(7);
    unsigned int bits = 0, larger = 0, rounds = 4096;

    (void) state;
    for (uint64_t i = 0; i < rounds; i++) {
        uint64_t one = permutation_apply(&permutation, i);
        uint64_t next = permutation_apply(&permutation, i + 1);

        bits += count_bits(one ^ next);
        larger += next > one;
    }
    assert_in_range(bits / rounds, PERMUTATION_BITS / 2 - 1, PERMUTATION_BITS / 2 + 1);
    assert_in_range(larger, rounds * 4 / 10, rounds * 6 / 10);
}

static void another_key_is_another_permutation(void **state)
{
    const struct permutation one = keyed(1), other = keyed(2);

    (void) state;
    for (uint64_t i = 0; i < 1000; i++)
        assert_true(permutation_undo(&other, permutation_apply(&one, i)) > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_hash_is_siphash),
        cmocka_unit_test(what_goes_in_comes_out),
        cmocka_unit_test(neighbours_tell_nothing),
        cmocka_unit_test(another_key_is_another_permutation),
    };

    srandom(1); /* the same every time */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
