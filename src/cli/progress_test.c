#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "cli/progress.h"
/* After the headers it needs. */
#include <cmocka.h>

#define MIB (1024 * 1024)

static void shows(struct progress progress, uint64_t elapsed_ms, unsigned int columns,
                  const char *expected)
{
    AUTO(text) struct text out = TEXT_INIT(512);

    progress_line(&progress, elapsed_ms, columns, &out);
    assert_string_equal(text_string(&out), expected);
}

static void a_known_total_gives_bar_percent_and_time_left(void **state)
{
    (void) state;
    shows((struct progress){.what = "big", .total = 100 * MIB, .done = 50 * MIB}, 5000, 120,
          "big  [==========>         ]  50%  50 MiB of 100 MiB  10 MiB/s  5 s left");
    shows((struct progress){.what = "big", .total = 100, .done = 100}, 1000, 120,
          "big  [====================] 100%  100 bytes of 100 bytes  100 bytes/s");
}

static void an_unknown_total_gives_amount_and_speed(void **state)
{
    (void) state;
    shows((struct progress){.what = "-", .total = -1, .done = 3 * MIB}, 1000, 120,
          "-  3 MiB  3 MiB/s");
}

static void nothing_yet_and_no_time_are_no_trouble(void **state)
{
    (void) state;
    shows((struct progress){.what = "a", .total = 0}, 0, 120, "a  0 bytes of 0 bytes  0 bytes/s");
    shows((struct progress){.what = "a", .total = 10}, 0, 120,
          "a  [>                   ]   0%  0 bytes of 10 bytes  0 bytes/s");
}

static void more_than_the_total_is_still_all(void **state)
{
    (void) state;
    shows((struct progress){.what = "a", .total = 10, .done = 20}, 1000, 120,
          "a  [====================] 100%  20 bytes of 10 bytes  20 bytes/s");
}

static void a_line_fits_the_terminal(void **state)
{
    (void) state;
    shows((struct progress){.what = "big", .total = 100, .done = 50}, 1000, 10, "big  [====");
}

static void of_a_long_name_the_end_is_shown(void **state)
{
    (void) state;
    shows((struct progress){.what = "0123456789abcdefghijklmnopqrstuvwxyz", .total = -1}, 0, 120,
          "cdefghijklmnopqrstuvwxyz  0 bytes  0 bytes/s");
}

static void terabytes_do_not_overflow(void **state)
{
    const int64_t total = INT64_C(1) << 62;

    (void) state;
    shows((struct progress){.what = "a", .total = total, .done = (uint64_t) total / 2}, 1000, 30,
          "a  [==========>         ]  50%");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_known_total_gives_bar_percent_and_time_left),
        cmocka_unit_test(an_unknown_total_gives_amount_and_speed),
        cmocka_unit_test(nothing_yet_and_no_time_are_no_trouble),
        cmocka_unit_test(more_than_the_total_is_still_all),
        cmocka_unit_test(a_line_fits_the_terminal),
        cmocka_unit_test(of_a_long_name_the_end_is_shown),
        cmocka_unit_test(terabytes_do_not_overflow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
