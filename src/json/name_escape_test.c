#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "json/name_escape.h"

static void check(const char *name, const char *expected)
{
    AUTO(text) struct text text = TEXT_INIT(1024), back = TEXT_INIT(1024);

    name_escape(&text, name, strlen(name));
    assert_string_equal(text_string(&text), expected);
    assert_true(name_unescape(&back, text_string(&text), text.length));
    assert_string_equal(text_string(&back), name);
}

static void valid_text_stays_as_it_is(void **state)
{
    (void) state;
    check("", "");
    check("plain name", "plain name");
    check("line\nline\t\x7f", "line\nline\t\x7f");
    check("h\xc3\xa4user/\xf0\x9f\x8f\xa0", "h\xc3\xa4user/\xf0\x9f\x8f\xa0");
}

static void other_bytes_and_backslashes_are_escaped(void **state)
{
    (void) state;
    check("\xff", "\\xff");
    check("a\xc3", "a\\xc3");
    check("\xc3(", "\\xc3(");
    check("\xed\xa0\x80", "\\xed\\xa0\\x80");
    check("\\xff", "\\\\xff");
    check("\\", "\\\\");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_text_stays_as_it_is),
        cmocka_unit_test(other_bytes_and_backslashes_are_escaped),
    };

    return cmocka_run_group_tests_name("name_escape", tests, NULL, NULL);
}
