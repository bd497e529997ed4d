#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "harness/opencode_config.h"
#include "harness/opencode_start.h"
#include "harness/part_json.h"
#include "json/json_read.h"

/* --- the config ------------------------------------------------------------------------------ */

static void config_is(const struct harness_place *place, const char *expected)
{
    AUTO(text) struct text config = TEXT_INIT(OPENCODE_CONFIG_MAX);
    struct error err = ERROR_INIT;
    json_t *told, *wanted;

    assert_int_equal(opencode_config_write(place, &config, &err), 0);
    told = json_loads(text_string(&config), 0, NULL);
    wanted = json_loads(expected, 0, NULL);
    assert_non_null(wanted);
    if (!json_equal(told, wanted))
        fail_msg("told %s", text_string(&config));
    json_decref(told);
    json_decref(wanted);
}

static void ours_wins_over_the_callers(void **state)
{
    (void) state;
    config_is(&(struct harness_place){.config = "{\"autoupdate\":true,\"theme\":\"a\"}"},
              "{\"autoupdate\":false,\"share\":\"disabled\",\"theme\":\"a\"}");
    config_is(&(struct harness_place){.permission = "reject"},
              "{\"autoupdate\":false,\"share\":\"disabled\",\"permission\":{\"*\":\"deny\"}}");
    config_is(&(struct harness_place){.permission = "{\"bash\":\"ask\"}"},
              "{\"autoupdate\":false,\"share\":\"disabled\",\"permission\":{\"bash\":\"ask\"}}");
}

static void models_are_reached_through_the_broker(void **state)
{
    (void) state;
    config_is(&(struct harness_place){.models = "{\"openai\":true,\"mine\":\"corp\"}",
                                      .config = "{\"provider\":{\"local\":{},\"openai\":7}}"},
              "{\"autoupdate\":false,\"share\":\"disabled\",\"provider\":{\"local\":{},"
              "\"openai\":{\"options\":{\"baseURL\":\"http://127.66.0.1:8790/openai/v1\","
              "\"apiKey\":\"burrow-openai\"}},"
              "\"mine\":{\"options\":{\"baseURL\":\"http://127.66.0.1:8790/corp/v1\","
              "\"apiKey\":\"burrow-corp\"}}},"
              "\"enabled_providers\":[\"local\",\"openai\",\"mine\"]}");
}

static void a_config_that_is_none_is_refused(void **state)
{
    AUTO(text) struct text config = TEXT_INIT(OPENCODE_CONFIG_MAX);
    AUTO(free) char *large = malloc(OPENCODE_CONFIG_MAX + 32);
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(opencode_config_write(&(struct harness_place){.config = "[1]"}, &config, &err),
                     -1);
    assert_int_equal(err.code, ERR_INVALID);
    assert_int_equal(
        opencode_config_write(&(struct harness_place){.permission = "maybe"}, &config, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    memset(large, 'x', OPENCODE_CONFIG_MAX + 32);
    (void) snprintf(large + OPENCODE_CONFIG_MAX + 28, 4, "\"}");
    for (size_t i = 0; i < 6; i++)
        large[i] = "{\"a\":\""[i];
    assert_int_equal(opencode_config_write(&(struct harness_place){.config = large}, &config, &err),
                     -1);
    assert_int_equal(err.code, ERR_TOO_LARGE);
}

/* --- its process ----------------------------------------------------------------------------- */

static void what_the_agent_says_of_a_process_is_read(void **state)
{
    struct opencode_process process;
    static const char alive[] = "{\"process\":{\"status\":\"running\"}}";
    static const char gone[] = "{\"process\":{\"status\":\"failed\",\"exitCode\":127}}";

    (void) state;
    assert_int_equal(opencode_process_read(alive, strlen(alive), &process), 0);
    assert_true(process.is_alive);
    assert_int_equal(opencode_process_read(gone, strlen(gone), &process), 0);
    assert_false(process.is_alive);
    assert_true(opencode_process_is_missing(&process));
    assert_int_equal(opencode_process_read("{}", 2, &process), -1);
    assert_int_equal(opencode_process_read("nonsense", 8, &process), -1);
}

static void the_end_of_a_log_is_kept_whole_characters_only(void **state)
{
    static const char both[] = "{\"stdout\":\"out\",\"stderr\":\"one\\ntwo \xc3\xa4\"}";
    static const char one[] = "{\"stdout\":\"out\",\"stderr\":\"\"}";
    AUTO(free) char *end = opencode_log_end(both, strlen(both), 5);
    AUTO(free) char *cut = opencode_log_end(both, strlen(both), 1);
    AUTO(free) char *out = opencode_log_end(one, strlen(one), 100);

    (void) state;
    assert_string_equal(end, "wo \xc3\xa4");
    assert_string_equal(cut, "");
    assert_string_equal(out, "out");
    assert_null(opencode_log_end("[]", 2, 10));
    assert_string_equal(opencode_last_line("one\ntwo\n\n"), "two\n\n");
    assert_string_equal(opencode_last_line(""), "");
}

/* --- parts ----------------------------------------------------------------------------------- */

static void long_texts_of_a_part_are_cut_between_characters(void **state)
{
    AUTO(text) struct text out = TEXT_INIT(PART_JSON_MAX);
    size_t length = PART_STRING_MAX + 1;
    AUTO(free) char *text = malloc(length + 1);
    AUTO(json) json_t *part = NULL, *told = NULL;
    const char *cut;

    (void) state;
    memset(text, 'x', length + 1);
    memcpy(text + PART_STRING_MAX - 1, "\xc3\xa4", 3);
    part = json_pack("{s:s,s:{s:s}}", "id", "p", "state", "output", text);
    part_json_write(part, &out);
    told = json_loads(text_string(&out), 0, NULL);
    cut = json_string_value(json_object_get(json_object_get(told, "state"), "output"));
    assert_int_equal(strlen(cut), PART_STRING_MAX - 1);
    assert_true(json_is_true(json_object_get(told, "truncated")));
}

static void a_part_that_is_too_large_even_so_is_named(void **state)
{
    AUTO(text) struct text out = TEXT_INIT(PART_JSON_MAX);
    AUTO(json) json_t *part = json_pack("{s:s,s:s,s:[]}", "id", "p", "type", "tool", "many");
    AUTO(free) char *text = malloc(PART_STRING_MAX + 1);

    (void) state;
    memset(text, 'x', PART_STRING_MAX);
    text[PART_STRING_MAX] = '\0';
    for (int i = 0; i < 20; i++)
        json_array_append_new(json_object_get(part, "many"), json_string(text));
    part_json_write(part, &out);
    assert_string_equal(text_string(&out), "{\"id\":\"p\",\"type\":\"tool\",\"truncated\":true}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ours_wins_over_the_callers),
        cmocka_unit_test(models_are_reached_through_the_broker),
        cmocka_unit_test(a_config_that_is_none_is_refused),
        cmocka_unit_test(what_the_agent_says_of_a_process_is_read),
        cmocka_unit_test(the_end_of_a_log_is_kept_whole_characters_only),
        cmocka_unit_test(long_texts_of_a_part_are_cut_between_characters),
        cmocka_unit_test(a_part_that_is_too_large_even_so_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
