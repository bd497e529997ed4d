#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/preview/preview_name.h"
#include "base/auto.h"

#define ID "abcdefghijklmnopqrstuvwxya"

static int parse(const char *text, struct preview_name *ret_name)
{
    return preview_name_parse(text, strlen(text), ret_name);
}

static void port_id_and_token_are_taken_apart(void **state)
{
    struct preview_name name;

    (void) state;
    assert_int_equal(parse("8080-" ID "-tok_3n", &name), 0);
    assert_int_equal(name.number, 8080);
    assert_string_equal(name.sandbox.text, ID);
    assert_string_equal(name.token, "tok_3n");
    assert_int_equal(parse("65535-" ID "-0123456789abcdef", &name), 0);
    assert_int_equal(name.number, 65535);
    assert_string_equal(name.token, "0123456789abcdef");
}

static void what_names_nothing_is_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        "8080",
        "8080-",
        "8080-" ID,
        "8080-" ID "-",
        "65536-" ID "-token",
        "99999-" ID "-token",
        "808-" ID "-token",
        "808080-" ID "-token",
        "8080-abc-token",
        "8080-" ID "-0123456789abcdefg",
        "8080_" ID "-token",
        "8080-" ID "_token",
        "-8080-" ID "-token",
        "8080-ABCDEFGHIJKLMNOPQRSTUVWXYA-token",
    };
    struct preview_name name;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++)
        assert_int_not_equal(parse(wrong[i], &name), 0);
    assert_int_not_equal(preview_name_parse("8080-" ID "-to\0en", 5 + ID_LENGTH + 6, &name), 0);
}

static void only_digits_and_a_dash_are_meant_for_a_preview(void **state)
{
    (void) state;
    assert_true(preview_name_is_meant("8080-x", 6));
    assert_true(preview_name_is_meant("80800-", 6));
    assert_false(preview_name_is_meant("808-x", 5));
    assert_false(preview_name_is_meant("www", 3));
    assert_false(preview_name_is_meant("8080", 4));
    assert_false(preview_name_is_meant("8080x", 5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(port_id_and_token_are_taken_apart),
        cmocka_unit_test(what_names_nothing_is_refused),
        cmocka_unit_test(only_digits_and_a_dash_are_meant_for_a_preview),
    };

    return cmocka_run_group_tests_name("preview_name", tests, NULL, NULL);
}
