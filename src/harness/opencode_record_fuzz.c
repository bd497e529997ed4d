/* What an OpenCode server says of a turn: lines of events, histories (which begin with '[') and lists of
 * what waits (behind '?' and '!'). Whatever it is, only our session's is told, bounded, in order, and the
 * end once. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/part_json.h"
#include "harness/turn_record.h"
#include "json/json_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct record_told {
    size_t parts, requests;
    bool has_ended;
};

static void record_must(bool holds)
{
    if (!holds)
        abort();
}

static void told_began(void *context, const char *agent_session)
{
    (void) context;
    (void) agent_session;
    abort(); /* that is the turn's to tell */
}

static void told_delta(void *context, const char *part_id, const char *field, const char *text,
                       size_t length)
{
    struct record_told *told = context;

    record_must(!told->has_ended && *part_id && *field && text && length);
}

static void told_part(void *context, const char *part_id, const char *json)
{
    struct record_told *told = context;
    AUTO(json) json_t *part = json_loads(json, JSON_ALLOW_NUL, NULL);

    record_must(!told->has_ended && *part_id && strlen(json) <= PART_JSON_MAX);
    record_must(json_is_object(part));
    told->parts++;
}

static void told_request(void *context, const char *request, const char *json)
{
    struct record_told *told = context;

    record_must(!told->has_ended && opencode_id_is_plain(request) && *json == '{');
    record_must(++told->requests <= 4096);
}

static void told_answered(void *context, const char *request, const char *reply)
{
    struct record_told *told = context;

    record_must(!told->has_ended && told->requests && *request && *reply);
}

static void told_ended(void *context, const struct error *failure,
                       const struct harness_result *result)
{
    struct record_told *told = context;
    AUTO(json) json_t *parts = json_loads(result->parts, JSON_ALLOW_NUL, NULL);
    AUTO(json) json_t *info = json_loads(result->info, JSON_ALLOW_NUL, NULL);

    (void) failure;
    record_must(!told->has_ended && json_is_array(parts) && json_is_object(info));
    told->has_ended = true;
}

static const struct harness_listener listener = {
    .began = told_began,
    .delta = told_delta,
    .part = told_part,
    .permission = told_request,
    .question = told_request,
    .answered = told_answered,
    .ended = told_ended,
};

static void record_feed(struct turn_record *record, const char *line, size_t length)
{
    AUTO(opencode_event) struct opencode_event event = {.kind = OPENCODE_OTHER};
    struct error err = ERROR_INIT;

    if (!length)
        return;
    if (*line == '[')
        (void) turn_record_history(record, line, length, &err);
    else if (*line == '?' || *line == '!')
        turn_record_waiting(record, line + 1, length - 1, *line == '?');
    else if (opencode_event_read(line, length, &event, &err) == 0)
        (void) turn_record_event(record, &event);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct id turn = {.text = "abcdefghijklmnopqrstuvwxya"};
    AUTO(free) char *copy = malloc(size + 1);
    struct turn_record record;
    struct record_told told = {0};
    const char *at = copy;

    memcpy(copy, data, size);
    copy[size] = '\0';
    turn_record_init(&record, &turn, &listener, &told);
    turn_record_set_session(&record, "ses_1");
    (void) snprintf(record.user, sizeof(record.user), "msg_1abcdefghijklmn");
    while (at < copy + size) {
        size_t length = strcspn(at, "\n");

        record_feed(&record, at, length);
        at += length + 1;
    }
    turn_record_tell(&record, NULL, false);
    turn_record_tell(&record, NULL, false);
    record_must(told.has_ended);
    turn_record_done(&record);
    return 0;
}
