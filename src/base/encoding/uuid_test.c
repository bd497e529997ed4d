#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "base/encoding/uuid.h"

static void new_ones_are_valid_and_differ(void **state)
{
    (void) state;
    for (int i = 0; i < 1000; i++) {
        struct uuid one = uuid_new(), other = uuid_new();

        assert_true(uuid_is_valid(one.text));
        assert_string_not_equal(one.text, other.text);
    }
}

static void only_version_4_is_valid(void **state)
{
    static const struct {
        const char *text;
        bool is_valid;
    } cases[] = {
        {"8f14e45f-ceea-467f-a8f3-0123456789ab", true},
        {"8F14E45F-CEEA-467F-A8F3-0123456789AB", true},
        {"8f14e45f-ceea-167f-a8f3-0123456789ab", false},
        {"8f14e45f-ceea-467f-c8f3-0123456789ab", false},
        {"8f14e45fceea467fa8f30123456789ab", false},
        {"8f14e45f-ceea-467f-a8f3-0123456789a", false},
        {"8f14e45f-ceea-467f-a8f3-0123456789abc", false},
        {"8f14e45f-ceea-467f-a8f3-0123456789ag", false},
        {"../../../../../../../../../../../etc", false},
        {"", false},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        assert_int_equal(uuid_is_valid(cases[i].text), cases[i].is_valid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_ones_are_valid_and_differ),
        cmocka_unit_test(only_version_4_is_valid),
    };

    return cmocka_run_group_tests_name("uuid", tests, NULL, NULL);
}
