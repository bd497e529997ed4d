#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "base/memory.h"
#include "load/histogram.h"

static void an_empty_histogram_has_no_latency(void **state)
{
    AUTO(free) struct histogram *histogram = mem_alloc(sizeof(*histogram));

    (void) state;
    assert_int_equal(histogram_percentile(histogram, 99), 0);
}

static void small_values_are_exact(void **state)
{
    AUTO(free) struct histogram *histogram = mem_alloc(sizeof(*histogram));

    (void) state;
    for (uint64_t value = 1; value <= 100; value++)
        histogram_add(histogram, value);
    assert_int_equal(histogram_percentile(histogram, 0), 1);
    assert_int_equal(histogram_percentile(histogram, 50), 50);
    assert_int_equal(histogram_percentile(histogram, 99), 99);
    assert_int_equal(histogram_percentile(histogram, 100), 100);
}

static void every_value_is_found_again_within_its_bucket(void **state)
{
    AUTO(free) struct histogram *histogram = mem_alloc(sizeof(*histogram));

    (void) state;
    for (unsigned bit = 0; bit < 64; bit++) {
        for (int offset = -1; offset <= 1; offset++) {
            uint64_t value = (UINT64_C(1) << bit) + (uint64_t) offset;
            uint64_t found;

            *histogram = (struct histogram){0};
            histogram_add(histogram, value);
            found = histogram_percentile(histogram, 50);
            assert_true(found >= value);
            assert_true(found - value <= value / 64);
        }
    }
}

static void one_slow_sample_in_a_thousand_does_not_move_p99(void **state)
{
    AUTO(free) struct histogram *histogram = mem_alloc(sizeof(*histogram));

    (void) state;
    for (int i = 0; i < 999; i++)
        histogram_add(histogram, 40);
    histogram_add(histogram, UINT64_MAX);
    assert_int_equal(histogram_percentile(histogram, 99), 40);
    assert_int_equal(histogram_percentile(histogram, 100), UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_histogram_has_no_latency),
        cmocka_unit_test(small_values_are_exact),
        cmocka_unit_test(every_value_is_found_again_within_its_bucket),
        cmocka_unit_test(one_slow_sample_in_a_thousand_does_not_move_p99),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
