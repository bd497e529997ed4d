#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/memory.h"
#include "base/text.h"
#include "json/json_scan.h"

static void note(void *context, const struct json_scan *scan, enum json_scan_kind kind,
                 const char *path, const char *text)
{
    static const char *const marks[] = {"\"", "#", "", "+", "-"};

    (void) scan;
    text_format(context, "%s%s%s%s ", path, *path ? ":" : "", marks[kind], text);
}

static void expect(const char *json, const char *told)
{
    for (size_t step = 1; step <= strlen(json); step++) {
        AUTO(text) struct text out = TEXT_INIT(65536);
        struct json_scan scan;

        json_scan_init(&scan, note, &out);
        for (size_t at = 0; at < strlen(json); at += step)
            json_scan_feed(&scan, json + at, strlen(json) - at < step ? strlen(json) - at : step);
        json_scan_finish(&scan);
        assert_string_equal(text_string(&out), told);
    }
}

static void values_are_told_with_their_paths(void **state)
{
    (void) state;
    expect("{\"a\":{\"b\":1,\"c\":[{\"d\":\"x\"},true]}}",
           "+ a:+ a.b:#1 a.c:+ a.c:+ a.c.d:\"x a.c:- a.c:true a.c:- a:- - ");
    expect(" [1, -2.5e3 ,null]\n", "+ #1 #-2.5e3 null - ");
    expect("{}", "+ - ");
    expect("{\"a\":{}}", "+ a:+ a:- - ");
}

static void escapes_in_keys_and_values_are_undone(void **state)
{
    (void) state;
    expect("{\"str\\u0065am\":\"a\\n\\\"b\\\\\"}", "+ stream:\"a\n\"b\\ - ");
    expect("{\"\xc3\xa4\":\"\\u00e4\"}", "+ ??:\"? - ");
}

static void documents_follow_each_other(void **state)
{
    (void) state;
    expect("{\"a\":1}\n{\"b\":2}", "+ a:#1 - + b:#2 - ");
    expect("7", "#7 ");
}

static void what_is_too_deep_or_too_long_is_left_out_and_nothing_else(void **state)
{
    AUTO(text) struct text json = TEXT_INIT(65536);

    (void) state;
    text_append(&json, "{\"deep\":");
    for (int i = 0; i < 2000; i++)
        text_append_char(&json, '[');
    expect("{\"a\":[[[[[[[[[[{\"b\":1}]]]]]]]]]],\"c\":2}",
           "+ a:+ a:+ a:+ a:+ a:+ a:+ a:+ a:+ a:- a:- a:- a:- a:- a:- a:- a:- c:#2 - ");
    {
        AUTO(text) struct text out = TEXT_INIT(65536);
        struct json_scan scan;

        json_scan_init(&scan, note, &out);
        json_scan_feed(&scan, json.data, json.length);
        json_scan_feed(&scan, "]]]],\"a\":1}", 11);
        assert_int_equal(scan.state, JSON_SCAN_LOST);
        json_scan_reset(&scan);
        text_clear(&out);
        json_scan_feed(&scan, "{\"a\":1}", 7);
        assert_string_equal(text_string(&out), "+ a:#1 - ");
    }
}

static void keys_that_are_too_long_hide_what_is_below_them(void **state)
{
    AUTO(text) struct text json = TEXT_INIT(65536);

    (void) state;
    text_append(&json, "{\"");
    for (int i = 0; i < 300; i++)
        text_append_char(&json, 'k');
    text_append(&json, "\":[1,{\"a\":2},3],\"b\":4}");
    expect(text_string(&json), "+ b:#4 - ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_told_with_their_paths),
        cmocka_unit_test(escapes_in_keys_and_values_are_undone),
        cmocka_unit_test(documents_follow_each_other),
        cmocka_unit_test(what_is_too_deep_or_too_long_is_left_out_and_nothing_else),
        cmocka_unit_test(keys_that_are_too_long_hide_what_is_below_them),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
