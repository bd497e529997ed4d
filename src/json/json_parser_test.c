#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/memory.h"
#include "base/text.h"
#include "json/json_parser.h"
#include "json/json_read.h"

#define DEPTH 8

static const struct json_limits strict = {.depth = DEPTH};
static const struct json_limits with_nul = {.depth = DEPTH, .nul = true};

/* Both parsers make the same of it, or neither takes it. Returns whether they do. */
static bool is_taken(const char *text, size_t length, const struct json_limits *limits)
{
    size_t flags = JSON_REJECT_DUPLICATES | (limits->nul ? JSON_ALLOW_NUL : 0);
    AUTO(json) json_t *ours = json_parse(text, length, limits);
    AUTO(json) json_t *theirs = json_loadb(text, length, flags, NULL);
    AUTO(free) char *our_text = ours ? json_dumps(ours, JSON_COMPACT) : NULL;
    AUTO(free) char *their_text = theirs ? json_dumps(theirs, JSON_COMPACT) : NULL;

    if (!ours != !theirs)
        fail_msg("%s: %s takes it alone", text, ours ? "our parser" : "jansson");
    if (ours)
        assert_string_equal(our_text, their_text);
    return ours != NULL;
}

/* Cut off at every byte as well, so that no end is read past. */
static void assert_taken(const char *text)
{
    size_t length = strlen(text);

    if (!is_taken(text, length, &strict))
        fail_msg("refused: %s", text);
    for (size_t i = 0; i < length; i++) {
        AUTO(free) char *cut = mem_alloc(i); /* no NUL behind it: a sanitizer sees the end */

        memcpy(cut, text, i);
        (void) is_taken(cut, i, &strict);
    }
}

static void every_kind_of_value_is_read_as_jansson_reads_it(void **state)
{
    static const char *const texts[] = {
        "[]",
        " {\t} \r\n",
        "[true,false,null]",
        "[0,-0,7,-12,999999999999999999,9223372036854775807,-9223372036854775808]",
        "[0.5,-0.0,1e3,1E-2,12.25e+2,123456789012345678.5]",
        "{\"b\":{\"a\":[[],{}]},\"a\":1,\"\":2}",
        "[\"\",\"plain\",\"a longer one than a word of the machine\",\"\x7f\"]",
        "[\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80 and more behind it\"]",
        "[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]",
        "[\"\\u0041\\u00e4\\u20AC\\ud83d\\ude00\\uD83D\\uDE00\\uffff\"]",
        "{\"\\u0061b\":\"run\\nrun\\n\"}",
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
        assert_taken(texts[i]);
}

static const char *const wrong[] = {
    "",
    " ",
    "1",
    "\"a\"",
    "null",
    "[",
    "]",
    "[}",
    "[1}",
    "[,]",
    "[1,]",
    "[1 2]",
    "[] []",
    "{\"a\"}",
    "{\"a\":}",
    "{\"a\":1,}",
    "{,}",
    "{1:2}",
    "{\"a\" 1}",
    "{\"a\":1,\"\\u0061\":2}",
    "[01]",
    "[-01]",
    "[-]",
    "[+1]",
    "[1.]",
    "[.5]",
    "[1e]",
    "[1-2]",
    "[1e999]",
    "[9223372036854775808]",
    "[truex]",
    "[tru]",
    "[nul]",
    "[\"\n\"]",
    "[\"\x1f\"]",
    "[\"\xff\"]",
    "[\"\xc3\"]",
    "[\"\xed\xa0\x80\"]",
    "[\"\\\"]",
    "[\"\\x\"]",
    "[\"\\u12\"]",
    "[\"\\u12g4\"]",
    "[\"\\ud83d\"]",
    "[\"\\ud83d\\u0041\"]",
    "[\"\\ud83dx\"]",
    "[\"\\ude00\"]",
    "[\"\\u0000\"]",
    "\xef\xbb\xbf[]",
};

static void what_jansson_refuses_is_refused(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        if (is_taken(wrong[i], strlen(wrong[i]), &strict))
            fail_msg("taken: %s", wrong[i]);
    }
    assert_false(is_taken("[]\0", 3, &strict));
    assert_false(is_taken("[\"\\\0\"]", 6, &with_nul));
    assert_false(is_taken("[\"\\u00\0\0\"]", 10, &with_nul));
}

static void nul_is_for_texts_alone_and_only_when_it_may_be(void **state)
{
    const char *text = "[\"a\\u0000b\"]", *key = "{\"a\\u0000b\":1}";

    (void) state;
    assert_false(is_taken(text, strlen(text), &strict));
    assert_true(is_taken(text, strlen(text), &with_nul));
    assert_false(is_taken(key, strlen(key), &with_nul));
}

static void depth_is_bounded(void **state)
{
    char text[2 * DEPTH + 3] = "";
    AUTO(json) json_t *value = NULL;

    (void) state;
    memset(text, '[', DEPTH);
    memset(text + DEPTH, ']', DEPTH);
    value = json_parse(text, strlen(text), &strict);
    assert_non_null(value);
    memset(text, '[', DEPTH + 1);
    memset(text + DEPTH + 1, ']', DEPTH + 1);
    assert_null(json_parse(text, strlen(text), &strict));
}

/* Wherever the words of the scan begin and end. */
static void special_bytes_are_found_at_every_offset(void **state)
{
    static const char *const specials[] = {"\\n", "\xc3\xa4", "\\u00e4", "\x7f", "\\\\", "\\\""};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(specials); i++) {
        for (int before = 0; before < 20; before++) {
            AUTO(text) struct text text = TEXT_INIT(256);

            text_format(&text, "[\"%.*s%s%.*s\"]", before, "xxxxxxxxxxxxxxxxxxxx", specials[i],
                        20 - before, "yyyyyyyyyyyyyyyyyyyy");
            assert_true(is_taken(text_string(&text), text.length, &strict));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_value_is_read_as_jansson_reads_it),
        cmocka_unit_test(what_jansson_refuses_is_refused),
        cmocka_unit_test(nul_is_for_texts_alone_and_only_when_it_may_be),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(special_bytes_are_found_at_every_offset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
