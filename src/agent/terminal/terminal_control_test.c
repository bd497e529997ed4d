#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/terminal/terminal_control.h"
#include "base/auto.h"

static void a_resize_is_read(void **state)
{
    const char *text = "{\"type\":\"resize\",\"cols\":4096,\"rows\":1,\"more\":[]}";
    struct error err = ERROR_INIT;
    struct exec_terminal size;

    (void) state;
    assert_int_equal(terminal_control_read(text, strlen(text), &size, &err), 0);
    assert_int_equal(size.columns, 4096);
    assert_int_equal(size.rows, 1);
}

static void everything_else_is_an_invalid_control_message(void **state)
{
    static const char *const texts[] = {
        "",
        "ls\n",
        "[]",
        "{}",
        "{\"type\":5}",
        "{\"type\":\"resized\",\"cols\":1,\"rows\":1}",
        "{\"type\":\"resize\"}",
        "{\"type\":\"resize\",\"cols\":0,\"rows\":1}",
        "{\"type\":\"resize\",\"cols\":1,\"rows\":-1}",
        "{\"type\":\"resize\",\"cols\":1,\"rows\":4097}",
        "{\"type\":\"resize\",\"cols\":\"80\",\"rows\":24}",
        "{\"type\":\"resize\",\"cols\":80.5,\"rows\":24}",
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        struct exec_terminal size = {.columns = 7, .rows = 7};
        struct error err = ERROR_INIT;

        assert_int_equal(terminal_control_read(texts[i], strlen(texts[i]), &size, &err), -1);
        assert_memory_equal(err.message, "Invalid control message", 23);
        assert_int_equal(size.columns, 7);
    }
}

static void counts_of_the_query_are_plain_numbers(void **state)
{
    static const char *const wrong[] = {
        "", "0", "-1", "+5", " 5", "5 ", "4097", "0x10", "99999999999999999999", "4.0"};
    struct error err = ERROR_INIT;
    uint16_t count = 80;

    (void) state;
    assert_int_equal(terminal_count_read("cols", NULL, &count, &err), 0);
    assert_int_equal(count, 80);
    assert_int_equal(terminal_count_read("cols", "1", &count, &err), 0);
    assert_int_equal(count, 1);
    assert_int_equal(terminal_count_read("cols", "4096", &count, &err), 0);
    assert_int_equal(count, 4096);
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        assert_int_equal(terminal_count_read("cols", wrong[i], &count, &err), -1);
        assert_string_equal(err.message, "cols must be a number from 1 to 4096");
        assert_int_equal(count, 4096);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_resize_is_read),
        cmocka_unit_test(everything_else_is_an_invalid_control_message),
        cmocka_unit_test(counts_of_the_query_are_plain_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
