/* The answer as events, each flushed the moment it is written. */
#include "agent/command/execute_form.h"
#include "json/json_write.h"

#define EVENT_MAX ((size_t) 4096)

static void execute_events_begin_event(struct json_writer *json, struct text *event,
                                       const char *type)
{
    json_document_begin(json, event);
    json_add_text(json, "type", type);
}

static void end_event(struct execute_call *call, struct json_writer *json, struct text *event,
                      const char *type)
{
    call_add_timestamp(call->call, json);
    (void) json_document_end(json); /* every event has room enough */
    call_event(call->call, type, text_string(event), event->length);
}

static void events_start(struct execute_call *call)
{
    AUTO(text) struct text event = TEXT_INIT(EVENT_MAX + EXECUTE_COMMAND_MAX * 6);
    struct json_writer json;

    call_begin_events(call->call);
    execute_events_begin_event(&json, &event, "start");
    if (!call->ask.plain) {
        json_add_text(&json, "command", call->ask.command);
        json_add_text(&json, "sessionId", call->call->session);
    }
    json_add_integer(&json, "pid",
                     call->in_session ? session_command_pid(&call->command) : exec_pid(call->exec));
    end_event(call, &json, &event, "start");
}

static const char *const output_names[EXEC_OUTPUTS] = {"stdout", "stderr"};

/* Written by hand and at once: this is where a gigabyte goes through. */
static void send_output(struct execute_call *call, enum exec_output which, const char *bytes,
                        size_t length, bool last)
{
    struct output_text *encoder = &call->encoder[which];
    struct text *event = &call->agent->scratch;
    char time[CLOCK_TEXT_SIZE];
    size_t before;

    text_clear(event);
    text_append(event, which == EXEC_STDOUT ? "{\"type\":\"stdout\",\"data\":\""
                                            : "{\"type\":\"stderr\",\"data\":\"");
    before = event->length;
    output_text_feed(encoder, event, bytes, length);
    if (last || encoder->base64) /* every event is base64 by itself */
        output_text_flush(encoder, event);
    if (event->length == before)
        return; /* nothing but the beginning of a character */
    clock_format(clock_wall_ms(call->agent->clock), time);
    text_append(event, "\",\"timestamp\":\"");
    text_append(event, time);
    text_append(event, "\"}");
    call_event(call->call, output_names[which], text_string(event), event->length);
}

static void send_stdout_line(void *context, const char *bytes, size_t length)
{
    send_output(context, EXEC_STDOUT, bytes, length, false);
}

static void send_stderr_line(void *context, const char *bytes, size_t length)
{
    send_output(context, EXEC_STDERR, bytes, length, false);
}

static session_output_sink *const line_sinks[EXEC_OUTPUTS] = {send_stdout_line, send_stderr_line};

static void events_output(struct execute_call *call, enum exec_output which, const char *bytes,
                          size_t length)
{
    if (execute_is_text_of_session(call))
        session_lines_feed(&call->lines[which], bytes, length, line_sinks[which], call);
    else
        send_output(call, which, bytes, length, false);
}

static void send_rest(struct execute_call *call, const char *note)
{
    for (size_t i = 0; i < EXEC_OUTPUTS; i++)
        session_lines_end(&call->lines[i], line_sinks[i], call);
    send_output(call, EXEC_STDOUT, "", 0, true);
    send_output(call, EXEC_STDERR, note, strlen(note), true);
}

static void send_complete(struct execute_call *call, const struct exec_result *result)
{
    AUTO(text) struct text event = TEXT_INIT(EVENT_MAX);
    char signal[EXECUTE_SIGNAL_SIZE];
    const char *signal_name = execute_signal_name(result, signal);
    int code = execute_exit_code(result);
    const char *type = code < 0 ? "error" : "complete";
    struct json_writer json;

    execute_events_begin_event(&json, &event, type);
    if (code < 0)
        json_add_text(&json, "error",
                      "The command's exit status is unknown: it was killed "
                      "together with its supervisor");
    else
        json_add_integer(&json, "exitCode", code);
    if (signal_name)
        json_add_text(&json, "signal", signal_name);
    if (result->timed_out)
        json_add_boolean(&json, "timedOut", true);
    if (result->out_of_memory)
        json_add_boolean(&json, "outOfMemory", true);
    end_event(call, &json, &event, type);
}

static void events_end(struct execute_call *call, const struct exec_result *result,
                       const char *note)
{
    if (call->call->state == CALL_FRESH)
        events_start(call); /* it ended before it could be said that it began */
    send_rest(call, note);
    send_complete(call, result);
    call_end(call->call);
}

static void events_fail(struct execute_call *call, const struct api_error *error)
{
    AUTO(text) struct text event = TEXT_INIT(EVENT_MAX);
    struct json_writer json;

    send_rest(call, "");
    execute_events_begin_event(&json, &event, "error");
    json_add_text(&json, "error", error->message);
    json_add_text(&json, "code", api_code_text(error->code));
    end_event(call, &json, &event, "error");
    call_end(call->call);
}

const struct execute_form execute_form_events = {
    .start = events_start,
    .output = events_output,
    .end = events_end,
    .fail = events_fail,
    .tells_exit = true,
};
