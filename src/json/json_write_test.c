#include <errno.h>
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "base/encoding/utf8.h"
#include "base/id.h"
#include "json/json_read.h"
#include "json/json_write.h"

/* A writer, the text behind it, and the way to both in one line of a test. */
struct page {
    struct text text;
    struct json_writer json;
};

static void page_init(struct page *page)
{
    page->text = (struct text) TEXT_INIT(1 << 20);
    json_writer_init_text(&page->json, &page->text);
}

static void page_done(struct page *page)
{
    text_done(&page->text);
}

AUTO_DEFINE(page, struct page, page_done);

static void assert_written(struct page *page, const char *expected)
{
    assert_int_equal(json_writer_finish(&page->json), 0);
    assert_string_equal(text_string(&page->text), expected);
}

static void nested_values_get_their_commas(void **state)
{
    AUTO(page) struct page page;

    (void) state;
    page_init(&page);
    json_begin_object(&page.json);
    json_add_text(&page.json, "id", "abc");
    json_key(&page.json, "list");
    json_begin_array(&page.json);
    json_put_integer(&page.json, 1);
    json_begin_object(&page.json);
    json_end_object(&page.json);
    json_begin_array(&page.json);
    json_end_array(&page.json);
    json_put_null(&page.json);
    json_end_array(&page.json);
    json_add_boolean(&page.json, "yes", true);
    json_add_boolean(&page.json, "no", false);
    json_add_null(&page.json, "none");
    json_add_integer(&page.json, "low", INT64_MIN);
    json_add_text(&page.json, "absent", NULL);
    json_key(&page.json, "raw");
    json_put_raw(&page.json, "[1, 2]", 6);
    json_end_object(&page.json);
    assert_written(&page, "{\"id\":\"abc\",\"list\":[1,{},[],null],\"yes\":true,\"no\":false,"
                          "\"none\":null,\"low\":-9223372036854775808,\"absent\":null,"
                          "\"raw\":[1, 2]}");
}

static void a_document_is_an_object_and_keys_begin_their_own(void **state)
{
    AUTO(page) struct page page;

    (void) state;
    page_init(&page);
    json_document_begin(&page.json, &page.text);
    json_begin_array_at(&page.json, "list");
    json_put_integer(&page.json, 1);
    json_end_array(&page.json);
    json_begin_object_at(&page.json, "object");
    json_end_object(&page.json);
    assert_int_equal(json_document_end(&page.json), 0);
    assert_string_equal(text_string(&page.text), "{\"list\":[1],\"object\":{}}");
    page_done(&page);
    page_init(&page);
    json_document_begin(&page.json, &page.text);
    json_key(&page.json, "list");
    assert_int_equal(json_document_end(&page.json), -EINVAL);
}

static void one_value_alone_is_a_document(void **state)
{
    AUTO(page) struct page page;

    (void) state;
    page_init(&page);
    json_put_text(&page.json, "x");
    assert_written(&page, "\"x\"");
}

static void strings_are_escaped(void **state)
{
    AUTO(page) struct page page;

    (void) state;
    page_init(&page);
    json_begin_array(&page.json);
    json_put_text(&page.json, "\"\\/\b\f\n\r\t\x01\x1f\x7f");
    json_put_bytes(&page.json, "a\0b", 3);
    json_put_text(&page.json, "\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\x87");
    json_end_array(&page.json);
    assert_written(&page, "[\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\",\"a\\u0000b\","
                          "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\x87\"]");
}

static void invalid_utf8_is_replaced(void **state)
{
    AUTO(page) struct page page;

    (void) state;
    page_init(&page);
    json_begin_object(&page.json);
    json_add_text(&page.json, "k\xff", "a\x80\xed\xa0\x80z\xe2\x82");
    json_end_object(&page.json);
    assert_written(&page, "{\"k\xef\xbf\xbd\":\"a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz"
                          "\xef\xbf\xbd\xef\xbf\xbd\"}");
}

static void any_bytes_become_valid_json(void **state)
{
    (void) state;
    for (size_t round = 0; round < 500; round++) {
        AUTO(json) json_t *value = NULL;
        AUTO(page) struct page page;
        char bytes[100];

        page_init(&page);
        random_bytes(bytes, sizeof(bytes));
        json_begin_array(&page.json);
        json_put_bytes(&page.json, bytes, round % sizeof(bytes));
        json_end_array(&page.json);
        assert_int_equal(json_writer_finish(&page.json), 0);
        value = json_loadb(page.text.data, page.text.length, JSON_ALLOW_NUL, NULL);
        assert_non_null(value);
        if (utf8_is_valid(bytes, round % sizeof(bytes)))
            assert_memory_equal(json_string_value(json_array_get(value, 0)), bytes,
                                round % sizeof(bytes));
    }
}

static void doubles_are_short_and_exact(void **state)
{
    static const struct {
        double number;
        const char *text;
    } known[] = {
        {0.1, "0.1"},
        {0, "0.0"},
        {-0.0, "-0.0"},
        {1, "1.0"},
        {1e22, "1e+22"},
        {1e300, "1e+300"},
        {-2.5, "-2.5"},
        {0.1 + 0.2, "0.30000000000000004"},
        {5e-324, "4.94065645841247e-324"},
        {123456789, "123456789.0"},
        {NAN, "null"},
        {INFINITY, "null"},
        {-INFINITY, "null"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(known); i++) {
        AUTO(page) struct page page;

        page_init(&page);
        json_put_double(&page.json, known[i].number);
        assert_written(&page, known[i].text);
    }
}

static void random_doubles_come_back(void **state)
{
    (void) state;
    for (int round = 0; round < 2000; round++) {
        AUTO(page) struct page page;
        double number;

        page_init(&page);
        random_bytes(&number, sizeof(number));
        if (!isfinite(number))
            continue;
        json_put_double(&page.json, number);
        assert_int_equal(json_writer_finish(&page.json), 0);
        assert_true(strtod(page.text.data, NULL) == number);
        assert_non_null(strpbrk(page.text.data, ".e"));
    }
}

static void misuse(struct page *page)
{
    json_put_integer(&page->json, 1); /* nothing counts any more */
    assert_int_equal(json_writer_finish(&page->json), -EINVAL);
    page_done(page);
    page_init(page);
}

static void misuse_is_refused_and_stays(void **state)
{
    AUTO(page) struct page page;

    (void) state;
    page_init(&page);
    json_begin_object(&page.json); /* a value without key */
    json_put_integer(&page.json, 1);
    json_end_object(&page.json);
    misuse(&page);
    json_begin_object(&page.json); /* a key without value */
    json_key(&page.json, "a");
    json_end_object(&page.json);
    misuse(&page);
    json_begin_object(&page.json); /* two keys */
    json_key(&page.json, "a");
    json_key(&page.json, "b");
    misuse(&page);
    json_begin_array(&page.json); /* a key in an array */
    json_key(&page.json, "a");
    misuse(&page);
    json_key(&page.json, "a"); /* a key at the top */
    misuse(&page);
    json_begin_array(&page.json); /* the wrong end */
    json_end_object(&page.json);
    misuse(&page);
    json_end_array(&page.json); /* an end of nothing */
    misuse(&page);
    json_put_null(&page.json); /* two values */
    json_put_null(&page.json);
    misuse(&page);
}

static void an_unfinished_document_is_refused(void **state)
{
    AUTO(page) struct page page;

    (void) state;
    page_init(&page);
    assert_int_equal(json_writer_finish(&page.json), -EINVAL);
    page_init(&page);
    json_begin_array(&page.json);
    assert_int_equal(json_writer_finish(&page.json), -EINVAL);
}

/* {"k":[{"k":[ ... ]}]}: every level must remember which of the two it is. */
static void objects_and_arrays_may_alternate_to_the_last_level(void **state)
{
    AUTO(json) json_t *value = NULL;
    AUTO(page) struct page page;

    (void) state;
    page_init(&page);
    for (int i = 0; i < JSON_WRITE_DEPTH_MAX; i += 2) {
        json_begin_object(&page.json);
        json_key(&page.json, "k");
        json_begin_array(&page.json);
    }
    for (int i = 0; i < JSON_WRITE_DEPTH_MAX; i += 2) {
        json_put_null(&page.json);
        json_end_array(&page.json);
        json_add_null(&page.json, "last");
        json_end_object(&page.json);
    }
    assert_int_equal(json_writer_finish(&page.json), 0);
    value = json_read(page.text.data, page.text.length, NULL, NULL);
    assert_non_null(value);
}

static void exactly_64_levels_fit(void **state)
{
    for (int depth = JSON_WRITE_DEPTH_MAX; depth <= JSON_WRITE_DEPTH_MAX + 1; depth++) {
        AUTO(page) struct page page;

        (void) state;
        page_init(&page);
        for (int i = 0; i < depth; i++)
            json_begin_array(&page.json);
        for (int i = 0; i < depth; i++)
            json_end_array(&page.json);
        assert_int_equal(json_writer_finish(&page.json),
                         depth <= JSON_WRITE_DEPTH_MAX ? 0 : -EOVERFLOW);
    }
}

static void a_full_text_is_told(void **state)
{
    AUTO(text) struct text text = TEXT_INIT(10);
    struct json_writer json;

    (void) state;
    json_writer_init_text(&json, &text);
    json_put_text(&json, "0123456789");
    assert_int_equal(json_writer_finish(&json), -EOVERFLOW);
}

static void text_of_before_stays(void **state)
{
    AUTO(text) struct text text = TEXT_INIT(100);
    struct json_writer json;

    (void) state;
    text_append(&text, "data: ");
    json_writer_init_text(&json, &text);
    json_put_integer(&json, 5);
    assert_int_equal(json_writer_finish(&json), 0);
    assert_string_equal(text.data, "data: 5");
}

struct meter {
    struct text text;
    int calls;
    int fail_at; /* which call fails, or 0 */
};

static int measure(void *context, const char *bytes, size_t length)
{
    struct meter *meter = context;

    assert_true(length > 0);
    meter->calls++;
    text_append_bytes(&meter->text, bytes, length);
    return meter->calls == meter->fail_at ? -EPIPE : 0;
}

/* A document that is larger than the writer's buffer, with pieces of all sizes. */
static void write_much(struct json_writer *json)
{
    char piece[2000];

    memset(piece, 'p', sizeof(piece));
    json_begin_array(json);
    for (size_t i = 0; i < sizeof(piece); i += 7) {
        json_put_bytes(json, piece, i);
        json_put_integer(json, (int64_t) i);
    }
    json_end_array(json);
}

static void a_sink_gets_the_same_bytes_in_few_pieces(void **state)
{
    struct meter meter = {.text = TEXT_INIT(1 << 20)};
    AUTO(page) struct page page;
    struct json_writer json;

    (void) state;
    page_init(&page);
    write_much(&page.json);
    assert_int_equal(json_writer_finish(&page.json), 0);
    json_writer_init_sink(&json, measure, &meter);
    write_much(&json);
    assert_int_equal(json_writer_finish(&json), 0);
    assert_string_equal(text_string(&meter.text), text_string(&page.text));
    assert_true(meter.calls < 1500);
    text_done(&meter.text);
}

static void a_failing_sink_is_told_and_asked_no_more(void **state)
{
    for (int fail_at = 1; fail_at < 20; fail_at++) {
        struct meter meter = {.text = TEXT_INIT(1 << 20), .fail_at = fail_at};
        struct json_writer json;

        (void) state;
        json_writer_init_sink(&json, measure, &meter);
        write_much(&json);
        assert_int_equal(json_writer_finish(&json), -EPIPE);
        assert_int_equal(meter.calls, fail_at);
        text_done(&meter.text);
    }
}

static void trees_are_written_as_they_were_read(void **state)
{
    static const char text[] = "{\"z\":[1,2.5,\"\xc3\xa4\",true,false,null,{}],\"a\":{\"b\":[]}}";
    AUTO(json) json_t *value = json_read(text, strlen(text), NULL, NULL);
    AUTO(page) struct page page;

    (void) state;
    page_init(&page);
    json_put_value(&page.json, value);
    assert_written(&page, text);
}

static void trees_that_are_too_deep_are_refused(void **state)
{
    AUTO(json) json_t *tree = json_array();
    AUTO(page) struct page page;

    (void) state;
    for (int i = 0; i < 1000; i++) {
        json_t *outer = json_array();

        assert_int_equal(json_array_append_new(outer, tree), 0);
        tree = outer;
    }
    page_init(&page);
    json_put_value(&page.json, tree);
    assert_int_equal(json_writer_finish(&page.json), -EOVERFLOW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nested_values_get_their_commas),
        cmocka_unit_test(a_document_is_an_object_and_keys_begin_their_own),
        cmocka_unit_test(one_value_alone_is_a_document),
        cmocka_unit_test(strings_are_escaped),
        cmocka_unit_test(invalid_utf8_is_replaced),
        cmocka_unit_test(any_bytes_become_valid_json),
        cmocka_unit_test(doubles_are_short_and_exact),
        cmocka_unit_test(random_doubles_come_back),
        cmocka_unit_test(misuse_is_refused_and_stays),
        cmocka_unit_test(an_unfinished_document_is_refused),
        cmocka_unit_test(objects_and_arrays_may_alternate_to_the_last_level),
        cmocka_unit_test(exactly_64_levels_fit),
        cmocka_unit_test(a_full_text_is_told),
        cmocka_unit_test(text_of_before_stays),
        cmocka_unit_test(a_sink_gets_the_same_bytes_in_few_pieces),
        cmocka_unit_test(a_failing_sink_is_told_and_asked_no_more),
        cmocka_unit_test(trees_are_written_as_they_were_read),
        cmocka_unit_test(trees_that_are_too_deep_are_refused),
    };

    return cmocka_run_group_tests_name("json_write", tests, NULL, NULL);
}
