#include "agent/control/last_words.h"

#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/call.h"
#include "base/memory.h"
#include "json/json_write.h"

/* Lines as they are; as strings in JSON they have at most twice as much. */
#define KEEP_MAX    ((size_t) 7 * 1024)
#define REASON_SIZE 64

struct last_words {
    struct text lines; /* each with its '\n' */
    int status;        /* of the entrypoint */
    bool ended;
    char reason[REASON_SIZE]; /* empty: none */
};

static void forget_oldest(struct text *lines, size_t room)
{
    while (lines->length && lines->length + room > KEEP_MAX) {
        const char *end = memchr(lines->data, '\n', lines->length);

        text_consume(lines, (size_t) (end - lines->data) + 1);
    }
}

static void line_written(void *data, const char *message, const char *line, size_t length)
{
    struct last_words *words = data;

    if (strcmp(message, "request") == 0) /* these would push out everything else */
        return;
    if (length && line[length - 1] == '\n')
        length--;
    if (length > KEEP_MAX / 2)
        length = KEEP_MAX / 2;
    forget_oldest(&words->lines, length + 1);
    text_append_bytes(&words->lines, line, length);
    text_append_char(&words->lines, '\n');
}

void last_words_begin(struct agent *agent)
{
    struct last_words *words = mem_alloc(sizeof(*words));

    words->lines = (struct text) TEXT_INIT(KEEP_MAX);
    agent->last_words = words;
    if (agent->log)
        log_listen(agent->log, line_written, words);
}

void last_words_entrypoint(struct agent *agent, int status, const char *reason)
{
    struct last_words *words = agent->last_words;

    words->ended = true;
    words->status = status;
    (void) snprintf(words->reason, sizeof(words->reason), "%s", reason ? reason : "");
}

static void put_entrypoint(const struct agent *agent, struct json_writer *json)
{
    const struct last_words *words = agent->last_words;

    json_begin_object_at(json, "entrypoint");
    json_add_text(json, "state", words->ended ? "ended" : agent->entrypoint ? "running" : "none");
    if (words->ended) {
        json_add_integer(json, "status", words->status);
        json_add_text(json, "reason", words->reason[0] ? words->reason : NULL);
    }
    json_end_object(json);
}

static void put_lines(const struct text *lines, struct json_writer *json)
{
    const char *at = text_string(lines), *end;

    json_begin_array_at(json, "log");
    while ((end = strchr(at, '\n'))) {
        json_put_bytes(json, at, (size_t) (end - at));
        at = end + 1;
    }
    json_end_array(json);
}

static void last_words_run(struct call *call)
{
    AUTO(text) struct text body = TEXT_INIT(LAST_WORDS_MAX);
    struct json_writer json;

    call_begin_success(&json, &body);
    put_entrypoint(call->agent, &json);
    put_lines(&call->agent->last_words->lines, &json);
    call_finish_success(call, &json, &body);
}

static const struct operation rows[] = {
    {.method = "GET",
     .path = "/burrow/last-words",
     .run = last_words_run,
     .name = "burrow.lastWords",
     .summary = "The latest lines of the log, and how the entrypoint ended"},
};

const struct operation_table last_words_operations = {rows, ARRAY_COUNT(rows)};
