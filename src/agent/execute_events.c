/* The answer as server-sent events, each flushed the moment it is written. */
#include "agent/execute_form.h"
#include "json/json_write.h"
#include "net/sse.h"

#define EVENT_MAX ((size_t) 4096)

static void begin_event(struct execute_call *call, struct json_writer *json, struct text *event,
                        const char *type)
{
    (void) call;
    json_writer_init_text(json, event);
    json_begin_object(json);
    json_add_text(json, "type", type);
}

static void end_event(struct execute_call *call, struct json_writer *json, struct text *event)
{
    char time[CLOCK_TEXT_SIZE];

    clock_format(clock_wall_ms(call->agent->clock), time);
    json_add_text(json, "timestamp", time);
    json_end_object(json);
    (void) json_writer_finish(json); /* every event has room enough */
    sse_send(call->request, NULL, NULL, text_string(event), event->length);
}

static void events_start(struct execute_call *call)
{
    AUTO(text) struct text event = TEXT_INIT(EVENT_MAX + EXECUTE_COMMAND_MAX * 6);
    struct json_writer json;

    sse_begin(call->request);
    begin_event(call, &json, &event, "start");
    json_add_text(&json, "command", call->ask.command);
    json_add_integer(&json, "pid", exec_pid(call->exec));
    end_event(call, &json, &event);
}

/* Written by hand and at once: this is where a gigabyte goes through. */
static void send_output(struct execute_call *call, enum exec_output which, const char *bytes,
                        size_t length, bool last)
{
    struct output_text *encoder = &call->encoder[which];
    struct text *event = &call->agent->scratch;
    char time[CLOCK_TEXT_SIZE];
    size_t before;

    text_clear(event);
    text_append(event, which == EXEC_STDOUT ? "data: {\"type\":\"stdout\",\"data\":\""
                                            : "data: {\"type\":\"stderr\",\"data\":\"");
    before = event->length;
    output_text_feed(encoder, event, bytes, length);
    if (last || encoder->base64) /* every event is base64 by itself */
        output_text_flush(encoder, event);
    if (event->length == before)
        return; /* nothing but the beginning of a character */
    clock_format(clock_wall_ms(call->agent->clock), time);
    text_append(event, "\",\"timestamp\":\"");
    text_append(event, time);
    text_append(event, "\"}\n\n");
    http_reply_write(call->request, text_string(event), event->length);
}

static void events_output(struct execute_call *call, enum exec_output which, const char *bytes,
                          size_t length)
{
    send_output(call, which, bytes, length, false);
}

static void send_complete(struct execute_call *call, const struct exec_result *result)
{
    AUTO(text) struct text event = TEXT_INIT(EVENT_MAX);
    char signal[EXECUTE_SIGNAL_SIZE];
    const char *signal_name = execute_signal_name(result, signal);
    int code = execute_exit_code(result);
    struct json_writer json;

    begin_event(call, &json, &event, code < 0 ? "error" : "complete");
    if (code < 0)
        json_add_text(&json, "error",
                      "The command's exit status is unknown: it was killed "
                      "together with its supervisor");
    else
        json_add_integer(&json, "exitCode", code);
    if (signal_name)
        json_add_text(&json, "signal", signal_name);
    if (result->out_of_memory)
        json_add_boolean(&json, "outOfMemory", true);
    end_event(call, &json, &event);
}

static void events_end(struct execute_call *call, const struct exec_result *result,
                       const char *note)
{
    if (call->request->state == HTTP_REQUEST_FRESH)
        events_start(call); /* it ended before it could be said that it began */
    send_output(call, EXEC_STDOUT, "", 0, true);
    send_output(call, EXEC_STDERR, note, strlen(note), true);
    send_complete(call, result);
    http_reply_end(call->request);
}

const struct execute_form execute_form_events = {
    .start = events_start,
    .output = events_output,
    .end = events_end,
};
