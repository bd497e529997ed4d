#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/text.h"

static void appending_builds_a_string(void **state)
{
    AUTO(text) struct text text = TEXT_INIT(100);

    (void) state;
    assert_string_equal(text_string(&text), "");
    text_append(&text, "hello");
    text_append_char(&text, ' ');
    text_append_bytes(&text, "world!", 5);
    text_append_bytes(&text, NULL, 0);
    text_format(&text, " %d%s", 42, "");
    assert_string_equal(text_string(&text), "hello world 42");
    assert_int_equal(text.length, 14);
    assert_false(text.overflowed);
}

static void many_small_appends_equal_one_large(void **state)
{
    AUTO(text) struct text text = TEXT_INIT(100000);

    (void) state;
    for (int i = 0; i < 20000; i++)
        text_format(&text, "%d", i % 10);
    assert_int_equal(text.length, 20000);
    for (int i = 0; i < 20000; i++)
        assert_int_equal(text.data[i], '0' + i % 10);
    assert_int_equal(text.data[20000], '\0');
}

static void the_maximum_is_reached_but_not_passed(void **state)
{
    AUTO(text) struct text text = TEXT_INIT(5);

    (void) state;
    text_append(&text, "12345");
    assert_false(text.overflowed);
    text_append(&text, "");
    assert_false(text.overflowed);
    text_append_char(&text, '6');
    assert_true(text.overflowed);
    assert_string_equal(text_string(&text), "12345");
}

static void overflow_changes_nothing_and_stays_set(void **state)
{
    AUTO(text) struct text text = TEXT_INIT(8);

    (void) state;
    text_append(&text, "abc");
    text_format(&text, "%s", "too long now");
    assert_true(text.overflowed);
    assert_string_equal(text_string(&text), "abc");
    assert_int_equal(text.length, 3);
    text_append(&text, "de"); /* fits, but the flag tells that something is missing */
    assert_true(text.overflowed);
    text_clear(&text);
    assert_false(text.overflowed);
    assert_string_equal(text_string(&text), "");
}

static void formatting_into_nothing_may_overflow(void **state)
{
    AUTO(text) struct text text = TEXT_INIT(2);

    (void) state;
    text_format(&text, "%d", 12345);
    assert_true(text.overflowed);
    assert_string_equal(text_string(&text), "");
}

static void bytes_may_contain_nul(void **state)
{
    AUTO(text) struct text text = TEXT_INIT(10);

    (void) state;
    text_append_bytes(&text, "a\0b", 3);
    text_append(&text, "c");
    assert_memory_equal(text.data, "a\0bc\0", 5);
}

static void reserved_room_counts_only_when_committed(void **state)
{
    AUTO(text) struct text text = TEXT_INIT(10);
    char *room = text_reserve(&text, 10);

    (void) state;
    assert_non_null(room);
    memset(room, 'a', 4);
    assert_int_equal(text.length, 0);
    text_commit(&text, 4);
    assert_string_equal(text_string(&text), "aaaa");
    assert_null(text_reserve(&text, 7));
    assert_true(text.overflowed);
}

static void consuming_drops_the_front(void **state)
{
    AUTO(text) struct text text = TEXT_INIT(10);

    (void) state;
    text_consume(&text, 0); /* nothing there yet */
    text_append(&text, "abcdef");
    text_consume(&text, 2);
    assert_string_equal(text_string(&text), "cdef");
    text_consume(&text, 4);
    assert_string_equal(text_string(&text), "");
    assert_int_equal(text.length, 0);
}

static void taking_leaves_an_empty_text_with_its_limit(void **state)
{
    AUTO(text) struct text text = TEXT_INIT(3);
    AUTO(free) char *nothing = text_take(&text);
    AUTO(free) char *taken = NULL;

    (void) state;
    assert_string_equal(nothing, "");
    text_append(&text, "abc");
    taken = text_take(&text);
    assert_string_equal(taken, "abc");
    assert_string_equal(text_string(&text), "");
    text_append(&text, "abcd");
    assert_true(text.overflowed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appending_builds_a_string),
        cmocka_unit_test(many_small_appends_equal_one_large),
        cmocka_unit_test(the_maximum_is_reached_but_not_passed),
        cmocka_unit_test(overflow_changes_nothing_and_stays_set),
        cmocka_unit_test(formatting_into_nothing_may_overflow),
        cmocka_unit_test(bytes_may_contain_nul),
        cmocka_unit_test(reserved_room_counts_only_when_committed),
        cmocka_unit_test(consuming_drops_the_front),
        cmocka_unit_test(taking_leaves_an_empty_text_with_its_limit),
    };

    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
