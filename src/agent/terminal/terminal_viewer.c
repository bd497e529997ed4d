#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/terminal/terminal_control.h"
#include "agent/terminal/terminal_internal.h"
#include "base/memory.h"
#include "json/json_write.h"

#define MESSAGE_MAX      ((size_t) 4096)
#define PING_INTERVAL_MS 60000
#define PONG_TIMEOUT_MS  120000
/* Pasting: nothing of a message is kept, so that this may be large. */
#define PASTE_MAX ((uint64_t) 1024 * 1024 * 1024)
/* What a viewer may be behind before the shell waits. With one more read it must fit the ring. */
#define LAG_MAX (TERMINAL_RING_SIZE - LOOP_SCRATCH_SIZE)
/* Time to be forgiven for a millisecond of stalling. */
#define RELIEF 20

/* --- output ----------------------------------------------------------------------------------- */

static void terminal_viewer_tell(struct terminal_viewer *viewer, const char *json, size_t length)
{
    (void) websocket_send(viewer->ws, WEBSOCKET_TEXT, json, length);
}

static void tell_error(struct terminal_viewer *viewer, const char *text)
{
    AUTO(text) struct text message = TEXT_INIT(MESSAGE_MAX);
    struct json_writer json;

    if (websocket_is_full(viewer->ws))
        return; /* who does not read cannot make us write */
    json_document_begin(&json, &message);
    json_add_text(&json, "type", "error");
    json_add_text(&json, "message", text);
    if (json_document_end(&json) == 0)
        terminal_viewer_tell(viewer, message.data, message.length);
}

static void terminal_viewer_skip(struct terminal_viewer *viewer)
{
    uint64_t to = terminal_ring_entry(&viewer->terminal->ring);
    char message[64];
    int length;

    length = snprintf(message, sizeof(message), "{\"type\":\"skipped\",\"bytes\":%llu}",
                      (unsigned long long) (to - viewer->position));
    viewer->position = to;
    terminal_viewer_tell(viewer, message, (size_t) length);
}

static bool send_next(struct terminal_viewer *viewer)
{
    const struct terminal_ring *ring = &viewer->terminal->ring;
    const char *bytes = NULL;
    size_t length;

    if (viewer->position < terminal_ring_start(ring))
        terminal_viewer_skip(viewer);
    length = terminal_ring_peek(ring, viewer->position, &bytes);
    if (!length)
        return false;
    (void) websocket_send(viewer->ws, WEBSOCKET_BINARY, bytes, length);
    viewer->position += length;
    return true;
}

/* Who read well for a while is waited for again. */
static void relieve(struct terminal_viewer *viewer)
{
    uint64_t now = loop_now(&viewer->terminal->agent->loop);
    uint64_t relief = (now - viewer->relieved_at) / RELIEF;

    if (!relief)
        return;
    viewer->relieved_at = now;
    viewer->stalled_ms -= relief < viewer->stalled_ms ? relief : viewer->stalled_ms;
    if (viewer->slow && viewer->stalled_ms < TERMINAL_STALL_MS / 2)
        viewer->slow = false;
}

void terminal_viewer_pump(struct terminal_viewer *viewer)
{
    if (viewer->stalled_ms)
        relieve(viewer);
    while (viewer->ready && !websocket_is_full(viewer->ws) && send_next(viewer))
        ;
}

void terminal_viewer_greet(struct terminal_viewer *viewer)
{
    static const char ready[] = "{\"type\":\"ready\"}";
    AUTO(text) struct text replay = TEXT_INIT(TERMINAL_RING_SIZE);
    const struct terminal_ring *ring = &viewer->terminal->ring;
    uint64_t at = terminal_ring_entry(ring);
    const char *bytes = NULL;
    size_t length;

    while ((length = terminal_ring_peek(ring, at, &bytes))) {
        text_append_bytes(&replay, bytes, length);
        at += length;
    }
    if (replay.length)
        (void) websocket_send(viewer->ws, WEBSOCKET_BINARY, replay.data, replay.length);
    viewer->position = ring->end;
    viewer->ready = true;
    terminal_viewer_tell(viewer, ready, sizeof(ready) - 1);
}

void terminal_viewer_end(struct terminal_viewer *viewer, const struct text *message,
                         unsigned int code, const char *reason)
{
    while (viewer->ready && send_next(viewer)) /* at most one ring */
        ;
    terminal_viewer_tell(viewer, text_string(message), message->length);
    viewer->terminal = NULL;
    list_remove(&viewer->link);
    (void) websocket_close(viewer->ws, code, reason);
}

/* --- pace ------------------------------------------------------------------------------------- */

bool terminal_viewer_lags(const struct terminal_viewer *viewer)
{
    return viewer->ready && !viewer->slow &&
           viewer->terminal->ring.end - viewer->position > LAG_MAX;
}

void terminal_viewer_tick(struct terminal_viewer *viewer, uint64_t elapsed_ms)
{
    uint64_t sent = viewer->ws->stream->bytes_sent;
    uint64_t pace = (sent - viewer->sent_then) * 1000;

    viewer->sent_then = sent;
    relieve(viewer);
    if (terminal_viewer_lags(viewer) && pace < TERMINAL_PACE * elapsed_ms) {
        viewer->stalled_ms += elapsed_ms;
        viewer->slow = viewer->stalled_ms >= TERMINAL_STALL_MS;
    }
}

/* --- the connection --------------------------------------------------------------------------- */

static void take_control(struct terminal_viewer *viewer)
{
    struct error err = ERROR_INIT;
    struct exec_terminal size;

    if (viewer->control.overflowed)
        (void) error_set(&err, ERR_INVALID, 0, "Invalid control message");
    else if (terminal_control_read(text_string(&viewer->control), viewer->control.length, &size,
                                   &err) == 0)
        viewer->terminal->size = size;
    text_done(&viewer->control);
    if (err.code)
        tell_error(viewer, err.message);
    else if (viewer->terminal->exec)
        exec_resize(viewer->terminal->exec, &size);
}

static void piece_arrived(struct websocket *ws, const struct websocket_piece *piece)
{
    struct terminal_viewer *viewer = websocket_http_data(ws);

    if (!viewer->terminal)
        return;
    if (piece->kind == WEBSOCKET_BINARY) {
        terminal_type(viewer->terminal, viewer, piece->bytes, piece->length);
        return;
    }
    text_append_bytes(&viewer->control, piece->bytes, piece->length);
    if (piece->last)
        take_control(viewer);
}

static void viewer_took(struct websocket *ws)
{
    struct terminal_viewer *viewer = websocket_http_data(ws);

    if (!viewer->terminal)
        return;
    terminal_viewer_pump(viewer);
    terminal_check_output(viewer->terminal);
}

static void terminal_viewer_leave(struct terminal_viewer *viewer)
{
    struct terminal *terminal = TAKE_PTR(viewer->terminal);

    if (!terminal)
        return;
    list_remove(&viewer->link);
    terminal_left(terminal);
}

static void viewer_left(struct websocket *ws, unsigned int code, const char *reason, bool clean)
{
    (void) code;
    (void) reason;
    (void) clean;
    terminal_viewer_leave(websocket_http_data(ws));
}

static void terminal_viewer_connection_gone(struct websocket *ws)
{
    struct terminal_viewer *viewer = websocket_http_data(ws);

    terminal_viewer_leave(viewer); /* an abort tells nobody else */
    text_done(&viewer->control);
    free(viewer);
}

static const struct websocket_events events = {
    .on_piece = piece_arrived,
    .on_drain = viewer_took,
    .on_close = viewer_left,
    .on_released = terminal_viewer_connection_gone,
};

struct terminal_viewer *terminal_viewer_new(struct http_request *request)
{
    static const struct websocket_options options = {
        .role = WEBSOCKET_SERVER,
        .streaming = true,
        .message_max = PASTE_MAX,
        .ping_interval_ms = PING_INTERVAL_MS,
        .pong_timeout_ms = PONG_TIMEOUT_MS,
    };
    struct terminal_viewer *viewer = mem_alloc(sizeof(*viewer));
    struct error err = ERROR_INIT;

    viewer->control = (struct text) TEXT_INIT(TERMINAL_CONTROL_MAX);
    list_init(&viewer->link);
    viewer->ws = websocket_accept(request, &options, &events, viewer, &err);
    if (viewer->ws)
        return viewer;
    http_reply_error(request, &err);
    free(viewer);
    return NULL;
}

void terminal_viewer_join(struct terminal_viewer *viewer, struct terminal *terminal)
{
    viewer->terminal = terminal;
    viewer->relieved_at = loop_now(&terminal->agent->loop);
    list_append(&terminal->viewers, &viewer->link);
    if (terminal->started)
        terminal_viewer_greet(viewer);
}
