/* The languages of run_record.h. */
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "harness/opencode_event.h"
#include "harness/run_record.h"

#define PART_ID_SIZE 64

static bool run_is(const json_t *object, const char *key, const char *value)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text && strcmp(text, value) == 0;
}

static void run_read_cost(struct harness_usage *usage, const json_t *cost)
{
    double dollars = json_number_value(cost);

    if (json_is_number(cost) && dollars >= 0 && dollars < 1e6) {
        usage->cost_micros = (uint64_t) (dollars * 1e6 + 0.5);
        usage->is_cost_known = true;
    }
}

/* --- Claude Code ----------------------------------------------------------------------------- */

/* Blocks are told by their place in their message: pieces and the whole alike. */
static void claude_part_id(const struct run_record *record, unsigned int block,
                           char ret_id[static PART_ID_SIZE])
{
    (void) snprintf(ret_id, PART_ID_SIZE, "part-%u-%u", record->messages, block);
}

static void claude_event(struct run_record *record, const json_t *event)
{
    const json_t *delta = json_object_get(event, "delta");
    char id[PART_ID_SIZE];

    if (run_is(event, "type", "message_start")) {
        record->messages++;
        record->blocks = 0;
    } else if (run_is(event, "type", "content_block_delta")) {
        claude_part_id(record, (unsigned int) run_record_number(event, "index"), id);
        run_record_delta(record, id, json_object_get(delta, "text"));
        run_record_delta(record, id, json_object_get(delta, "thinking"));
    }
}

static void claude_block(struct run_record *record, const json_t *block)
{
    const char *call = opencode_id(block, "id"), *tool = opencode_id(block, "name");
    char id[PART_ID_SIZE];

    claude_part_id(record, record->blocks++, id);
    if (run_is(block, "type", "text"))
        run_record_text(record, id, "text", json_object_get(block, "text"));
    else if (run_is(block, "type", "thinking"))
        run_record_text(record, id, "reasoning", json_object_get(block, "thinking"));
    else if (run_is(block, "type", "tool_use") && call && tool)
        run_record_call(record, call, tool, json_object_get(block, "input"));
    else if (run_is(block, "type", "tool_result") && opencode_id(block, "tool_use_id"))
        run_record_called(record, opencode_id(block, "tool_use_id"),
                          json_object_get(block, "content"),
                          json_is_true(json_object_get(block, "is_error")));
}

static void claude_result(struct run_record *record, const json_t *line)
{
    const json_t *result = json_object_get(line, "result");
    const json_t *usage = json_object_get(line, "usage");

    record->usage = (struct harness_usage){
        .input = run_record_number(usage, "input_tokens"),
        .output = run_record_number(usage, "output_tokens"),
        .cache_read = run_record_number(usage, "cache_read_input_tokens"),
        .cache_write = run_record_number(usage, "cache_creation_input_tokens"),
    };
    run_read_cost(&record->usage, json_object_get(line, "total_cost_usd"));
    if (json_is_true(json_object_get(line, "is_error"))) {
        const char *kind = opencode_id(line, "subtype");

        run_record_fail(record, kind && strcmp(kind, "success") != 0 ? kind : "error", result);
    } else if (json_is_string(result)) {
        text_clear(&record->answer);
        text_append_bytes(&record->answer, json_string_value(result), json_string_length(result));
        record->has_answer = true;
    }
}

static void claude_line(struct run_record *record, const json_t *line)
{
    const json_t *message = json_object_get(line, "message");
    const char *model = opencode_id(message, "model");
    json_t *block;
    size_t index;

    run_record_session(record, opencode_id(line, "session_id"));
    if (opencode_id(line, "parent_tool_use_id"))
        return; /* of a sub-agent, whose call is told */
    if (run_is(line, "type", "stream_event"))
        claude_event(record, json_object_get(line, "event"));
    else if (run_is(line, "type", "result"))
        claude_result(record, line);
    if (run_is(line, "type", "assistant") && model)
        (void) snprintf(record->model, sizeof(record->model), "%s", model);
    if (!run_is(line, "type", "assistant") && !run_is(line, "type", "user"))
        return;
    json_array_foreach (json_object_get(message, "content"), index, block) {
        claude_block(record, block);
    }
}

const struct run_language claude_language = {.kind = "claude", .line = claude_line};

/* --- Codex ----------------------------------------------------------------------------------- */

/* What else an item has is the input of a tool with the name of the item's type. */
static void codex_tool(struct run_record *record, const char *id, const char *type,
                       const json_t *item, bool is_completed)
{
    static const char *const outputs[] = {"aggregated_output", "result", "changes", "error"};
    const json_t *output = NULL;
    AUTO(json) json_t *input = json_deep_copy(item);

    if (!json_object_get(record->calls, id)) {
        static const char *const left_out[] = {"id",        "type",  "status", "aggregated_output",
                                               "exit_code", "result"};

        for (size_t i = 0; i < ARRAY_COUNT(left_out); i++)
            (void) json_object_del(input, left_out[i]);
        run_record_call(record, id, type, input);
    }
    for (size_t i = 0; i < ARRAY_COUNT(outputs) && !output; i++)
        output = json_object_get(item, outputs[i]);
    if (is_completed)
        run_record_called(record, id, output, run_is(item, "status", "failed"));
}

static void codex_item(struct run_record *record, const json_t *item, bool is_completed)
{
    const char *id = opencode_id(item, "id"), *type = opencode_id(item, "type");
    const json_t *text = json_object_get(item, "text");

    if (!id || !type)
        return;
    if (strcmp(type, "agent_message") == 0)
        run_record_text(record, id, "text", text);
    else if (strcmp(type, "reasoning") == 0)
        run_record_text(record, id, "reasoning", text);
    else if (strcmp(type, "error") != 0) /* one of those is a warning */
        codex_tool(record, id, type, item, is_completed);
}

/* Of a conversation that goes on the sums are over all of it, so they say nothing of this turn. */
static void codex_usage(struct run_record *record, const json_t *usage)
{
    uint64_t cached = run_record_number(usage, "cached_input_tokens");
    uint64_t reasoning = run_record_number(usage, "reasoning_output_tokens");
    uint64_t input = run_record_number(usage, "input_tokens");
    uint64_t output = run_record_number(usage, "output_tokens");

    if (record->is_resumed)
        return;
    record->usage = (struct harness_usage){
        .input = input > cached ? input - cached : 0,
        .output = output > reasoning ? output - reasoning : 0,
        .reasoning = reasoning,
        .cache_read = cached,
        .cache_write = run_record_number(usage, "cache_write_input_tokens"),
    };
}

static void codex_line(struct run_record *record, const json_t *line)
{
    if (run_is(line, "type", "thread.started"))
        run_record_session(record, opencode_id(line, "thread_id"));
    else if (run_is(line, "type", "item.started") || run_is(line, "type", "item.updated"))
        codex_item(record, json_object_get(line, "item"), false);
    else if (run_is(line, "type", "item.completed"))
        codex_item(record, json_object_get(line, "item"), true);
    else if (run_is(line, "type", "turn.completed"))
        codex_usage(record, json_object_get(line, "usage"));
    else if (run_is(line, "type", "turn.failed"))
        run_record_fail(record, "error",
                        json_object_get(json_object_get(line, "error"), "message"));
    else if (run_is(line, "type", "error") && !record->has_failed)
        run_record_fail(record, "error", json_object_get(line, "message"));
    if (run_is(line, "type", "turn.completed"))
        record->has_failed = false; /* errors before it were tried again */
}

const struct run_language codex_language = {.kind = "codex", .line = codex_line};

/* --- any program ----------------------------------------------------------------------------- */

static void command_part(struct run_record *record, const json_t *line)
{
    const char *id = opencode_id(line, "id");
    AUTO(json) json_t *part = json_deep_copy(line);
    char made[PART_ID_SIZE];

    (void) snprintf(made, sizeof(made), "line-%u", ++record->blocks);
    run_record_part(record, id ? id : made, part);
}

static void command_usage(struct run_record *record, const json_t *line)
{
    const json_t *usage = json_object_get(line, "usage");

    record->usage = (struct harness_usage){
        .input = run_record_number(usage, "input"),
        .output = run_record_number(usage, "output"),
        .reasoning = run_record_number(usage, "reasoning"),
        .cache_read = run_record_number(usage, "cacheRead"),
        .cache_write = run_record_number(usage, "cacheWrite"),
    };
    run_read_cost(&record->usage, json_object_get(line, "cost"));
}

static void command_line(struct run_record *record, const json_t *line)
{
    const char *part = opencode_id(line, "part");

    run_record_session(record, opencode_id(line, "session"));
    if (json_object_get(line, "usage"))
        command_usage(record, line);
    if (json_object_get(line, "delta"))
        run_record_delta(record, part ? part : "text", json_object_get(line, "delta"));
    else if (run_is(line, "type", "error"))
        run_record_fail(record, "error", json_object_get(line, "message"));
    else if (opencode_id(line, "type"))
        command_part(record, line);
}

const struct run_language command_language = {
    .kind = "command", .line = command_line, .takes_text = true};
