#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "net/http/http_head.h"

static struct http_header headers[] = {
    HTTP_HEADER("Accept", "a"),     HTTP_HEADER("connection", "keep-alive, Upgrade"),
    HTTP_HEADER("ACCEPT", "b;q=1"), HTTP_HEADER("Accept-Encoding", "gzip"),
    HTTP_HEADER("Empty", ""),       HTTP_HEADER("Connection", " ,x"),
};

static const struct http_head head = {.headers = headers, .header_count = ARRAY_COUNT(headers)};

static void names_are_found_in_any_case(void **state)
{
    (void) state;
    assert_string_equal(http_head_get(&head, "accept"), "a");
    assert_string_equal(http_head_get(&head, "aCCEPT-encoding"), "gzip");
    assert_string_equal(http_head_get(&head, "Empty"), "");
    assert_null(http_head_get(&head, "Accep"));
    assert_null(http_head_get(&head, ""));
    assert_int_equal(http_head_count(&head, "accept"), 2);
    assert_int_equal(http_head_count(&head, "nothing"), 0);
}

static void several_values_are_joined(void **state)
{
    AUTO(pool) struct pool pool = POOL_INIT;

    (void) state;
    assert_string_equal(http_head_join(&head, "accept", &pool), "a, b;q=1");
    assert_string_equal(http_head_join(&head, "empty", &pool), "");
    assert_null(http_head_join(&head, "nothing", &pool));
}

static void tokens_are_found_in_lists(void **state)
{
    (void) state;
    assert_true(http_list_has_token("a", "A"));
    assert_true(http_list_has_token(",, a\t , b", "a"));
    assert_true(http_list_has_token("b ,a", "a"));
    assert_false(http_list_has_token("ab, ba", "a"));
    assert_false(http_list_has_token("a b", "a"));
    assert_false(http_list_has_token("", "a"));
    assert_false(http_list_has_token(" , ", "a"));
}

static void names_and_values_that_forge_lines_are_invalid(void **state)
{
    (void) state;
    assert_true(http_name_is_valid("X-a_1.~!#$%&'*+^`|"));
    assert_false(http_name_is_valid(""));
    assert_false(http_name_is_valid("a b"));
    assert_false(http_name_is_valid("a:"));
    assert_false(http_name_is_valid("a\r\nb"));
    assert_false(http_name_is_valid("\xc3\xa9"));
    assert_true(http_value_is_valid(""));
    assert_true(http_value_is_valid("a\tb \xc3\xa9"));
    assert_false(http_value_is_valid("a\r\nSet-Cookie: b"));
    assert_false(http_value_is_valid("a\nb"));
    assert_false(http_value_is_valid("a\rb"));
    assert_false(http_value_is_valid("\x1b"));
    assert_false(http_value_is_valid("\x7f"));
}

static void statuses_have_words(void **state)
{
    (void) state;
    assert_string_equal(http_status_text(200), "OK");
    assert_string_equal(http_status_text(404), "Not Found");
    assert_string_equal(http_status_text(299), "");
    assert_string_equal(http_status_text(-1), "");
}

static void dates_have_the_one_form(void **state)
{
    static const struct {
        int64_t wall_ms;
        const char *text;
    } rows[] = {
        {784111777000, "Sun, 06 Nov 1994 08:49:37 GMT"},
        {0, "Thu, 01 Jan 1970 00:00:00 GMT"},
        {951782400999, "Tue, 29 Feb 2000 00:00:00 GMT"},
        {4102444799000, "Thu, 31 Dec 2099 23:59:59 GMT"},
        {-1, "Wed, 31 Dec 1969 23:59:59 GMT"},
        {INT64_MAX, "Fri, 31 Dec 9999 23:59:59 GMT"},
        {INT64_MIN, "Sat, 01 Jan 0000 00:00:00 GMT"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char text[HTTP_DATE_SIZE];

        http_date(rows[i].wall_ms, text);
        assert_string_equal(text, rows[i].text);
    }
}

static void only_lengths_and_chunks_make_a_body(void **state)
{
    struct http_head some = {.content_length = HTTP_LENGTH_UNKNOWN};

    (void) state;
    assert_false(http_head_has_body(&some));
    some.content_length = 0;
    assert_false(http_head_has_body(&some));
    some.content_length = 1;
    assert_true(http_head_has_body(&some));
    some = (struct http_head){.content_length = HTTP_LENGTH_UNKNOWN, .chunked = true};
    assert_true(http_head_has_body(&some));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found_in_any_case),
        cmocka_unit_test(several_values_are_joined),
        cmocka_unit_test(tokens_are_found_in_lists),
        cmocka_unit_test(names_and_values_that_forge_lines_are_invalid),
        cmocka_unit_test(statuses_have_words),
        cmocka_unit_test(dates_have_the_one_form),
        cmocka_unit_test(only_lengths_and_chunks_make_a_body),
    };

    return cmocka_run_group_tests_name("http_head", tests, NULL, NULL);
}
