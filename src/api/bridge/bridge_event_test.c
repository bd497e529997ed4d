#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/bridge/bridge_event.h"
#include "base/encoding/encode.h"
#include "base/encoding/utf8.h"
#include "base/id.h"
#include "json/json_read.h"

static struct bridge_held held;

static int forget(void **state)
{
    (void) state;
    held = (struct bridge_held){{{{0}, 0}}};
    return 0;
}

static void translate(struct bridge_event *event, const char *text)
{
    struct error err = ERROR_INIT;
    AUTO(json) json_t *told = json_read(text, strlen(text), NULL, &err);

    assert_non_null(told);
    bridge_event_read(event, &held, told);
}

static void events_of_a_command_are_told_in_the_words_of_the_bridge(void **state)
{
    static const struct {
        const char *told, *type, *data;
        bool is_last;
    } rows[] = {
        {"{\"type\":\"stdout\",\"data\":\"aGkK\",\"timestamp\":\"x\"}", "stdout", "aGkK", false},
        {"{\"type\":\"stderr\",\"data\":\"b28=\"}", "stderr", "b28=", false},
        {"{\"type\":\"complete\",\"exitCode\":3}", "exit", "{\"exit_code\":3}", true},
        {"{\"type\":\"complete\",\"exitCode\":0,\"signal\":\"SIGTERM\"}", "exit",
         "{\"exit_code\":0}", true},
        {"{\"type\":\"error\",\"error\":\"it\\n\\\"broke\\\"\"}", "error",
         "{\"error\":\"it\\n\\\"broke\\\"\",\"code\":\"exec_error\"}", true},
    };
    AUTO(bridge_event) struct bridge_event event = BRIDGE_EVENT_INIT;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        translate(&event, rows[i].told);
        assert_string_equal(event.type, rows[i].type);
        assert_string_equal(text_string(&event.data), rows[i].data);
        assert_int_equal(event.is_last, rows[i].is_last);
    }
}

static void what_says_nothing_to_a_client_is_left_out(void **state)
{
    static const char *const told[] = {"{\"type\":\"start\",\"command\":\"x\"}", "{}",
                                       "{\"type\":7}", "{\"type\":\"exit\"}", "[]"};
    AUTO(bridge_event) struct bridge_event event = BRIDGE_EVENT_INIT;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(told); i++) {
        translate(&event, told[i]);
        assert_null(event.type);
        assert_false(event.is_last);
    }
}

static void an_end_without_a_code_is_no_success(void **state)
{
    static const char *const told[] = {"{\"type\":\"complete\"}",
                                       "{\"type\":\"complete\",\"exitCode\":null}",
                                       "{\"type\":\"complete\",\"exitCode\":\"0\"}"};
    AUTO(bridge_event) struct bridge_event event = BRIDGE_EVENT_INIT;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(told); i++) {
        translate(&event, told[i]);
        assert_string_equal(event.type, "error");
        assert_non_null(strstr(text_string(&event.data), "exec_transport_error"));
        assert_true(event.is_last);
    }
}

static void a_failure_says_what_failed(void **state)
{
    AUTO(bridge_event) struct bridge_event event = BRIDGE_EVENT_INIT;

    (void) state;
    bridge_event_fail(&event, "connection reset");
    assert_string_equal(event.type, "error");
    assert_string_equal(text_string(&event.data), "{\"error\":\"exec failed: connection reset\","
                                                  "\"code\":\"exec_transport_error\"}");
}

/* Says `bytes` as an event of the agent's; what is told is decoded and appended to `got`. */
static void pass(struct bridge_event *event, const char *bytes, size_t length, struct text *got)
{
    char base64[BASE64_TEXT_SIZE(64)], text[256], decoded[128];
    size_t count = 0;

    (void) base64_encode(BASE64_STANDARD, bytes, length, base64);
    (void) snprintf(text, sizeof(text), "{\"type\":\"stdout\",\"data\":\"%s\"}", base64);
    translate(event, text);
    assert_int_equal(base64_decode(BASE64_STANDARD, text_string(&event->data), event->data.length,
                                   decoded, sizeof(decoded), &count),
                     0);
    text_append_bytes(got, decoded, count);
}

static void flush(struct bridge_event *event, struct text *got)
{
    char decoded[8];
    size_t count = 0;

    bridge_event_flush(event, &held, BRIDGE_STDOUT);
    assert_int_equal(base64_decode(BASE64_STANDARD, text_string(&event->data), event->data.length,
                                   decoded, sizeof(decoded), &count),
                     0);
    text_append_bytes(got, decoded, count);
}

/* Every way to cut the text in three: each event is whole characters, and nothing is lost. */
static void characters_are_never_split(void **state)
{
    static const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z\xc3\xa9";
    const size_t length = sizeof(text) - 1;
    AUTO(bridge_event) struct bridge_event event = BRIDGE_EVENT_INIT;

    (void) state;
    for (size_t first = 0; first <= length; first++) {
        for (size_t second = first; second <= length; second++) {
            AUTO(text) struct text got = TEXT_INIT(256);

            pass(&event, text, first, &got);
            assert_true(utf8_is_valid(text_string(&got), got.length));
            pass(&event, text + first, second - first, &got);
            assert_true(utf8_is_valid(text_string(&got), got.length));
            pass(&event, text + second, length - second, &got);
            assert_int_equal(got.length, length);
            assert_memory_equal(got.data, text, length);
        }
    }
}

static void bytes_that_are_no_text_are_passed_on_exactly(void **state)
{
    AUTO(bridge_event) struct bridge_event event = BRIDGE_EVENT_INIT;

    (void) state;
    for (int round = 0; round < 2000; round++) {
        AUTO(text) struct text got = TEXT_INIT(256), wanted = TEXT_INIT(256);

        for (int piece = 0; piece < 4; piece++) {
            unsigned char bytes[16];
            size_t length;

            random_bytes(bytes, sizeof(bytes));
            length = bytes[0] % sizeof(bytes);
            text_append_bytes(&wanted, bytes, length);
            pass(&event, (const char *) bytes, length, &got);
        }
        flush(&event, &got);
        assert_int_equal(got.length, wanted.length);
        assert_memory_equal(text_string(&got), text_string(&wanted), got.length);
    }
}

static void an_output_that_is_no_base64_is_left_out(void **state)
{
    AUTO(bridge_event) struct bridge_event event = BRIDGE_EVENT_INIT;

    (void) state;
    translate(&event, "{\"type\":\"stdout\",\"data\":\"a\\nb\"}");
    assert_int_equal(event.data.length, 0);
    translate(&event, "{\"type\":\"stdout\",\"data\":5}");
    assert_int_equal(event.data.length, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, forget)
    const struct CMUnitTest tests[] = {
        TEST(events_of_a_command_are_told_in_the_words_of_the_bridge),
        TEST(what_says_nothing_to_a_client_is_left_out),
        TEST(an_end_without_a_code_is_no_success),
        TEST(a_failure_says_what_failed),
        TEST(characters_are_never_split),
        TEST(bytes_that_are_no_text_are_passed_on_exactly),
        TEST(an_output_that_is_no_base64_is_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
