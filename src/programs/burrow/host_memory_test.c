#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/auto.h"
#include "programs/burrow/host_memory.h"

static void the_share_that_is_available_is_found(void **state)
{
    static const struct {
        const char *text;
        int percent;
    } cases[] = {
        {"MemTotal:       1000 kB\nMemFree:  1 kB\nMemAvailable:    250 kB\n", 25},
        {"MemTotal:       50 kB\nMemAvailable:    5 kB\n", 5},
        {"MemTotal: 1000 kB\nMemAvailable: 0 kB\n", 0},
        {"MemTotal: 1000 kB\nMemAvailable: 1000 kB\n", 100},
        {"MemTotal: 1000 kB\n", -1},
        {"MemAvailable: 1000 kB\n", -1},
        {"MemTotal: 0 kB\nMemAvailable: 0 kB\n", -1},
        {"MemTotal: 10 kB\nMemAvailable: 11 kB\n", -1},
        {"MemTotal: 10 kB\nMemAvailable:", -1},
        {"MemTotal: x kB\nMemAvailable: 11 kB\n", -1},
        {"", -1},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        assert_int_equal(host_memory_percent(cases[i].text, strlen(cases[i].text)),
                         cases[i].percent);
}

static void this_machine_has_some(void **state)
{
    int percent = host_memory_available();

    (void) state;
    assert_in_range(percent, 0, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_share_that_is_available_is_found),
        cmocka_unit_test(this_machine_has_some),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
