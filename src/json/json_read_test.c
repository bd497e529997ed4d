#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "json/json_read.h"

static json_t *parse(const char *text)
{
    struct error err = ERROR_INIT;
    json_t *value = json_read(text, strlen(text), NULL, &err);

    if (!value)
        fail_msg("%s: %s", text, err.message);
    return value;
}

static void assert_refused(const char *text, enum err_code code, const char *message)
{
    struct error err = ERROR_INIT;

    assert_null(json_read(text, strlen(text), NULL, &err));
    assert_string_equal(err.message, message);
    assert_int_equal(err.code, code);
}

static void assert_message(const struct error *err, const char *message)
{
    assert_string_equal(err->message, message);
    assert_int_equal(err->code, ERR_INVALID);
}

static void documents_are_read(void **state)
{
    AUTO(json) json_t *value = parse(" {\"a\": [1, -2.5, true, null, \"\\u00e4\"]}\n");
    json_t *array = json_object_get(value, "a");

    (void) state;
    assert_int_equal(json_array_size(array), 5);
    assert_int_equal(json_integer_value(json_array_get(array, 0)), 1);
    assert_string_equal(json_string_value(json_array_get(array, 4)), "\xc3\xa4");
}

static void errors_say_line_and_column(void **state)
{
    (void) state;
    assert_refused("", ERR_INVALID,
                   "invalid JSON at line 1, column 0: '[' or '{' expected near end of file");
    assert_refused("{\n  \"a\": tru\n}", ERR_INVALID,
                   "invalid JSON at line 2, column 10: invalid token");
    assert_refused("[1] x", ERR_INVALID, "invalid JSON at line 1, column 5: end of file expected");
    assert_refused("[1,]", ERR_INVALID, "invalid JSON at line 1, column 4: unexpected token");
    assert_refused("{\"a\":1,\"b\":2,\"a\":3}", ERR_INVALID,
                   "invalid JSON at line 1, column 16: duplicate object key near '\"a\"'");
}

static void everything_but_json_is_refused(void **state)
{
    static const char *const wrong[] = {
        "5",
        "\"text\"",
        "null",
        "{a:1}",
        "{'a':1}",
        "[01]",
        "[+1]",
        "[.5]",
        "[1.]",
        "[NaN]",
        "[Infinity]",
        "[1e999]",
        "[9223372036854775808]",
        "[\"\t\"]",
        "[\"\\x41\"]",
        "[\"\xff\"]",
        "[\"\xc0\x80\"]",
        "[\"\\ud800\"]",
        "[\"unfinished",
        "[\"\\",
        "[1 2]",
        "// comment\n[]",
        "\xef\xbb\xbf[]",
        "[] []",
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        struct error err = ERROR_INIT;

        if (json_read(wrong[i], strlen(wrong[i]), NULL, &err))
            fail_msg("accepted %s", wrong[i]);
        assert_int_equal(err.code, ERR_INVALID);
        assert_non_null(strstr(err.message, "line "));
    }
}

static void nul_characters_are_refused(void **state)
{
    struct error err = ERROR_INIT;

    (void) state;
    assert_null(json_read("[\"a\0b\"]", 7, NULL, &err));
    assert_int_equal(err.code, ERR_INVALID);
    assert_null(json_read("[]\0", 3, NULL, &err));
    assert_null(json_read("[9\0]", 4, NULL, &err)); /* jansson alone would pass it by */
    assert_message(&err, "invalid JSON: it holds a NUL byte");
    assert_null(json_read("{\"\\u0000\":1}", 12, NULL, &err));
    assert_refused("[\"\\u0000\"]", ERR_INVALID,
                   "invalid JSON at line 1, column 9: \\u0000 is not allowed");
}

static void nul_characters_are_taken_when_the_limits_say_so(void **state)
{
    const struct json_limits limits = {.size = 64, .depth = 2, .values = 4, .nul = true};
    struct error err = ERROR_INIT;
    AUTO(json) json_t *value = json_read("[\"a\\u0000b\"]", 12, &limits, &err);

    (void) state;
    assert_non_null(value);
    assert_int_equal(json_string_length(json_array_get(value, 0)), 3);
    assert_null(json_read("{\"\\u0000\":1}", 12, &limits, &err));
}

static void messages_do_not_repeat_values(void **state)
{
    static const char *const with_secret[] = {
        "{\"password\" \"hunter2\"}",
        "{\"password\": hunter2}",
        "{\"password\": \"x\" \"hunter2\"}",
        "[\"x\", \"hunter2\n\"]",
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(with_secret); i++) {
        struct error err = ERROR_INIT;

        assert_null(json_read(with_secret[i], strlen(with_secret[i]), NULL, &err));
        assert_null(strstr(err.message, "hunter2"));
    }
}

/* `depth` arrays inside each other. */
static void nest(char *text, size_t depth)
{
    memset(text, '[', depth);
    memset(text + depth, ']', depth);
    text[2 * depth] = '\0';
}

static void nesting_is_limited(void **state)
{
    char text[2 * JSON_DEPTH_MAX + 8];
    AUTO(json) json_t *deepest = NULL;

    (void) state;
    nest(text, JSON_DEPTH_MAX);
    deepest = parse(text);
    nest(text, JSON_DEPTH_MAX + 1);
    assert_refused(text, ERR_INVALID,
                   "invalid JSON at line 1, column 65: more than 64 levels of nesting");
}

static void brackets_in_strings_do_not_count(void **state)
{
    const struct json_limits limits = {.size = 1000, .depth = 2, .values = 4};
    static const char fits[] = "[\"[[[[,,,,\\\"{{{{\", [\"\\\\\"]]";
    static const char too_deep[] = "[\"\\\\\",\n [\"\", {}]]";
    AUTO(json) json_t *value = NULL;
    struct error err = ERROR_INIT;

    (void) state;
    value = json_read(fits, strlen(fits), &limits, &err);
    assert_non_null(value);
    assert_null(json_read(too_deep, strlen(too_deep), &limits, &err));
    assert_message(&err, "invalid JSON at line 2, column 7: more than 2 levels of nesting");
}

static void siblings_do_not_add_to_the_depth(void **state)
{
    const struct json_limits limits = {.size = 1000, .depth = 2, .values = 100};
    static const char text[] = "[[],[],{},[],[]]";
    AUTO(json) json_t *value = json_read(text, strlen(text), &limits, NULL);

    (void) state;
    assert_non_null(value);
}

static void size_and_number_of_values_are_limited(void **state)
{
    const struct json_limits limits = {.size = 20, .depth = 5, .values = 5};
    AUTO(json) json_t *value = json_read("[1,2,3,4,5]", 11, &limits, NULL);
    struct error err = ERROR_INIT;

    (void) state;
    assert_non_null(value);
    assert_null(json_read("[1,2,3,4,5,6]", 13, &limits, &err));
    assert_int_equal(err.code, ERR_TOO_LARGE);
    assert_string_equal(err.message, "invalid JSON at line 1, column 11: more than 5 values");
    assert_null(json_read("[                    ]", 22, &limits, &err));
    assert_int_equal(err.code, ERR_TOO_LARGE);
    assert_string_equal(err.message, "JSON text of 22 bytes, at most 20 are allowed");
}

/* What most tests of fields start from. */
struct document {
    json_t *value; /* owned */
    struct json_place root;
    struct error err;
};

static struct document open_document(const char *text)
{
    struct document document = {.value = parse(text)};

    assert_int_equal(json_root_object(document.value, &document.root, &document.err), 0);
    return document;
}

static void document_done(struct document *document)
{
    json_decref(document->value);
}

AUTO_DEFINE(document, struct document, document_done);

static void the_root_must_be_an_object(void **state)
{
    AUTO(json) json_t *array = parse("[]");
    struct error err = ERROR_INIT;
    struct json_place root;

    (void) state;
    assert_int_equal(json_root_object(array, &root, &err), -1);
    assert_message(&err, "the JSON document must be an object, not an array");
}

static void fields_of_the_right_type_are_returned(void **state)
{
    AUTO(document)
    struct document document = open_document("{\"text\":\"abc\",\"number\":-7,\"yes\":true}");
    const char *text = NULL;
    int64_t number = 0;
    bool yes = false;

    (void) state;
    assert_int_equal(
        json_field_text(&document.root, "text", JSON_REQUIRED, 3, &text, &document.err), 0);
    assert_string_equal(text, "abc");
    assert_int_equal(
        json_field_integer(&document.root, "number", JSON_REQUIRED, -7, -7, &number, &document.err),
        0);
    assert_int_equal(number, -7);
    assert_int_equal(json_field_boolean(&document.root, "yes", JSON_REQUIRED, &yes, &document.err),
                     0);
    assert_true(yes);
}

static void absent_and_null_fields_keep_the_default(void **state)
{
    AUTO(document) struct document document = open_document("{\"b\":null}");
    AUTO(pool) struct pool pool = POOL_INIT;
    static const char *const keys[] = {"a", "b"};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
        const struct json_place *root = &document.root;
        struct json_place place = {.value = document.value};
        struct json_texts texts = {.count = 42};
        const char *text = "default";
        int64_t number = 42;
        bool yes = true;

        assert_int_equal(json_field_text(root, keys[i], JSON_OPTIONAL, 9, &text, NULL), 0);
        assert_int_equal(json_field_integer(root, keys[i], JSON_OPTIONAL, 0, 9, &number, NULL), 0);
        assert_int_equal(json_field_boolean(root, keys[i], JSON_OPTIONAL, &yes, NULL), 0);
        assert_int_equal(json_field_texts(root, keys[i], JSON_OPTIONAL, 9, 9, &pool, &texts, NULL),
                         0);
        assert_int_equal(json_field_object(root, keys[i], JSON_OPTIONAL, &place, NULL), 0);
        assert_string_equal(text, "default");
        assert_int_equal(number, 42);
        assert_true(yes);
        assert_int_equal(texts.count, 42);
        assert_null(place.value);
    }
}

static void missing_fields_are_named(void **state)
{
    AUTO(document) struct document document = open_document("{\"null\":null}");
    const char *text = NULL;
    struct json_place place;
    bool yes;

    (void) state;
    assert_int_equal(
        json_field_text(&document.root, "command", JSON_REQUIRED, 9, &text, &document.err), -1);
    assert_message(&document.err, "field 'command' is required");
    assert_int_equal(json_field_boolean(&document.root, "null", JSON_REQUIRED, &yes, &document.err),
                     -1);
    assert_message(&document.err, "field 'null' must be a boolean, not null");
    assert_int_equal(json_field_array(&document.root, "list", JSON_REQUIRED, &place, &document.err),
                     -1);
    assert_message(&document.err, "field 'list' is required");
}

static void wrong_types_and_ranges_are_told(void **state)
{
    AUTO(document)
    struct document document =
        open_document("{\"n\":5,\"f\":5.0,\"t\":\"abcd\",\"b\":true,\"o\":{},\"a\":[]}");
    const struct json_place *root = &document.root;
    struct error *err = &document.err;
    struct json_place place;
    const char *text = NULL;
    int64_t number = 42;
    bool yes = false;

    (void) state;
    assert_int_equal(json_field_text(root, "n", JSON_REQUIRED, 9, &text, err), -1);
    assert_message(err, "field 'n' must be a string, not a number");
    assert_int_equal(json_field_text(root, "t", JSON_OPTIONAL, 3, &text, err), -1);
    assert_message(err, "field 't' is longer than 3 bytes");
    assert_int_equal(json_field_integer(root, "t", JSON_REQUIRED, 0, 9, &number, err), -1);
    assert_message(err, "field 't' must be an integer, not a string");
    assert_int_equal(json_field_integer(root, "f", JSON_REQUIRED, 0, 9, &number, err), -1);
    assert_message(err, "field 'f' must be an integer, not a fraction");
    assert_int_equal(json_field_integer(root, "n", JSON_REQUIRED, -1, 4, &number, err), -1);
    assert_message(err, "field 'n' must be from -1 to 4");
    assert_int_equal(json_field_integer(root, "n", JSON_REQUIRED, 6, 9, &number, err), -1);
    assert_message(err, "field 'n' must be from 6 to 9");
    assert_int_equal(json_field_boolean(root, "a", JSON_REQUIRED, &yes, err), -1);
    assert_message(err, "field 'a' must be a boolean, not an array");
    assert_int_equal(json_field_object(root, "b", JSON_OPTIONAL, &place, err), -1);
    assert_message(err, "field 'b' must be an object, not a boolean");
    assert_int_equal(json_field_array(root, "o", JSON_REQUIRED, &place, err), -1);
    assert_message(err, "field 'o' must be an array, not an object");
    assert_null(text);
    assert_int_equal(number, 42);
}

static void a_string_with_a_nul_is_refused(void **state)
{
    AUTO(document) struct document document = open_document("{}");
    const char *text = NULL;

    (void) state;
    /* json_read lets none in; a tree may come from elsewhere */
    assert_int_equal(json_object_set_new(document.value, "a", json_stringn("x\0y", 3)), 0);
    assert_int_equal(json_field_text(&document.root, "a", JSON_REQUIRED, 9, &text, &document.err),
                     -1);
    assert_message(&document.err, "field 'a' contains a NUL character");
}

static void paths_lead_to_the_field(void **state)
{
    AUTO(document)
    struct document document =
        open_document("{\"options\":{\"mounts\":[{},{\"name\":7,\"args\":[\"a\",false]},3]}}");
    AUTO(pool) struct pool pool = POOL_INIT;
    struct error *err = &document.err;
    struct json_place options, mounts, mount;
    struct json_texts texts;
    const char *text = NULL;

    (void) state;
    assert_int_equal(json_field_object(&document.root, "options", JSON_REQUIRED, &options, err), 0);
    assert_int_equal(json_field_array(&options, "mounts", JSON_REQUIRED, &mounts, err), 0);
    assert_int_equal(json_array_size(mounts.value), 3);
    assert_int_equal(json_item_object(&mounts, 1, &mount, err), 0);
    assert_int_equal(json_field_text(&mount, "name", JSON_REQUIRED, 9, &text, err), -1);
    assert_message(err, "field 'options.mounts[1].name' must be a string, not a number");
    assert_int_equal(json_field_texts(&mount, "args", JSON_REQUIRED, 9, 9, &pool, &texts, err), -1);
    assert_message(err, "field 'options.mounts[1].args[1]' must be a string, not a boolean");
    assert_int_equal(json_item_object(&mounts, 2, &mount, err), -1);
    assert_message(err, "field 'options.mounts[2]' must be an object, not a number");
    assert_int_equal(json_item_object(&mounts, 3, &mount, err), -1);
    assert_message(err, "field 'options.mounts[3]' is required");
}

static void unknown_fields_are_named(void **state)
{
    static const char *const names[] = {"a", "options"};
    AUTO(document) struct document document = open_document("{\"a\":1,\"options\":{\"x\":2}}");
    struct json_place options;

    (void) state;
    assert_int_equal(json_known_fields(&document.root, names, 2, &document.err), 0);
    assert_int_equal(json_known_fields(&document.root, names, 1, &document.err), -1);
    assert_message(&document.err, "unknown field 'options'");
    assert_int_equal(
        json_field_object(&document.root, "options", JSON_REQUIRED, &options, &document.err), 0);
    assert_int_equal(json_known_fields(&options, names, 2, &document.err), -1);
    assert_message(&document.err, "unknown field 'options.x'");
}

static void long_foreign_names_are_cut(void **state)
{
    AUTO(document) struct document document = open_document("{}");
    char name[1000];

    (void) state;
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_int_equal(json_object_set_new(document.value, name, json_true()), 0);
    assert_int_equal(json_known_fields(&document.root, NULL, 0, &document.err), -1);
    assert_true(strlen(document.err.message) < 100);
}

static void string_arrays_are_returned_in_order(void **state)
{
    AUTO(document)
    struct document document = open_document("{\"list\":[\"a\",\"\",\"ccc\"],\"none\":[]}");
    AUTO(pool) struct pool pool = POOL_INIT;
    struct json_texts texts = {.count = 42};
    struct error *err = &document.err;

    (void) state;
    assert_int_equal(
        json_field_texts(&document.root, "list", JSON_REQUIRED, 3, 3, &pool, &texts, err), 0);
    assert_int_equal(texts.count, 3);
    assert_string_equal(texts.items[0], "a");
    assert_string_equal(texts.items[1], "");
    assert_string_equal(texts.items[2], "ccc");
    assert_int_equal(
        json_field_texts(&document.root, "none", JSON_REQUIRED, 0, 0, &pool, &texts, err), 0);
    assert_int_equal(texts.count, 0);
    assert_int_equal(
        json_field_texts(&document.root, "list", JSON_REQUIRED, 2, 3, &pool, &texts, err), -1);
    assert_message(err, "field 'list' has more than 2 items");
    assert_int_equal(
        json_field_texts(&document.root, "list", JSON_REQUIRED, 3, 2, &pool, &texts, err), -1);
    assert_message(err, "field 'list[2]' is longer than 2 bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_are_read),
        cmocka_unit_test(errors_say_line_and_column),
        cmocka_unit_test(everything_but_json_is_refused),
        cmocka_unit_test(nul_characters_are_refused),
        cmocka_unit_test(nul_characters_are_taken_when_the_limits_say_so),
        cmocka_unit_test(messages_do_not_repeat_values),
        cmocka_unit_test(nesting_is_limited),
        cmocka_unit_test(brackets_in_strings_do_not_count),
        cmocka_unit_test(siblings_do_not_add_to_the_depth),
        cmocka_unit_test(size_and_number_of_values_are_limited),
        cmocka_unit_test(the_root_must_be_an_object),
        cmocka_unit_test(fields_of_the_right_type_are_returned),
        cmocka_unit_test(absent_and_null_fields_keep_the_default),
        cmocka_unit_test(missing_fields_are_named),
        cmocka_unit_test(wrong_types_and_ranges_are_told),
        cmocka_unit_test(a_string_with_a_nul_is_refused),
        cmocka_unit_test(paths_lead_to_the_field),
        cmocka_unit_test(unknown_fields_are_named),
        cmocka_unit_test(long_foreign_names_are_cut),
        cmocka_unit_test(string_arrays_are_returned_in_order),
    };

    return cmocka_run_group_tests_name("json_read", tests, NULL, NULL);
}
