#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_test.h"
#include "agent/output_text.h"
#include "base/encoding/encode.h"

#define MIXED "plain \"quoted\" \\ \n\t\x01 \xc3\xa4\xe2\x82\xac\xf0\x9f\x90\xb0 end"

/* Feed in pieces whose lengths `random` decides, and flush. */
static void feed_in_pieces(struct output_text *output, struct text *json, const char *bytes,
                           size_t length, uint64_t random)
{
    size_t at = 0;

    while (at < length) {
        size_t step = 1 + random % 5;

        random = random * 6364136223846793005u + 1442695040888963407u;
        if (step > length - at)
            step = length - at;
        output_text_feed(output, json, bytes + at, step);
        at += step;
    }
    output_text_flush(output, json);
}

static void text_is_the_same_in_whatever_pieces_it_comes(void **state)
{
    (void) state;
    for (uint64_t seed = 0; seed < 500; seed++) {
        AUTO(text) struct text json = TEXT_INIT(4096);
        struct output_text output = {.base64 = false};
        json_t *value;

        text_append(&json, "[\"");
        feed_in_pieces(&output, &json, MIXED, sizeof(MIXED) - 1, seed * 7919);
        text_append(&json, "\"]");
        value = json_loads(text_string(&json), 0, NULL);
        assert_non_null(value);
        assert_string_equal(json_string_value(json_array_get(value, 0)), MIXED);
        json_decref(value);
    }
}

static void base64_is_one_encoding_of_all_pieces(void **state)
{
    char bytes[257], expected[BASE64_TEXT_SIZE(257)];

    (void) state;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char) i;
    (void) base64_encode(BASE64_STANDARD, bytes, sizeof(bytes), expected);
    for (uint64_t seed = 0; seed < 500; seed++) {
        AUTO(text) struct text json = TEXT_INIT(4096);
        struct output_text output = {.base64 = true};

        feed_in_pieces(&output, &json, bytes, sizeof(bytes), seed * 104729);
        assert_string_equal(text_string(&json), expected);
    }
}

static void bytes_that_are_no_text_become_replacements_in_any_pieces(void **state)
{
    static const char bytes[] = "a\xff\xc3(\xe2\x82z\xf0\x9f\x90";

    (void) state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        AUTO(text) struct text json = TEXT_INIT(4096);
        struct output_text output = {.base64 = false};

        feed_in_pieces(&output, &json, bytes, sizeof(bytes) - 1, seed * 31337);
        assert_non_null(strstr(text_string(&json), "\xef\xbf\xbd("));
        assert_non_null(strstr(text_string(&json), "\xef\xbf\xbdz"));
        assert_int_equal(output.carried, 0);
    }
}

static void only_the_beginning_of_a_character_is_unfinished(void **state)
{
    (void) state;
    assert_int_equal(output_text_unfinished("abc", 3), 0);
    assert_int_equal(output_text_unfinished("a\xc3", 2), 1);
    assert_int_equal(output_text_unfinished("\xc3\xa4", 2), 0);
    assert_int_equal(output_text_unfinished("\xf0\x9f\x90", 3), 3);
    assert_int_equal(output_text_unfinished("\xe2\x82", 2), 2);
    assert_int_equal(output_text_unfinished("\x80\x80\x80\x80", 4), 0);
    assert_int_equal(output_text_unfinished("\xff", 1), 0);
    assert_int_equal(output_text_unfinished("", 0), 0);
}

static void large_pieces_pass_in_one_go(void **state)
{
    static const size_t size = 100000;
    char *bytes = malloc(size);

    (void) state;
    assert_non_null(bytes);
    memset(bytes, '\x01', size);
    for (int base64 = 0; base64 < 2; base64++) {
        AUTO(text) struct text json = TEXT_INIT(size * 8);
        struct output_text output = {.base64 = base64};

        output_text_feed(&output, &json, bytes, size);
        output_text_flush(&output, &json);
        assert_int_equal(json.length, base64 ? (size + 2) / 3 * 4 : size * 6);
    }
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_the_same_in_whatever_pieces_it_comes),
        cmocka_unit_test(base64_is_one_encoding_of_all_pieces),
        cmocka_unit_test(bytes_that_are_no_text_become_replacements_in_any_pieces),
        cmocka_unit_test(only_the_beginning_of_a_character_is_unfinished),
        cmocka_unit_test(large_pieces_pass_in_one_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
