/* The table of walls: what tests and people call them. That each of them holds something is shown
 * by tests/isolation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "launcher/sandbox/sandbox.h"
#include "launcher/sandbox/sandbox_walls.h"

static void every_wall_is_found_by_its_text(void **state)
{
    (void) state;
    for (unsigned int wall = 0; wall < SANDBOX_WALL_COUNT; wall++) {
        assert_int_equal(sandbox_wall_from_text(sandbox_wall_text(wall)), wall);
        assert_true(strlen(sandbox_wall_keeps_out(wall)) > 0);
    }
    assert_int_equal(sandbox_wall_from_text("unknown"), SANDBOX_WALL_COUNT);
    assert_int_equal(sandbox_wall_from_text(""), SANDBOX_WALL_COUNT);
}

static void a_host_that_says_nothing_leaves_no_wall_open(void **state)
{
    struct sandbox_host host = {0};

    (void) state;
    assert_int_equal(host.open_walls, 0);
    assert_int_equal(SANDBOX_WALLS_ALL, (UINT32_C(1) << SANDBOX_WALL_COUNT) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_wall_is_found_by_its_text),
        cmocka_unit_test(a_host_that_says_nothing_leaves_no_wall_open),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
