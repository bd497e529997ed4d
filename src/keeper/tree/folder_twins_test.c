#include "keeper/tree/folder_twins.h"
#include "keeper/tree/tree_test_kit.h"

static void pairs_are_found_again(void **state)
{
    AUTO(folder_twins) struct folder_twins twins = FOLDER_TWINS_INIT;

    (void) state;
    assert_false(folder_twins_match(&twins, 7, 0));
    for (ino_t i = 1; i <= 10000; i++)
        folder_twins_put(&twins, i * 64, i);
    for (ino_t i = 1; i <= 10000; i++) {
        assert_true(folder_twins_match(&twins, i * 64, i));
        assert_false(folder_twins_match(&twins, i * 64, i + 1));
        assert_false(folder_twins_match(&twins, i * 64 + 1, i));
    }
    assert_int_equal(twins.count, 10000);
    assert_true(twins.room <= 64 * 1024);
}

static void a_later_pair_takes_the_place_of_an_older(void **state)
{
    AUTO(folder_twins) struct folder_twins twins = FOLDER_TWINS_INIT;

    (void) state;
    folder_twins_put(&twins, 5, 50);
    folder_twins_put(&twins, 5, 51);
    assert_true(folder_twins_match(&twins, 5, 51));
    assert_false(folder_twins_match(&twins, 5, 50));
    assert_int_equal(twins.count, 1);
}

static void beyond_the_bound_nothing_is_known(void **state)
{
    AUTO(folder_twins) struct folder_twins twins = {.limit = 64};

    (void) state;
    for (ino_t i = 1; i <= 1000; i++)
        folder_twins_put(&twins, i, i);
    assert_int_equal(twins.count, 64);
    assert_true(folder_twins_match(&twins, 64, 64));
    assert_false(folder_twins_match(&twins, 65, 65));
    folder_twins_put(&twins, 64, 1); /* one that is there may change */
    assert_true(folder_twins_match(&twins, 64, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_are_found_again),
        cmocka_unit_test(a_later_pair_takes_the_place_of_an_older),
        cmocka_unit_test(beyond_the_bound_nothing_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
