#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "base/number.h"

static void integers_parse_within_their_range(void **state)
{
    int64_t number = 0;

    (void) state;
    assert_int_equal(number_parse("0", 0, 0, &number), 0);
    assert_int_equal(number, 0);
    assert_int_equal(number_parse("-12", -100, 100, &number), 0);
    assert_int_equal(number, -12);
    assert_int_equal(number_parse("00065535", 1, 65535, &number), 0);
    assert_int_equal(number, 65535);
    assert_int_equal(number_parse("9223372036854775807", INT64_MIN, INT64_MAX, &number), 0);
    assert_true(number == INT64_MAX);
    assert_int_equal(number_parse("-9223372036854775808", INT64_MIN, INT64_MAX, &number), 0);
    assert_true(number == INT64_MIN);
}

static void integers_outside_the_range_are_erange(void **state)
{
    int64_t number = 42;

    (void) state;
    assert_int_equal(number_parse("65536", 1, 65535, &number), -ERANGE);
    assert_int_equal(number_parse("0", 1, 65535, &number), -ERANGE);
    assert_int_equal(number_parse("-1", 0, 10, &number), -ERANGE);
    assert_int_equal(number_parse("9223372036854775808", INT64_MIN, INT64_MAX, &number), -ERANGE);
    assert_int_equal(number_parse("-9223372036854775809", INT64_MIN, INT64_MAX, &number), -ERANGE);
    assert_int_equal(number_parse("99999999999999999999999", 0, INT64_MAX, &number), -ERANGE);
    assert_int_equal(number, 42);
}

static void other_texts_are_einval(void **state)
{
    static const char *const wrong[] = {
        "",     "-",   "+1",  " 1",  "1 ", "1.0", "1e3",
        "0x10", "--1", "- 1", "1\n", "a",  "١",   "99999999999999999999999x",
        "1/",   "1:",
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        int64_t number = 42;

        if (number_parse(wrong[i], INT64_MIN, INT64_MAX, &number) != -EINVAL || number != 42)
            fail_msg("accepted '%s'", wrong[i]);
    }
}

static void digits_need_no_terminator_and_take_no_sign(void **state)
{
    uint64_t number = 0;

    (void) state;
    assert_int_equal(number_parse_digits("123456", 3, 1000, &number), 0);
    assert_int_equal(number, 123);
    assert_int_equal(number_parse_digits("18446744073709551615", 20, UINT64_MAX, &number), 0);
    assert_true(number == UINT64_MAX);
    number = 42;
    assert_int_equal(number_parse_digits("18446744073709551616", 20, UINT64_MAX, &number), -ERANGE);
    /* wraps around to something small without the overflow check */
    assert_int_equal(number_parse_digits("184467440737095516170", 21, UINT64_MAX, &number),
                     -ERANGE);
    assert_int_equal(number_parse_digits("1001", 4, 1000, &number), -ERANGE);
    assert_int_equal(number_parse_digits("-1", 2, 1000, &number), -EINVAL);
    assert_int_equal(number_parse_digits("", 0, 1000, &number), -EINVAL);
    assert_int_equal(number_parse_digits("1\0", 2, 1000, &number), -EINVAL);
    assert_int_equal(number, 42);
}

struct unit_case {
    const char *text;
    int result;
    uint64_t value;
};

static void sizes_parse_with_their_units(void **state)
{
    static const struct unit_case cases[] = {
        {"0", 0, 0},
        {"65536", 0, 65536},
        {"64K", 0, 65536},
        {"64k", 0, 65536},
        {"512M", 0, UINT64_C(512) << 20},
        {"1G", 0, UINT64_C(1) << 30},
        {"2t", 0, UINT64_C(2) << 40},
        {"16777215T", 0, UINT64_C(16777215) << 40},
        {"16777216T", -ERANGE, 0},
        {"18446744073709551616", -ERANGE, 0},
        {"", -EINVAL, 0},
        {"K", -EINVAL, 0},
        {"1KB", -EINVAL, 0},
        {"1.5G", -EINVAL, 0},
        {"-1", -EINVAL, 0},
        {"1 K", -EINVAL, 0},
        {"1X", -EINVAL, 0},
        {"99999999999999999999X", -EINVAL, 0},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        uint64_t value = 0;

        if (number_parse_size(cases[i].text, UINT64_MAX, &value) != cases[i].result ||
            value != cases[i].value)
            fail_msg("wrong for '%s'", cases[i].text);
    }
}

static void durations_parse_with_their_units(void **state)
{
    static const struct unit_case cases[] = {
        {"30", 0, 30000},
        {"500ms", 0, 500},
        {"0", 0, 0},
        {"30s", 0, 30000},
        {"5m", 0, 300000},
        {"1h", 0, 3600000},
        {"2d", 0, 172800000},
        {"1H", -EINVAL, 0},
        {"1 s", -EINVAL, 0},
        {"1.5s", -EINVAL, 0},
        {"1h30m", -EINVAL, 0},
        {"", -EINVAL, 0},
        {"ms", -EINVAL, 0},
        {"-5s", -EINVAL, 0},
        {"1w", -EINVAL, 0},
        {"213503982335d", -ERANGE, 0},
        {"213503982334d", 0, UINT64_C(213503982334) * 86400000},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        uint64_t value = 0;

        if (number_parse_duration(cases[i].text, UINT64_MAX, &value) != cases[i].result ||
            value != cases[i].value)
            fail_msg("wrong for '%s'", cases[i].text);
    }
}

static void the_maximum_counts_after_the_unit(void **state)
{
    uint64_t value = 42;

    (void) state;
    assert_int_equal(number_parse_size("2K", 2047, &value), -ERANGE);
    assert_int_equal(number_parse_duration("1h", 3599999, &value), -ERANGE);
    assert_int_equal(value, 42);
    assert_int_equal(number_parse_size("2K", 2048, &value), 0);
    assert_int_equal(number_parse_duration("1h", 3600000, &value), 0);
}

static void written_integers_parse_back(void **state)
{
    static const int64_t edges[] = {0, 1, -1, 9, 10, -10, 99, 100, INT64_MAX, INT64_MIN};
    char text[NUMBER_TEXT_SIZE];

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(edges); i++) {
        size_t length = number_format(edges[i], text);
        int64_t back = 42;

        assert_int_equal(length, strlen(text));
        assert_int_equal(number_parse(text, INT64_MIN, INT64_MAX, &back), 0);
        assert_true(back == edges[i]);
    }
    assert_int_equal(number_format(-120, text), 4);
    assert_string_equal(text, "-120");
    assert_int_equal(number_format_unsigned(UINT64_MAX, text), 20);
    assert_string_equal(text, "18446744073709551615");
}

static void sizes_read_well(void **state)
{
    static const struct unit_case cases[] = {
        {"0 bytes", 0, 0},
        {"1023 bytes", 0, 1023},
        {"1 KiB", 0, 1024},
        {"1.5 KiB", 0, 1536},
        {"1023.9 KiB", 0, (1 << 20) - 1},
        {"64 MiB", 0, 64 << 20},
        {"1.9 GiB", 0, (UINT64_C(2) << 30) - 1},
        {"15.9 EiB", 0, UINT64_MAX},
    };
    char text[NUMBER_TEXT_SIZE];

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        number_format_size(cases[i].value, text);
        assert_string_equal(text, cases[i].text);
    }
}

static void durations_read_well(void **state)
{
    static const struct unit_case cases[] = {
        {"0 ms", 0, 0},
        {"999 ms", 0, 999},
        {"1 s", 0, 1000},
        {"1 s", 0, 1099},
        {"1.5 s", 0, 1500},
        {"59.9 s", 0, 59999},
        {"1 min", 0, 60000},
        {"5 min 30 s", 0, 330000},
        {"3 h 20 min", 0, 12000000},
        {"2 d 4 h", 0, 187200000},
        {"213503982334 d 14 h", 0, UINT64_MAX},
    };
    char text[NUMBER_TEXT_SIZE];

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        number_format_duration(cases[i].value, text);
        assert_string_equal(text, cases[i].text);
    }
}

static void fractions_parse_to_the_thousandth(void **state)
{
    static const struct {
        const char *text;
        int result;
        uint64_t value;
    } cases[] = {
        {"2", 0, 2000},         {"0.5", 0, 500},      {"1.25", 0, 1250},      {"0.001", 0, 1},
        {"9.999", 0, 9999},     {"10", 0, 10000},     {"10.001", -ERANGE, 0}, {"11", -ERANGE, 0},
        {"0.0001", -EINVAL, 0}, {"", -EINVAL, 0},     {".5", -EINVAL, 0},     {"1.", -EINVAL, 0},
        {"-1", -EINVAL, 0},     {"1.5x", -EINVAL, 0}, {"1.2.3", -EINVAL, 0},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        uint64_t value = 0;

        assert_int_equal(number_parse_thousandths(cases[i].text, 10000, &value), cases[i].result);
        assert_int_equal(value, cases[i].value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_parse_within_their_range),
        cmocka_unit_test(integers_outside_the_range_are_erange),
        cmocka_unit_test(other_texts_are_einval),
        cmocka_unit_test(digits_need_no_terminator_and_take_no_sign),
        cmocka_unit_test(sizes_parse_with_their_units),
        cmocka_unit_test(durations_parse_with_their_units),
        cmocka_unit_test(the_maximum_counts_after_the_unit),
        cmocka_unit_test(fractions_parse_to_the_thousandth),
        cmocka_unit_test(written_integers_parse_back),
        cmocka_unit_test(sizes_read_well),
        cmocka_unit_test(durations_read_well),
    };

    return cmocka_run_group_tests_name("number", tests, NULL, NULL);
}
