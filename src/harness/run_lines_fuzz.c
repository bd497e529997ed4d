/* Lines of a program that is an agent; the first byte of the input chooses its language. What is told is
 * bounded and JSON, and the end comes once. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "harness/opencode_event.h"
#include "harness/part_json.h"
#include "harness/run_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct lines_heard {
    size_t parts;
    bool has_begun, has_ended;
};

static void lines_must(bool holds)
{
    if (!holds)
        abort();
}

static void heard_began(void *context, const char *agent_session)
{
    struct lines_heard *heard = context;

    lines_must(!heard->has_begun && opencode_id_is_plain(agent_session));
    heard->has_begun = true;
}

static void heard_delta(void *context, const char *part_id, const char *field, const char *text,
                        size_t length)
{
    lines_must(!((struct lines_heard *) context)->has_ended && *part_id && *field && text &&
               length);
}

static void heard_part(void *context, const char *part_id, const char *json)
{
    struct lines_heard *heard = context;
    json_t *part = json_loads(json, JSON_ALLOW_NUL, NULL);

    lines_must(!heard->has_ended && *part_id && strlen(json) <= PART_JSON_MAX);
    lines_must(json_is_object(part) && ++heard->parts <= 1000000);
    json_decref(part);
}

static void heard_ended(void *context, const struct error *failure,
                        const struct harness_result *result)
{
    struct lines_heard *heard = context;
    json_t *parts = json_loads(result->parts, JSON_ALLOW_NUL, NULL);

    (void) failure;
    lines_must(!heard->has_ended && json_is_array(parts));
    json_decref(parts);
    heard->has_ended = true;
}

static const struct harness_listener listener = {
    .began = heard_began, .delta = heard_delta, .part = heard_part, .ended = heard_ended};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const kinds[] = {"claude", "codex", "command"};
    char *copy = malloc(size + 1);
    struct lines_heard heard = {0};
    struct run_record record;

    memcpy(copy, data, size);
    copy[size] = '\0';
    run_record_init(&record, run_language_find(kinds[(uint8_t) copy[0] % 3]), &listener, &heard);
    for (size_t at = size ? 1 : 0; at < size;) {
        size_t length = strcspn(copy + at, "\n");

        run_record_line(&record, copy + at, length);
        at += length + 1;
    }
    run_record_tell(&record, NULL, false);
    run_record_tell(&record, NULL, false);
    lines_must(heard.has_ended);
    run_record_done(&record);
    free(copy);
    return 0;
}
