#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "api/access/throttle.h"

#define SECOND 1000000000ull

static void a_name_may_try_so_often_and_then_waits(void **state)
{
    struct throttle throttle;
    unsigned int wait = 0;

    (void) state;
    throttle_init(&throttle, 3, 6);
    for (int i = 0; i < 3; i++)
        assert_true(throttle_take(&throttle, "a", SECOND, &wait));
    assert_false(throttle_take(&throttle, "a", SECOND, &wait));
    assert_in_range(wait, 10, 11);
    assert_true(throttle_take(&throttle, "b", SECOND, &wait));
    assert_false(throttle_take(&throttle, "a", 10 * SECOND, &wait));
    assert_in_range(wait, 1, 2);
    assert_true(throttle_take(&throttle, "a", 12 * SECOND, &wait));
    assert_false(throttle_take(&throttle, "a", 12 * SECOND, &wait));
    throttle_done(&throttle);
}

static void a_bucket_never_holds_more_than_the_burst(void **state)
{
    struct throttle throttle;
    unsigned int wait, taken = 0;

    (void) state;
    throttle_init(&throttle, 3, 6);
    while (throttle_take(&throttle, "a", 3600 * SECOND, &wait))
        taken++;
    assert_int_equal(taken, 3);
    throttle_done(&throttle);
}

static void a_good_try_does_not_count(void **state)
{
    struct throttle throttle;
    unsigned int wait = 0;

    (void) state;
    throttle_init(&throttle, 2, 1);
    for (int i = 0; i < 50; i++) {
        assert_true(throttle_take(&throttle, "a", SECOND, &wait));
        throttle_give_back(&throttle, "a", SECOND);
    }
    throttle_give_back(&throttle, "a", SECOND);
    assert_true(throttle_take(&throttle, "a", SECOND, &wait));
    assert_true(throttle_take(&throttle, "a", SECOND, &wait));
    assert_false(throttle_take(&throttle, "a", SECOND, &wait));
    throttle_done(&throttle);
}

static void a_flood_of_names_does_not_free_the_one_that_tries_most(void **state)
{
    struct throttle throttle;
    unsigned int wait = 0;
    char name[32];

    (void) state;
    throttle_init(&throttle, 5, 1);
    while (throttle_take(&throttle, "attacker", SECOND, &wait))
        continue;
    for (int i = 0; i < 100000; i++) {
        (void) snprintf(name, sizeof(name), "name %d", i);
        (void) throttle_take(&throttle, name, SECOND, &wait);
    }
    assert_false(throttle_take(&throttle, "attacker", SECOND, &wait));
    throttle_done(&throttle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_may_try_so_often_and_then_waits),
        cmocka_unit_test(a_bucket_never_holds_more_than_the_burst),
        cmocka_unit_test(a_good_try_does_not_count),
        cmocka_unit_test(a_flood_of_names_does_not_free_the_one_that_tries_most),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
