#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "harness/run_record.h"
#include "harness/run_start.h"
#include "json/json_read.h"

struct hearing {
    struct run_record record;
    struct text told;
};

static void hear_began(void *context, const char *agent_session)
{
    text_format(&((struct hearing *) context)->told, "began %s\n", agent_session);
}

static void hear_delta(void *context, const char *part_id, const char *field, const char *text,
                       size_t length)
{
    text_format(&((struct hearing *) context)->told, "delta %s %s %.*s\n", part_id, field,
                (int) length, text);
}

static void hear_part(void *context, const char *part_id, const char *json)
{
    (void) part_id;
    text_format(&((struct hearing *) context)->told, "part %s\n", json);
}

static void hear_ended(void *context, const struct error *failure,
                       const struct harness_result *result)
{
    text_format(&((struct hearing *) context)->told, "ended %s '%s' %s %d+%d %d\n",
                failure ? failure->message : "well", result->answer,
                result->model ? result->model : "-", (int) result->usage.input,
                (int) result->usage.output,
                result->usage.is_cost_known ? (int) result->usage.cost_micros : -1);
}

static const struct harness_listener listener = {
    .began = hear_began, .delta = hear_delta, .part = hear_part, .ended = hear_ended};

static void hears(const char *kind, const char *const *lines, size_t count, const char *expected)
{
    struct hearing hearing = {.told = TEXT_INIT(1 << 20)};

    run_record_init(&hearing.record, run_language_find(kind), &listener, &hearing);
    for (size_t i = 0; i < count; i++)
        run_record_line(&hearing.record, lines[i], strlen(lines[i]));
    run_record_tell(&hearing.record, hearing.record.has_failed ? &hearing.record.failure : NULL,
                    false);
    assert_string_equal(text_string(&hearing.told), expected);
    run_record_done(&hearing.record);
    text_done(&hearing.told);
}

static void claude_tells_texts_tools_and_the_result(void **state)
{
    static const char *const lines[] = {
        "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s-1\"}",
        "{\"type\":\"stream_event\",\"event\":{\"type\":\"message_start\"}}",
        "{\"type\":\"stream_event\",\"event\":{\"type\":\"content_block_delta\",\"index\":0,"
        "\"delta\":{\"type\":\"text_delta\",\"text\":\"let me\"}}}",
        "{\"type\":\"assistant\",\"message\":{\"model\":\"opus\",\"content\":[{\"type\":\"text\","
        "\"text\":\"let me\"}]}}",
        "{\"type\":\"assistant\",\"message\":{\"model\":\"opus\",\"content\":[{\"type\":"
        "\"tool_use\",\"id\":\"t\",\"name\":\"Bash\",\"input\":{\"command\":\"ls\"}}]}}",
        "{\"type\":\"assistant\",\"parent_tool_use_id\":\"t\",\"message\":{\"content\":[{\"type\":"
        "\"text\",\"text\":\"of a sub-agent\"}]}}",
        "{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":"
        "\"t\",\"content\":\"a b\"}]}}",
        "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"done\","
        "\"total_cost_usd\":0.5,\"usage\":{\"input_tokens\":1,\"output_tokens\":2}}",
    };

    (void) state;
    hears("claude", lines, ARRAY_COUNT(lines),
          "began s-1\ndelta part-1-0 text let me\n"
          "part {\"type\":\"text\",\"text\":\"let me\",\"id\":\"part-1-0\"}\n"
          "part {\"type\":\"tool\",\"tool\":\"Bash\",\"callID\":\"t\",\"state\":{\"status\":"
          "\"running\",\"input\":{\"command\":\"ls\"}},\"id\":\"t\"}\n"
          "part {\"type\":\"tool\",\"tool\":\"Bash\",\"callID\":\"t\",\"state\":{\"status\":"
          "\"completed\",\"input\":{\"command\":\"ls\"},\"output\":\"a b\"},\"id\":\"t\"}\n"
          "ended well 'done' opus 1+2 500000\n");
}

static void claude_that_fails_says_how(void **state)
{
    static const char *const lines[] = {
        "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,\"result\":\"API Error: "
        "529\"}"};

    (void) state;
    hears("claude", lines, 1, "ended error: API Error: 529 '' - 0+0 -1\n");
}

static void codex_tells_items_and_usage_without_what_was_cached(void **state)
{
    static const char *const lines[] = {
        "{\"type\":\"thread.started\",\"thread_id\":\"t-1\"}",
        "{\"type\":\"item.completed\",\"item\":{\"id\":\"i0\",\"type\":\"error\",\"message\":"
        "\"a warning\"}}",
        "{\"type\":\"item.completed\",\"item\":{\"id\":\"i1\",\"type\":\"agent_message\",\"text\":"
        "\"first\"}}",
        "{\"type\":\"item.started\",\"item\":{\"id\":\"i2\",\"type\":\"command_execution\","
        "\"command\":\"ls\",\"aggregated_output\":\"\",\"status\":\"in_progress\"}}",
        "{\"type\":\"item.completed\",\"item\":{\"id\":\"i2\",\"type\":\"command_execution\","
        "\"command\":\"ls\",\"aggregated_output\":\"a\",\"exit_code\":0,\"status\":\"completed\"}}",
        "{\"type\":\"item.completed\",\"item\":{\"id\":\"i3\",\"type\":\"agent_message\",\"text\":"
        "\"last\"}}",
        "{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":10,\"cached_input_tokens\":4,"
        "\"output_tokens\":5,\"reasoning_output_tokens\":2}}",
    };

    (void) state;
    hears("codex", lines, ARRAY_COUNT(lines),
          "began t-1\npart {\"type\":\"text\",\"text\":\"first\",\"id\":\"i1\"}\n"
          "part {\"type\":\"tool\",\"tool\":\"command_execution\",\"callID\":\"i2\",\"state\":{"
          "\"status\":\"running\",\"input\":{\"command\":\"ls\"}},\"id\":\"i2\"}\n"
          "part {\"type\":\"tool\",\"tool\":\"command_execution\",\"callID\":\"i2\",\"state\":{"
          "\"status\":\"completed\",\"input\":{\"command\":\"ls\"},\"output\":\"a\"},\"id\":"
          "\"i2\"}\npart {\"type\":\"text\",\"text\":\"last\",\"id\":\"i3\"}\n"
          "ended well 'last' - 6+3 -1\n");
}

static void what_comes_again_is_told_once(void **state)
{
    static const char *const lines[] = {"{\"type\":\"text\",\"id\":\"a\",\"text\":\"x\"}",
                                        "{\"type\":\"text\",\"id\":\"a\",\"text\":\"x\"}",
                                        "{\"session\":\"one\"}", "{\"session\":\"two\"}",
                                        "{\"session\":\"../three\"}"};

    (void) state;
    hears("command", lines, ARRAY_COUNT(lines),
          "part {\"type\":\"text\",\"id\":\"a\",\"text\":\"x\"}\nbegan one\nended well 'x' - 0+0 "
          "-1\n");
}

/* --- how they are started -------------------------------------------------------------------- */

static json_t *started(const struct harness_prompt *prompt)
{
    AUTO(text) struct text body = TEXT_INIT(RUN_START_MAX);
    struct error err = ERROR_INIT;

    if (run_start_write(prompt, &body, &err) < 0)
        fail_msg("%s", err.message);
    return json_loads(text_string(&body), 0, NULL);
}

static const char *start_text(const json_t *body, const char *key)
{
    return json_string_value(json_object_get(body, key));
}

#define PROMPT(...)                                                                                \
    &(struct harness_prompt)                                                                       \
    {                                                                                              \
        .turn = {.text = "abcdefghijklmnopqrstuvwxya"},                                            \
        .parts = "[{\"type\":\"text\",\"text\":\"it's $HOME\"}]", __VA_ARGS__                      \
    }

static void prompts_are_variables_and_words_are_quoted(void **state)
{
    AUTO(json)
    json_t *body = started(PROMPT(.place = {.kind = "claude",
                                            .folder = "/w",
                                            .config = "{\"a\":\"it's\"}",
                                            .models = "{\"anthropic\":\"team\"}"},
                                  .agent_session = "s-1"));
    json_t *env = json_object_get(body, "env");

    (void) state;
    assert_string_equal(start_text(env, "BURROW_PROMPT"), "it's $HOME");
    assert_string_equal(start_text(env, "ANTHROPIC_BASE_URL"), "http://127.66.0.1:8790/team");
    assert_string_equal(start_text(env, "ANTHROPIC_API_KEY"), "burrow-team");
    assert_string_equal(start_text(body, "processId"), "burrow-turn-abcdefghijklmnopqrstuvwxya");
    assert_string_equal(start_text(body, "cwd"), "/w");
    assert_non_null(strstr(start_text(body, "command"), "--settings '{\"a\":\"it'\\''s\"}'"));
    assert_non_null(strstr(start_text(body, "command"), "--resume 's-1'"));
}

static void codex_takes_its_config_as_toml(void **state)
{
    AUTO(json)
    json_t *body = started(PROMPT(.place = {.kind = "codex",
                                            .config = "{\"a\":{\"b\":[1,true]}}",
                                            .models = "{\"openai\":true}"},
                                  .agent_session = "t-1", .model = "gpt"));
    const char *command = start_text(body, "command");

    (void) state;
    assert_non_null(strstr(command, "exec codex exec resume --json"));
    assert_non_null(strstr(command, "-c 'a={\"b\"=[1,true]}'"));
    assert_non_null(strstr(command, "\"base_url\"=\"http://127.66.0.1:8790/openai/v1\""));
    assert_non_null(strstr(command, "-m 'gpt' 't-1' \"$BURROW_PROMPT\" </dev/null"));
}

static void what_a_program_cannot_do_is_refused(void **state)
{
    AUTO(text) struct text body = TEXT_INIT(RUN_START_MAX);
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(
        run_start_write(PROMPT(.place = {.kind = "codex", .permission = "ask"}), &body, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    assert_int_equal(run_start_write(PROMPT(.place = {.kind = "what"}), &body, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    assert_int_equal(
        run_start_write(&(struct harness_prompt){.place = {.kind = "claude"},
                                                 .parts = "[{\"type\":\"file\",\"url\":\"x\"}]"},
                        &body, &err),
        -1);
    assert_int_equal(err.code, ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claude_tells_texts_tools_and_the_result),
        cmocka_unit_test(claude_that_fails_says_how),
        cmocka_unit_test(codex_tells_items_and_usage_without_what_was_cached),
        cmocka_unit_test(what_comes_again_is_told_once),
        cmocka_unit_test(prompts_are_variables_and_words_are_quoted),
        cmocka_unit_test(codex_takes_its_config_as_toml),
        cmocka_unit_test(what_a_program_cannot_do_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
