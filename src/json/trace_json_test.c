#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "json/trace_json.h"

#define TEXT_MAX 65536

static ssize_t read_text(const char *text, struct trace_entry *ret_entries, size_t most)
{
    AUTO(json) json_t *json = json_read(text, strlen(text), NULL, NULL);
    struct json_place root;
    struct error err = ERROR_INIT;

    assert_non_null(json);
    assert_int_equal(json_root_object(json, &root, &err), 0);
    return trace_json_read(&root, ret_entries, most, &err);
}

static void what_was_written_is_read(void **state)
{
    static const struct trace_entry written[] = {
        {.time_ns = 1,
         .process = "daemon",
         .context = {{"aaaaaaaaaaaaaaaaaaaaaaaaaa"}, {"bbbbbbbbbbbbbbbbbbbbbbbbba"}},
         .point = "http.begin GET"},
        {.time_ns = INT64_C(1) << 53, .process = "agent", .point = "exec.begin"},
    };
    AUTO(text) struct text text = TEXT_INIT(TEXT_MAX);
    struct trace_entry read[4];
    struct json_writer json;

    (void) state;
    json_writer_init_text(&json, &text);
    json_begin_object(&json);
    json_key(&json, "entries");
    trace_json_write(&json, written, ARRAY_COUNT(written));
    json_end_object(&json);
    assert_int_equal(json_writer_finish(&json), 0);
    assert_int_equal(read_text(text_string(&text), read, 4), 2);
    assert_memory_equal(read, written, sizeof(written));
    assert_int_equal(read_text(text_string(&text), read, 1), 1);
}

static void words_of_a_stranger_are_cleaned(void **state)
{
    struct trace_entry entry;

    (void) state;
    assert_int_equal(read_text("{\"entries\":[{\"ns\":5,\"process\":\"a\\u001bb\",\"request\":"
                               "\"not an id\",\"point\":\"\\u00e9\\n\"}]}",
                               &entry, 1),
                     1);
    assert_string_equal(entry.process, "a?b");
    assert_string_equal(entry.context.request.text, "");
    assert_string_equal(entry.point, "???");
}

static void what_is_no_entry_is_refused(void **state)
{
    static const char *const texts[] = {
        "{}",
        "{\"entries\":{}}",
        "{\"entries\":[1]}",
        "{\"entries\":[{\"point\":\"x\"}]}",
        "{\"entries\":[{\"ns\":-1}]}",
        "{\"entries\":[{\"ns\":9007199254740993}]}",
        "{\"entries\":[{\"ns\":1,\"process\":\"longer than a name\"}]}",
    };
    struct trace_entry entry;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
        assert_int_equal(read_text(texts[i], &entry, 1), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(words_of_a_stranger_are_cleaned),
        cmocka_unit_test(what_is_no_entry_is_refused),
    };

    return cmocka_run_group_tests_name("trace_json", tests, NULL, NULL);
}
