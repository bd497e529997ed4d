#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/pool.h"

static void pieces_are_zeroed_aligned_and_apart(void **state)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    unsigned char *pieces[300];

    (void) state;
    for (size_t i = 0; i < 300; i++) {
        pieces[i] = pool_alloc(&pool, i);
        assert_int_equal((uintptr_t) pieces[i] % alignof(max_align_t), 0);
        for (size_t k = 0; k < i; k++)
            assert_int_equal(pieces[i][k], 0);
        memset(pieces[i], (int) i & 0xff, i);
    }
    for (size_t i = 0; i < 300; i++) {
        for (size_t k = 0; k < i; k++)
            assert_int_equal(pieces[i][k], i & 0xff);
    }
}

static void a_piece_may_be_larger_than_a_block(void **state)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    char *small = pool_copy_text(&pool, "small");
    char *large = pool_alloc(&pool, 100000);

    (void) state;
    memset(large, 'x', 100000);
    assert_string_equal(small, "small");
    assert_string_equal(pool_copy_text(&pool, "after"), "after");
    assert_int_equal(large[99999], 'x');
}

static void copies_end_in_nul(void **state)
{
    AUTO(pool) struct pool pool = POOL_INIT;

    (void) state;
    assert_memory_equal(pool_copy_bytes(&pool, "a\0bc", 3), "a\0b\0", 4);
    assert_string_equal(pool_copy_bytes(&pool, NULL, 0), "");
    assert_string_equal(pool_copy_text(&pool, ""), "");
}

static void formatting_takes_any_length(void **state)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    const char *text = pool_format(&pool, "%s-%d", "x", 42);
    const char *wide = pool_format(&pool, "%*d", 9000, 7);

    (void) state;
    assert_string_equal(text, "x-42");
    assert_int_equal(strlen(wide), 9000);
    assert_int_equal(wide[8999], '7');
    assert_string_equal(pool_format(&pool, "%s", ""), "");
}

static void reset_reuses_one_block_and_zeroes_again(void **state)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    unsigned char *first = pool_alloc(&pool, 64);

    (void) state;
    memset(first, 0xff, 64);
    (void) pool_alloc(&pool, 100000);
    (void) pool_alloc(&pool, 4000);
    pool_reset(&pool);
    for (int i = 0; i < 10; i++) {
        unsigned char *again = pool_alloc(&pool, 64);

        for (size_t k = 0; k < 64; k++)
            assert_int_equal(again[k], 0);
    }
    pool_reset(&pool);
    first = pool_alloc(&pool, 64);
    pool_reset(&pool);
    assert_ptr_equal(pool_alloc(&pool, 64), first);
}

static void reset_and_done_accept_an_empty_pool(void **state)
{
    struct pool pool = POOL_INIT;

    (void) state;
    pool_reset(&pool);
    pool_done(&pool);
    pool_done(&pool);
    assert_string_equal(pool_copy_text(&pool, "usable again"), "usable again");
    pool_done(&pool);
    assert_null(pool.blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_zeroed_aligned_and_apart),
        cmocka_unit_test(a_piece_may_be_larger_than_a_block),
        cmocka_unit_test(copies_end_in_nul),
        cmocka_unit_test(formatting_takes_any_length),
        cmocka_unit_test(reset_reuses_one_block_and_zeroes_again),
        cmocka_unit_test(reset_and_done_accept_an_empty_pool),
    };

    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
