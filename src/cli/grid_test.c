#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/grid.h"
/* After the headers it needs. */
#include <cmocka.h>

#define PAGE_MAX ((size_t) 64 * 1024)

static const char *const two_titles[] = {"NAME", "STATUS", NULL};

static void prints(const struct grid *grid, const char *expected)
{
    AUTO(text) struct text out = TEXT_INIT(PAGE_MAX);

    grid_write(grid, &out);
    assert_string_equal(text_string(&out), expected);
}

static void columns_are_as_wide_as_their_widest_cell(void **state)
{
    AUTO(grid) struct grid grid = GRID_INIT;

    (void) state;
    grid_titles(&grid, two_titles);
    grid_put(&grid, "a-long-name");
    grid_put(&grid, "running");
    grid_format(&grid, "%d", 7);
    grid_put(&grid, NULL);
    prints(&grid, "NAME         STATUS\na-long-name  running\n7            -\n");
}

static void a_character_of_several_bytes_is_one_column_wide(void **state)
{
    AUTO(grid) struct grid grid = GRID_INIT;

    (void) state;
    grid_titles(&grid, two_titles);
    grid_put(&grid, "h\xc3\xb6hle");
    grid_put(&grid, "x");
    prints(&grid, "NAME   STATUS\nh\xc3\xb6hle  x\n");
}

static void what_others_wrote_cannot_steer_a_terminal(void **state)
{
    AUTO(grid) struct grid grid = GRID_INIT;

    (void) state;
    grid_titles(&grid, two_titles);
    grid_put(&grid, "a\033[2Jb\x7f");
    grid_put(&grid, "two\nlines\tx");
    prints(&grid, "NAME     STATUS\na?[2Jb?  two lines x\n");
}

static void a_row_that_is_not_whole_is_left_out(void **state)
{
    AUTO(grid) struct grid grid = GRID_INIT;

    (void) state;
    grid_titles(&grid, two_titles);
    grid_put(&grid, "half");
    prints(&grid, "NAME  STATUS\n");
}

static void many_rows_fit(void **state)
{
    AUTO(grid) struct grid grid = GRID_INIT;
    AUTO(text) struct text out = TEXT_INIT(PAGE_MAX);

    (void) state;
    grid_titles(&grid, two_titles);
    for (int i = 0; i < 2000; i++)
        grid_format(&grid, "%d", i);
    grid_write(&grid, &out);
    assert_non_null(strstr(text_string(&out), "\n1998  1999\n"));
}

static void an_age_is_told_in_its_largest_unit(void **state)
{
    AUTO(grid) struct grid grid = GRID_INIT;
    int64_t then;

    (void) state;
    assert_int_equal(clock_parse("2026-01-02T03:04:05.678Z", &then), 0);
    assert_string_equal(grid_age(&grid, "2026-01-02T03:04:05.678Z", then), "now");
    assert_string_equal(grid_age(&grid, "2026-01-02T03:04:05.678Z", then - 100000), "now");
    assert_string_equal(grid_age(&grid, "2026-01-02T03:04:05.678Z", then + 5500), "5 s");
    assert_string_equal(grid_age(&grid, "2026-01-02T03:04:05.678Z", then + 330 * 1000), "5 min");
    assert_string_equal(grid_age(&grid, "2026-01-02T03:04:05.678Z", then + 90000000), "1 d");
    assert_string_equal(grid_age(&grid, "yesterday", then), "yesterday");
    assert_null(grid_age(&grid, NULL, then));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_as_wide_as_their_widest_cell),
        cmocka_unit_test(a_character_of_several_bytes_is_one_column_wide),
        cmocka_unit_test(what_others_wrote_cannot_steer_a_terminal),
        cmocka_unit_test(a_row_that_is_not_whole_is_left_out),
        cmocka_unit_test(many_rows_fit),
        cmocka_unit_test(an_age_is_told_in_its_largest_unit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
