/* The logs of a process as one JSON object, written as fast as the client takes it: stdout first,
 * then stderr, each up to where the log ended when it was asked for. */
#include "agent/agent.h"
#include "agent/output_text.h"
#include "agent/process/process_answer.h"
#include "json/json_write.h"

#define HEAD_MAX (PROCESS_ID_MAX * 6 + 256)

static const char *const separators[EXEC_OUTPUTS] = {",\"stdout\":\"", "\",\"stderr\":\""};

/* In the call's pool. */
struct process_logs_reading {
    struct process_watcher watcher; /* keeps the process while a slow client reads */
    struct call *call;
    struct process_log_cursor cursors[EXEC_OUTPUTS];
    struct output_text encoder;
    uint64_t end;     /* of the log */
    uint64_t dropped; /* bytes, of both outputs */
    enum exec_output which;
};

static void ignore(struct process_watcher *watcher, enum process_event event)
{
    (void) watcher; /* what comes now is not asked for */
    (void) event;
}

static void reading_done(struct process_logs_reading *reading)
{
    for (size_t i = 0; i < EXEC_OUTPUTS; i++)
        process_log_close(&reading->cursors[i]);
    process_unwatch(&reading->watcher);
}

static void write_text(struct process_logs_reading *reading, const struct text *text)
{
    call_write(reading->call, text_string(text), text->length);
}

/* An object without its closing brace. */
static void write_head(struct process_logs_reading *reading)
{
    AUTO(text) struct text head = TEXT_INIT(HEAD_MAX);
    struct json_writer json;

    json_document_begin(&json, &head);
    json_add_boolean(&json, "success", true);
    json_add_text(&json, "processId", reading->watcher.process->id);
    (void) json_document_end(&json); /* there is room for an id */
    head.length--;
    text_append(&head, separators[EXEC_STDOUT]);
    write_text(reading, &head);
}

/* The rest of it, without the opening brace. */
static void write_tail(struct process_logs_reading *reading)
{
    AUTO(text) struct text tail = TEXT_INIT(HEAD_MAX);
    struct json_writer json;

    json_document_begin(&json, &tail);
    if (reading->dropped) {
        json_add_boolean(&json, "truncated", true);
        json_add_integer(&json, "droppedBytes", (int64_t) reading->dropped);
    }
    call_add_timestamp(reading->call, &json);
    (void) json_document_end(&json); /* all of it is short */
    call_write(reading->call, "\",", 2);
    call_write(reading->call, tail.data + 1, tail.length - 1);
}

/* Returns whether something was written, or there may be more to write. */
static bool write_some(struct process_logs_reading *reading)
{
    struct process_log_cursor *cursor = &reading->cursors[reading->which];
    struct text *scratch = &reading->call->agent->scratch;
    enum exec_output which;
    const char *bytes;
    size_t length;

    if (cursor->position >= reading->end || !process_log_next(cursor, &which, &bytes, &length))
        return false;
    if (which != reading->which)
        return true;
    text_clear(scratch);
    output_text_feed(&reading->encoder, scratch, bytes, length);
    write_text(reading, scratch);
    return true;
}

static void finish_output(struct process_logs_reading *reading)
{
    struct text *scratch = &reading->call->agent->scratch;

    text_clear(scratch);
    output_text_flush(&reading->encoder, scratch);
    write_text(reading, scratch);
    reading->dropped += process_log_take_dropped(&reading->cursors[reading->which], reading->which);
}

static void process_logs_pump(struct process_logs_reading *reading)
{
    while (!call_is_full(reading->call)) {
        if (write_some(reading))
            continue;
        finish_output(reading);
        if (reading->which == EXEC_STDERR) {
            write_tail(reading);
            reading_done(reading);
            call_end(reading->call);
            return;
        }
        reading->which = EXEC_STDERR;
        call_write(reading->call, separators[EXEC_STDERR], strlen(separators[EXEC_STDERR]));
    }
}

static void process_logs_client_took(struct call *call)
{
    process_logs_pump(call->data);
}

static void process_logs_client_left(struct call *call)
{
    reading_done(call->data);
}

static void process_logs_answer(struct call *call, struct process *process)
{
    struct process_logs_reading *reading = pool_alloc(call->pool, sizeof(*reading));

    *reading = (struct process_logs_reading){.call = call, .end = process->log.total};
    reading->watcher.on_event = ignore;
    process_watch(process, &reading->watcher);
    for (size_t i = 0; i < EXEC_OUTPUTS; i++)
        process_log_open(&reading->cursors[i], &process->log);
    call->data = reading;
    call->on_gone = process_logs_client_left;
    call->on_drain = process_logs_client_took;
    call_begin_json(call);
    write_head(reading);
    process_logs_pump(reading);
}

void process_logs(struct call *call)
{
    struct process *process = process_of_call(call);

    if (process)
        process_answer(call, process, process_logs_answer);
}
