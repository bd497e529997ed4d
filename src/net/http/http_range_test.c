#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "net/http/http_range.h"
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"

static void a_range_is_read_or_ignored_or_outside(void **state)
{
    static const struct {
        const char *value;
        uint64_t size;
        enum http_range expected;
        uint64_t first, last;
    } cases[] = {
        {NULL, 10, HTTP_RANGE_WHOLE, 0, 0},
        {"bytes=0-0", 10, HTTP_RANGE_PART, 0, 0},
        {"bytes=2-4", 10, HTTP_RANGE_PART, 2, 4},
        {"Bytes=2-", 10, HTTP_RANGE_PART, 2, 9},
        {"bytes=2-99999999999999999999999", 10, HTTP_RANGE_PART, 2, 9},
        {"bytes=-3", 10, HTTP_RANGE_PART, 7, 9},
        {"bytes=-30", 10, HTTP_RANGE_PART, 0, 9},
        {"bytes=10-", 10, HTTP_RANGE_OUTSIDE, 0, 0},
        {"bytes=99999999999999999999999-", 10, HTTP_RANGE_OUTSIDE, 0, 0},
        {"bytes=-0", 10, HTTP_RANGE_OUTSIDE, 0, 0},
        {"bytes=0-", 0, HTTP_RANGE_OUTSIDE, 0, 0},
        {"bytes=-1", 0, HTTP_RANGE_OUTSIDE, 0, 0},
        {"bytes=4-2", 10, HTTP_RANGE_WHOLE, 0, 0},
        {"bytes=0-1,3-4", 10, HTTP_RANGE_WHOLE, 0, 0},
        {"bytes=", 10, HTTP_RANGE_WHOLE, 0, 0},
        {"bytes=-", 10, HTTP_RANGE_WHOLE, 0, 0},
        {"bytes=a-b", 10, HTTP_RANGE_WHOLE, 0, 0},
        {"bytes=+1-2", 10, HTTP_RANGE_WHOLE, 0, 0},
        {"lines=1-2", 10, HTTP_RANGE_WHOLE, 0, 0},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        uint64_t first = 0, last = 0;

        if (http_range_read(cases[i].value, cases[i].size, &first, &last) != cases[i].expected ||
            first != cases[i].first || last != cases[i].last)
            fail_msg("%s of %llu", cases[i].value, (unsigned long long) cases[i].size);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_range_is_read_or_ignored_or_outside)};

    return cmocka_run_group_tests_name("http_range", tests, NULL, NULL);
}
