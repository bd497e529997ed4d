/* The log of a process as a stream of events: what there is, then what comes, then the end.
 *
 * Each viewer reads at its own pace. The process never waits for one: a viewer that is too slow for
 * the log is told how much it missed. */
#include <inttypes.h>

#include "agent/agent.h"
#include "agent/output_text.h"
#include "agent/process/process_answer.h"
#include "json/json_write.h"

#define EVENT_MAX ((PROCESS_COMMAND_MAX + PROCESS_ID_MAX) * 6 + 512)

static const char *const output_names[EXEC_OUTPUTS] = {"stdout", "stderr"};

/* In the call's pool. */
struct viewer {
    struct process_watcher watcher;
    struct call *call;
    struct process_log_cursor cursor;
    struct output_text encoders[EXEC_OUTPUTS];
};

static void viewer_done(struct viewer *viewer)
{
    process_log_close(&viewer->cursor);
    process_unwatch(&viewer->watcher);
}

/* By RPC there are no words beside the facts. */
static bool is_rpc(const struct viewer *viewer)
{
    return viewer->call->operation->rpc != NULL;
}

/* --- single events --------------------------------------------------------------------------- */

static void process_stream_begin_event(struct viewer *viewer, struct json_writer *json,
                                       struct text *event, const char *type)
{
    text_clear(event);
    json_document_begin(json, event);
    json_add_text(json, "type", type);
    json_add_text(json, "processId", viewer->watcher.process->id);
}

static void process_stream_send_event(struct viewer *viewer, struct json_writer *json,
                                      struct text *event, const char *type)
{
    call_add_timestamp(viewer->call, json);
    (void) json_document_end(json); /* every event has room enough */
    call_event(viewer->call, type, text_string(event), event->length);
}

static void send_info(struct viewer *viewer)
{
    AUTO(text) struct text event = TEXT_INIT(EVENT_MAX);
    const struct process *process = viewer->watcher.process;
    struct json_writer json;

    process_stream_begin_event(viewer, &json, &event, "process_info");
    json_add_text(&json, "command", process->command);
    json_add_text(&json, "status", process_status_text(process->status));
    process_stream_send_event(viewer, &json, &event, "process_info");
}

static void send_exit(struct viewer *viewer)
{
    AUTO(text) struct text event = TEXT_INIT(EVENT_MAX);
    AUTO(text) struct text words = TEXT_INIT(128);
    const struct process *process = viewer->watcher.process;
    int code = process_exit_code(process);
    struct json_writer json;

    process_stream_begin_event(viewer, &json, &event, "exit");
    process_add_exit(&json, process);
    if (code >= 0)
        text_format(&words, "Process completed with exit code %d", code);
    else
        text_append(&words, "Process ended with an unknown exit code");
    if (!is_rpc(viewer))
        json_add_text(&json, "data", text_string(&words));
    process_stream_send_event(viewer, &json, &event, "exit");
}

static void send_dropped(struct viewer *viewer, enum exec_output which)
{
    AUTO(text) struct text event = TEXT_INIT(EVENT_MAX);
    AUTO(text) struct text words = TEXT_INIT(128);
    uint64_t dropped = process_log_take_dropped(&viewer->cursor, which);
    struct json_writer json;

    if (!dropped)
        return;
    text_format(&words, "[%" PRIu64 " bytes of older output are not kept]\n", dropped);
    process_stream_begin_event(viewer, &json, &event, output_names[which]);
    json_add_text(&json, "data", text_string(&words));
    json_add_integer(&json, "droppedBytes", (int64_t) dropped);
    process_stream_send_event(viewer, &json, &event, output_names[which]);
    viewer->encoders[which].carried = 0; /* half a character whose other half is lost */
}

/* Everything but the data, without the closing brace. */
static void begin_output(struct viewer *viewer, struct text *event, enum exec_output which)
{
    struct json_writer json;

    process_stream_begin_event(viewer, &json, event, output_names[which]);
    call_add_timestamp(viewer->call, &json);
    (void) json_document_end(&json); /* there is room for an id */
    event->length--;
    text_append(event, ",\"data\":\"");
}

static void send_output(struct viewer *viewer, enum exec_output which, const char *bytes,
                        size_t length, bool last)
{
    struct text *event = &viewer->call->agent->scratch;
    struct output_text *encoder = &viewer->encoders[which];
    size_t before;

    begin_output(viewer, event, which);
    before = event->length;
    output_text_feed(encoder, event, bytes, length);
    if (last)
        output_text_flush(encoder, event);
    if (event->length == before)
        return; /* nothing but the beginning of a character */
    text_append(event, "\"}");
    call_event(viewer->call, output_names[which], event->data, event->length);
}

/* --- the stream ------------------------------------------------------------------------------ */

static void process_stream_finish(struct viewer *viewer)
{
    struct call *call = viewer->call;

    for (enum exec_output which = 0; which < EXEC_OUTPUTS; which++)
        send_output(viewer, which, "", 0, true);
    send_exit(viewer);
    viewer_done(viewer);
    call_end(call);
}

/* As much as the client takes. */
static void process_stream_pump(struct viewer *viewer)
{
    enum exec_output which;
    const char *bytes;
    size_t length;

    while (!call_is_full(viewer->call)) {
        for (which = 0; which < EXEC_OUTPUTS; which++)
            send_dropped(viewer, which);
        if (process_log_next(&viewer->cursor, &which, &bytes, &length)) {
            send_output(viewer, which, bytes, length, false);
        } else {
            if (process_has_ended(viewer->watcher.process))
                process_stream_finish(viewer);
            return;
        }
    }
}

static void process_heard(struct process_watcher *watcher, enum process_event event)
{
    if (event == PROCESS_OUTPUT || event == PROCESS_ENDED)
        process_stream_pump(CONTAINER_OF(watcher, struct viewer, watcher));
}

static void process_stream_client_took(struct call *call)
{
    process_stream_pump(call->data);
}

static void process_stream_client_left(struct call *call)
{
    viewer_done(call->data);
}

void process_stream(struct call *call)
{
    struct process *process = process_of_call(call);
    struct viewer *viewer;

    if (!process)
        return;
    viewer = pool_alloc(call->pool, sizeof(*viewer));
    viewer->call = call;
    viewer->watcher.on_event = process_heard;
    process_watch(process, &viewer->watcher);
    process_log_open(&viewer->cursor, &process->log);
    call->data = viewer;
    call->on_gone = process_stream_client_left;
    call->on_drain = process_stream_client_took;
    call_begin_events(call);
    if (!is_rpc(viewer))
        send_info(viewer);
    process_stream_pump(viewer);
}
