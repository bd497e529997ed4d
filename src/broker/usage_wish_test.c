#include "broker/broker_testing.h"
#include "broker/usage_wish.h"

#define WISH "\"stream_options\":{\"include_usage\":true}"

/* The spaces that fill the room are left out of the comparison. */
static void expect(const char *body, const char *sent)
{
    for (size_t step = 1; step <= strlen(body); step++) {
        AUTO(text) struct text out = TEXT_INIT(65536);
        AUTO(text) struct text shown = TEXT_INIT(65536);
        struct usage_wish wish;

        usage_wish_init(&wish);
        for (size_t at = 0; at < strlen(body); at += step)
            usage_wish_feed(&wish, body + at, strlen(body) - at < step ? strlen(body) - at : step,
                            &out);
        usage_wish_finish(&wish, &out);
        assert_int_equal(out.length, strlen(body) + USAGE_WISH_ROOM);
        for (size_t i = 0; i < out.length; i++) {
            if (out.data[i] != ' ')
                text_append_char(&shown, out.data[i]);
        }
        assert_string_equal(text_string(&shown), sent);
    }
}

static void a_stream_without_the_wish_gets_it(void **state)
{
    (void) state;
    expect("{\"stream\":true}", "{\"stream\":true," WISH "}");
    expect("{\"stream\" : true , \"a\":[{}]}", "{\"stream\":true,\"a\":[{}]," WISH "}");
    expect("{\"str\\u0065am\":true}", "{\"str\\u0065am\":true," WISH "}");
}

static void a_wish_of_the_client_s_is_completed(void **state)
{
    (void) state;
    expect("{\"stream_options\":{},\"stream\":true}",
           "{\"stream_options\":{\"include_usage\":true},\"stream\":true}");
    expect("{\"stream\":true,\"stream_options\":{\"a\":1}}",
           "{\"stream\":true,\"stream_options\":{\"a\":1,\"include_usage\":true}}");
    expect("{\"stream\":true,\"stream_options\":{\"include_usage\":false}}",
           "{\"stream\":true,\"stream_options\":{\"include_usage\":true}}");
    expect("{\"stream\":true,\"stream_options\":{\"include_usage\":null,\"b\":2}}",
           "{\"stream\":true,\"stream_options\":{\"include_usage\":true,\"b\":2}}");
    expect("{\"stream\":true,\"stream_options\":null}",
           "{\"stream\":true,\"stream_options\":{\"include_usage\":true}}");
}

static void what_needs_no_wish_is_as_it_was(void **state)
{
    static const char *const bodies[] = {
        "{}",
        "{\"stream\":false}",
        "{\"stream\":false,\"stream_options\":null}",
        "{\"stream\":true,\"stream_options\":{\"include_usage\":true}}",
        "{\"messages\":[{\"stream\":true}]}",
        "{\"a\":\"{\\\"stream\\\":true}\"}",
        "[1,2]",
        "no,json",
        "{\"stream\":true",
        "",
        "truetruetruetrue",
        "12345678901234567890",
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(bodies); i++)
        expect(bodies[i], bodies[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_without_the_wish_gets_it),
        cmocka_unit_test(a_wish_of_the_client_s_is_completed),
        cmocka_unit_test(what_needs_no_wish_is_as_it_was),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
