#include "harness/run_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/table.h"
#include "harness/opencode_event.h"
#include "harness/part_json.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define ANSWER_MAX ((size_t) 1024 * 1024)
#define RESULT_MAX ((size_t) 4 * 1024 * 1024)
#define LAST_MAX   200  /* parts of the last message that are kept: its end */
#define CALLS_MAX  1000 /* tools under way */
#define COUNT_MAX  (INT64_C(1) << 48)

static const struct run_language *const languages[] = {&claude_language, &codex_language,
                                                       &command_language};

const struct run_language *run_language_find(const char *kind)
{
    for (size_t i = 0; kind && i < ARRAY_COUNT(languages); i++) {
        if (strcmp(languages[i]->kind, kind) == 0)
            return languages[i];
    }
    return NULL;
}

void run_record_init(struct run_record *record, const struct run_language *language,
                     const struct harness_listener *listener, void *context)
{
    *record = (struct run_record){.language = language,
                                  .listener = listener,
                                  .context = context,
                                  .told = json_object(),
                                  .parts = json_array(),
                                  .calls = json_object(),
                                  .answer = TEXT_INIT(ANSWER_MAX)};
}

void run_record_done(struct run_record *record)
{
    json_decref(record->told);
    json_decref(record->parts);
    json_decref(record->calls);
    text_done(&record->answer);
}

/* --- for languages --------------------------------------------------------------------------- */

uint64_t run_record_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    json_int_t number = json_is_integer(value) ? json_integer_value(value) : 0;

    return number > 0 && number < COUNT_MAX ? (uint64_t) number : 0;
}

/* Its name goes into a command line of the next turn. */
void run_record_session(struct run_record *record, const char *session)
{
    if (!session || record->is_over || record->session[0] || !opencode_id_is_plain(session))
        return;
    (void) snprintf(record->session, sizeof(record->session), "%s", session);
    record->listener->began(record->context, record->session);
}

void run_record_delta(struct run_record *record, const char *part_id, const json_t *text)
{
    if (!record->is_over && !record->is_repeated && json_string_length(text))
        record->listener->delta(record->context, part_id, "text", json_string_value(text),
                                json_string_length(text));
}

/* A message ends with the call of a tool: what is said behind it is another. */
static void run_record_keep(struct run_record *record, const char *part_id, json_t *part)
{
    const char *type = opencode_id(part, "type");
    size_t count = json_array_size(record->parts);
    const char *last = opencode_id(json_array_get(record->parts, count ? count - 1 : 0), "type");
    json_t *kept;
    size_t index;

    json_array_foreach (record->parts, index, kept) {
        const char *id = opencode_id(kept, "id");

        if (id && strcmp(id, part_id) == 0) {
            (void) json_array_set(record->parts, index, part);
            return;
        }
    }
    if (type && last && strcmp(type, "tool") != 0 && strcmp(last, "tool") == 0)
        (void) json_array_clear(record->parts);
    if (json_array_size(record->parts) >= LAST_MAX)
        (void) json_array_remove(record->parts, 0);
    (void) json_array_append(record->parts, part);
}

void run_record_part(struct run_record *record, const char *part_id, json_t *part)
{
    AUTO(text) struct text written = TEXT_INIT(PART_JSON_MAX);
    json_int_t hash;

    if (record->is_over)
        return;
    (void) json_object_set_new(part, "id", json_string(part_id));
    run_record_keep(record, part_id, part);
    part_json_write(part, &written);
    hash = (json_int_t) (table_hash(1, text_string(&written), written.length) >> 2);
    if (json_integer_value(json_object_get(record->told, part_id)) == hash ||
        json_object_size(record->told) >= RUN_PARTS_MAX)
        return;
    (void) json_object_set_new(record->told, part_id, json_integer(hash));
    record->listener->part(record->context, part_id, text_string(&written));
}

void run_record_text(struct run_record *record, const char *part_id, const char *type,
                     const json_t *text)
{
    AUTO(json) json_t *part = NULL;

    if (!json_string_length(text))
        return;
    part = json_pack("{s:s,s:O}", "type", type, "text", text);
    run_record_part(record, part_id, part);
}

void run_record_call(struct run_record *record, const char *call, const char *tool, json_t *input)
{
    AUTO(json) json_t *part = NULL;

    if (!input || json_object_size(record->calls) >= CALLS_MAX)
        return;
    part = json_pack("{s:s,s:s,s:s,s:{s:s,s:O}}", "type", "tool", "tool", tool, "callID", call,
                     "state", "status", "running", "input", input);
    if (!part)
        return;
    (void) json_object_set(record->calls, call, part);
    run_record_part(record, call, part);
}

void run_record_called(struct run_record *record, const char *call, const json_t *output,
                       bool is_error)
{
    json_t *begun = json_object_get(record->calls, call);
    AUTO(json) json_t *part = begun ? json_deep_copy(begun) : NULL;
    json_t *state = json_object_get(part, "state");

    if (!part)
        return;
    (void) json_object_set_new(state, "status", json_string(is_error ? "error" : "completed"));
    if (output)
        (void) json_object_set(state, is_error ? "error" : "output", (json_t *) output);
    (void) json_object_del(record->calls, call);
    run_record_part(record, call, part);
}

void run_record_fail(struct run_record *record, const char *name, const json_t *message)
{
    record->has_failed = true;
    (void) error_set(&record->failure, ERR_UPSTREAM, 0, "%.64s: %.300s", name,
                     json_string_length(message) ? json_string_value(message) : "no message");
}

/* --- lines ----------------------------------------------------------------------------------- */

static void run_record_say(struct run_record *record, const char *line, size_t length)
{
    char id[32];
    json_t *text = json_stringn(line, length);

    (void) snprintf(id, sizeof(id), "line-%u", ++record->blocks);
    run_record_text(record, id, "text", text); /* NULL when it is no UTF-8: then it is not said */
    json_decref(text);
}

void run_record_line(struct run_record *record, const char *line, size_t length)
{
    static const struct json_limits limits = {
        .size = RUN_LINE_MAX, .depth = 48, .values = JSON_VALUES_MAX, .nul = true};
    AUTO(json) json_t *read = NULL;

    if (record->is_over || !length)
        return;
    if (*line == '{')
        read = json_read(line, length, &limits, NULL);
    if (json_is_object(read))
        record->language->line(record, read);
    else if (record->language->takes_text)
        run_record_say(record, line, length);
}

/* --- the result ------------------------------------------------------------------------------ */

static void run_record_write_answer(struct run_record *record, struct text *answer)
{
    json_t *part;
    size_t index;

    if (record->has_answer) {
        text_append_bytes(answer, text_string(&record->answer), record->answer.length);
        return;
    }
    json_array_foreach (record->parts, index, part) {
        const char *type = opencode_id(part, "type");
        const json_t *text = json_object_get(part, "text");

        if (!type || strcmp(type, "text") != 0)
            continue;
        if (answer->length && record->language->takes_text)
            text_append(answer, "\n");
        text_append_bytes(answer, json_string_value(text) ? json_string_value(text) : "",
                          json_string_length(text));
    }
}

static void run_record_write_parts(const json_t *parts, struct text *out)
{
    AUTO(text) struct text one = TEXT_INIT(PART_JSON_MAX);
    const char *between = "[";
    json_t *part;
    size_t index;

    json_array_foreach (parts, index, part) {
        part_json_write(part, &one);
        if (out->length + one.length + 4 > out->maximum)
            break;
        text_append(out, between);
        text_append_bytes(out, text_string(&one), one.length);
        between = ",";
    }
    text_append(out, out->length ? "]" : "[]");
}

void run_record_tell(struct run_record *record, const struct error *failure, bool was_cancelled)
{
    AUTO(text) struct text answer = TEXT_INIT(RESULT_MAX);
    AUTO(text) struct text parts = TEXT_INIT(RESULT_MAX);
    struct harness_result result = {.info = "{}",
                                    .model = record->model[0] ? record->model : NULL,
                                    .usage = record->usage,
                                    .was_cancelled = was_cancelled};

    if (record->is_over)
        return;
    record->is_over = true;
    run_record_write_answer(record, &answer);
    run_record_write_parts(record->parts, &parts);
    result.answer = text_string(&answer);
    result.parts = text_string(&parts);
    record->listener->ended(record->context, failure, &result);
}
