#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "base/memory.h"
#include "base/spelling.h"

static void the_distance_is_the_number_of_slips(void **state)
{
    static const struct {
        const char *one, *other;
        size_t distance;
    } cases[] = {
        {"", "", 0},
        {"listen", "listen", 0},
        {"listen", "", 6},
        {"listen", "lisen", 1},
        {"listen", "lissten", 1},
        {"listen", "liszen", 1},
        {"listen", "litsen", 2}, /* two letters that changed places are two */
        {"kitten", "sitting", 3},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        assert_int_equal(spelling_distance(cases[i].one, cases[i].other), cases[i].distance);
        assert_int_equal(spelling_distance(cases[i].other, cases[i].one), cases[i].distance);
    }
}

static void words_that_are_too_long_are_near_nothing(void **state)
{
    char longest[SPELLING_MAX + 1] = "", longer[SPELLING_MAX + 2] = "";

    (void) state;
    memset(longest, 'a', SPELLING_MAX);
    memset(longer, 'a', SPELLING_MAX + 1);
    assert_int_equal(spelling_distance(longest, "a"), SPELLING_MAX - 1);
    assert_int_equal(spelling_distance("a", longest), SPELLING_MAX - 1);
    assert_int_equal(spelling_distance(longer, longer), SIZE_MAX);
    assert_int_equal(spelling_distance(longer, "a"), SIZE_MAX);
    assert_int_equal(spelling_distance("a", longer), SIZE_MAX);
}

static void the_nearest_name_is_one_that_a_slip_explains(void **state)
{
    static const char *const names[] = {"demo", "production", "db", "x"};

    (void) state;
    assert_string_equal(spelling_nearest("dmo", names, 4), "demo");
    assert_string_equal(spelling_nearest("prodcution", names, 4), "production");
    assert_null(spelling_nearest("zebra", names, 4));
    assert_null(spelling_nearest("q", names, 2));
    assert_null(spelling_nearest("", names, 4));
    assert_null(spelling_nearest("demo", names, 0));
}

static void a_name_that_is_far_too_long_is_near_to_nothing(void **state)
{
    char name[4096];
    const char *const names[] = {name};

    (void) state;
    memset(name, 'a', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    assert_null(spelling_nearest(name, names, 1));
    assert_null(spelling_nearest("aaaa", names, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_distance_is_the_number_of_slips),
        cmocka_unit_test(words_that_are_too_long_are_near_nothing),
        cmocka_unit_test(the_nearest_name_is_one_that_a_slip_explains),
        cmocka_unit_test(a_name_that_is_far_too_long_is_near_to_nothing),
    };

    return cmocka_run_group_tests_name("spelling", tests, NULL, NULL);
}
