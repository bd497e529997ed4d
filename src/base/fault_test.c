#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/fault.h"

static void nothing_fails_unless_armed(void **state)
{
    (void) state;
    for (int i = 0; i < 100; i++) {
        assert_false(fault_hits(FAULT_ALLOCATION));
        assert_int_equal(fault_errno(FAULT_SYSTEM_CALL), 0);
    }
}

static void the_nth_hit_fails_once(void **state)
{
    (void) state;
    fault_arm(FAULT_SYSTEM_CALL, 3, ENOSPC);
    assert_int_equal(fault_errno(FAULT_SYSTEM_CALL), 0);
    assert_int_equal(fault_errno(FAULT_SYSTEM_CALL), 0);
    assert_int_equal(fault_errno(FAULT_SYSTEM_CALL), -ENOSPC);
    assert_int_equal(fault_errno(FAULT_SYSTEM_CALL), 0);
    assert_true(fault_disarm(FAULT_SYSTEM_CALL));
}

static void disarming_says_whether_it_was_reached(void **state)
{
    (void) state;
    fault_arm(FAULT_ALLOCATION, 2, ENOMEM);
    assert_false(fault_hits(FAULT_ALLOCATION));
    assert_false(fault_disarm(FAULT_ALLOCATION));
    assert_false(fault_hits(FAULT_ALLOCATION)); /* really off */
}

static void kinds_do_not_mix(void **state)
{
    (void) state;
    fault_arm(FAULT_ALLOCATION, 1, ENOMEM);
    assert_int_equal(fault_errno(FAULT_SYSTEM_CALL), 0);
    assert_true(fault_hits(FAULT_ALLOCATION));
    assert_true(fault_disarm(FAULT_ALLOCATION));
}

static void *hit(void *result)
{
    *(bool *) result = fault_hits(FAULT_ALLOCATION);
    return NULL;
}

static void other_threads_are_left_alone(void **state)
{
    bool other = true;
    pthread_t thread;

    (void) state;
    fault_arm(FAULT_ALLOCATION, 1, ENOMEM);
    assert_int_equal(pthread_create(&thread, NULL, hit, &other), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(other);
    assert_true(fault_hits(FAULT_ALLOCATION));
    assert_true(fault_disarm(FAULT_ALLOCATION));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_fails_unless_armed),
        cmocka_unit_test(the_nth_hit_fails_once),
        cmocka_unit_test(disarming_says_whether_it_was_reached),
        cmocka_unit_test(kinds_do_not_mix),
        cmocka_unit_test(other_threads_are_left_alone),
    };

    return cmocka_run_group_tests_name("fault", tests, NULL, NULL);
}
