#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/rounds_testing.h"

static void the_system_clock_moves_and_is_now(void **state)
{
    const struct clock *clock = clock_system();
    uint64_t before = clock_monotonic_ns(clock);
    struct timespec pause = {.tv_nsec = 2000000};

    (void) state;
    assert_true(clock_wall_ms(clock) > INT64_C(1700000000000));
    assert_int_equal(nanosleep(&pause, NULL), 0);
    assert_true(clock_monotonic_ns(clock) - before >= 2000000);
}

static void a_manual_clock_moves_only_by_hand(void **state)
{
    struct clock_manual manual;

    (void) state;
    clock_manual_init(&manual, 1000);
    assert_int_equal(clock_wall_ms(&manual.clock), 1000);
    assert_int_equal(clock_monotonic_ns(&manual.clock), 0);
    clock_manual_advance(&manual, 250);
    assert_int_equal(clock_wall_ms(&manual.clock), 1250);
    assert_int_equal(clock_monotonic_ns(&manual.clock), 250000000);
}

static void known_moments_have_known_texts(void **state)
{
    static const struct {
        int64_t wall_ms;
        const char *text;
    } known[] = {
        {0, "1970-01-01T00:00:00.000Z"},
        {-1, "1969-12-31T23:59:59.999Z"},
        {INT64_C(1794773908123), "2026-11-15T20:18:28.123Z"},
        {INT64_C(951782400000), "2000-02-29T00:00:00.000Z"},
        {INT64_C(4107542399999), "2100-02-28T23:59:59.999Z"},
        {INT64_C(4107542400000), "2100-03-01T00:00:00.000Z"},
        {INT64_C(-62167219200000), "0000-01-01T00:00:00.000Z"},
        {INT64_C(253402300799999), "9999-12-31T23:59:59.999Z"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(known); i++) {
        char text[CLOCK_TEXT_SIZE];
        int64_t parsed = 1;

        clock_format(known[i].wall_ms, text);
        assert_string_equal(text, known[i].text);
        assert_int_equal(clock_parse(text, &parsed), 0);
        assert_int_equal(parsed, known[i].wall_ms);
    }
}

/* Every seventh, which still meets every month and leap rule, or with BURROW_FULL every one. */
static void the_days_of_the_calendar_agree_with_libc(void **state)
{
    const int64_t first = -719528, step = (int64_t) rounds_of(7, 1); /* 0000-01-01 */

    (void) state;
    for (int64_t day = first; day <= 2932896; day += step) {
        time_t seconds = (time_t) day * 86400 + 3723;
        char text[CLOCK_TEXT_SIZE], expected[64];
        int64_t parsed;
        struct tm parts;

        clock_format((int64_t) seconds * 1000 + 4, text);
        if (clock_parse(text, &parsed) != 0 || parsed != (int64_t) seconds * 1000 + 4)
            fail_msg("%s does not parse back", text);
        if ((day - first) % 7) /* libc is slow */
            continue;
        assert_non_null(gmtime_r(&seconds, &parts));
        (void) snprintf(expected, sizeof(expected), "%04d-%02d-%02dT01:02:03.004Z",
                        parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
        assert_string_equal(text, expected);
    }
}

static void years_of_five_digits_are_clamped(void **state)
{
    char text[CLOCK_TEXT_SIZE];

    (void) state;
    clock_format(INT64_MAX, text);
    assert_string_equal(text, "9999-12-31T23:59:59.999Z");
    clock_format(INT64_MIN, text);
    assert_string_equal(text, "0000-01-01T00:00:00.000Z");
}

static void only_the_exact_form_parses(void **state)
{
    static const char *const wrong[] = {
        "",
        "2026",
        "2026-11-15T20:18:28Z",
        "2026-11-15T20:18:28.123",
        "2026-11-15T20:18:28.123z",
        "2026-11-15 20:18:28.123Z",
        "2026-11-15T20:18:28.123Z ",
        " 2026-11-15T20:18:28.123Z",
        "2026-11-15T20:18:28.1234Z",
        "2026-11-15T20:18:28,123Z",
        "2026-11-15T20:18:28.123+00:00",
        "+026-11-15T20:18:28.123Z",
        "2026-00-15T20:18:28.123Z",
        "2026-13-15T20:18:28.123Z",
        "2026-11-00T20:18:28.123Z",
        "2026-11-31T20:18:28.123Z",
        "2026-02-29T20:18:28.123Z",
        "2100-02-29T20:18:28.123Z",
        "2026-11-15T24:00:00.000Z",
        "2026-11-15T20:60:28.123Z",
        "2026-11-15T20:18:60.123Z",
        "9999-12-32T00:00:00.000Z",
        "0000-00-01T00:00:00.000Z",
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        int64_t untouched = 42;

        if (clock_parse(wrong[i], &untouched) != -EINVAL)
            fail_msg("accepted '%s'", wrong[i]);
        assert_int_equal(untouched, 42);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_system_clock_moves_and_is_now),
        cmocka_unit_test(a_manual_clock_moves_only_by_hand),
        cmocka_unit_test(known_moments_have_known_texts),
        cmocka_unit_test(the_days_of_the_calendar_agree_with_libc),
        cmocka_unit_test(years_of_five_digits_are_clamped),
        cmocka_unit_test(only_the_exact_form_parses),
    };

    return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
