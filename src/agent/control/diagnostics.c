#include "agent/control/diagnostics.h"

#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/call.h"
#include "base/memory.h"
#include "json/json_write.h"

/* Lines as they are; as strings in JSON they have at most twice as much. */
#define KEEP_MAX    ((size_t) 7 * 1024)
#define REASON_SIZE 64

struct diagnostics {
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
    struct diagnostics *diagnostics = data;

    if (strcmp(message, "request") == 0) /* these would push out everything else */
        return;
    if (length && line[length - 1] == '\n')
        length--;
    if (length > KEEP_MAX / 2)
        length = KEEP_MAX / 2;
    forget_oldest(&diagnostics->lines, length + 1);
    text_append_bytes(&diagnostics->lines, line, length);
    text_append_char(&diagnostics->lines, '\n');
}

void diagnostics_begin(struct agent *agent)
{
    struct diagnostics *diagnostics = mem_alloc(sizeof(*diagnostics));

    diagnostics->lines = (struct text) TEXT_INIT(KEEP_MAX);
    agent->diagnostics = diagnostics;
    if (agent->log)
        log_listen(agent->log, line_written, diagnostics);
}

void diagnostics_entrypoint(struct agent *agent, int status, const char *reason)
{
    struct diagnostics *diagnostics = agent->diagnostics;

    diagnostics->ended = true;
    diagnostics->status = status;
    (void) snprintf(diagnostics->reason, sizeof(diagnostics->reason), "%s", reason ? reason : "");
}

static void put_entrypoint(const struct agent *agent, struct json_writer *json)
{
    const struct diagnostics *diagnostics = agent->diagnostics;

    json_begin_object_at(json, "entrypoint");
    json_add_text(json, "state",
                  diagnostics->ended  ? "ended"
                  : agent->entrypoint ? "running"
                                      : "none");
    if (diagnostics->ended) {
        json_add_integer(json, "status", diagnostics->status);
        json_add_text(json, "reason", diagnostics->reason[0] ? diagnostics->reason : NULL);
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

static void diagnostics_run(struct call *call)
{
    AUTO(text) struct text body = TEXT_INIT(DIAGNOSTICS_MAX);
    struct json_writer json;

    call_begin_success(&json, &body);
    put_entrypoint(call->agent, &json);
    put_lines(&call->agent->diagnostics->lines, &json);
    call_finish_success(call, &json, &body);
}

static const struct operation rows[] = {
    {.method = "GET",
     .path = "/burrow/last-words",
     .run = diagnostics_run,
     .name = "burrow.lastWords",
     .summary = "The latest lines of the log, and how the entrypoint ended"},
};

const struct operation_table diagnostics_operations = {rows, ARRAY_COUNT(rows)};
