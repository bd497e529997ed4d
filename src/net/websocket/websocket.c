#include "net/websocket/websocket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/encoding/utf8.h"
#include "base/id.h"
#include "base/memory.h"

/* Clients mask at most so much at a time: bounds the memory of a large message. */
#define MASK_PIECE_MAX ((size_t) 256 * 1024)
/* Masked frames up to this size are built on the stack. */
#define MASK_STACK_SIZE ((size_t) 16 * 1024)

/* --- sending --------------------------------------------------------------------------------- */

static void next_key(struct websocket *ws, uint8_t ret_key[static WEBSOCKET_KEY_SIZE])
{
    if (!ws->keys_left) {
        random_bytes(ws->keys, sizeof(ws->keys));
        ws->keys_left = WEBSOCKET_KEYS_AT_ONCE;
    }
    memcpy(ret_key, ws->keys[--ws->keys_left], WEBSOCKET_KEY_SIZE);
}

static void write_plain(struct websocket *ws, const struct websocket_frame *frame,
                        const void *payload)
{
    char header[WEBSOCKET_HEADER_MAX];
    struct iovec parts[2] = {
        {.iov_base = header, .iov_len = websocket_frame_write(frame, header)},
        {.iov_base = (void *) (uintptr_t) payload, .iov_len = (size_t) frame->length},
    };

    stream_write_parts(ws->stream, parts, frame->length ? 2 : 1);
}

/* Header and payload are masked into one buffer: on the stack when they fit, else piece by piece
 * through one of bounded size. */
static void write_masked(struct websocket *ws, const struct websocket_frame *frame,
                         const char *payload)
{
    char small[MASK_STACK_SIZE];
    AUTO(free) char *large = NULL;
    size_t used = websocket_frame_write(frame, small);
    size_t length = (size_t) frame->length, size = sizeof(small), done = 0;
    char *buffer = small;

    if (length > size - used) {
        size = length < MASK_PIECE_MAX ? length + used : MASK_PIECE_MAX;
        large = mem_resize(NULL, size);
        memcpy(large, small, used);
        buffer = large;
    }
    do {
        size_t part = length - done < size - used ? length - done : size - used;

        websocket_mask(buffer + used, payload + done, part, frame->key, done);
        stream_write(ws->stream, buffer, used + part);
        done += part;
        used = 0;
    } while (done < length);
}

static void write_frame(struct websocket *ws, enum websocket_opcode opcode, bool final,
                        const void *payload, size_t length)
{
    struct websocket_frame frame = {.opcode = opcode, .final = final, .length = length};

    if (ws->options.role == WEBSOCKET_SERVER) {
        write_plain(ws, &frame, payload);
        return;
    }
    frame.masked = true;
    next_key(ws, frame.key);
    write_masked(ws, &frame, payload ? payload : "");
}

int websocket_send(struct websocket *ws, enum websocket_opcode kind, const void *bytes,
                   size_t length)
{
    if (ws->state != WEBSOCKET_OPEN)
        return -EPIPE;
    if (ws->sending_pieces)
        return -EBUSY;
    write_frame(ws, kind, true, bytes, length);
    return 0;
}

int websocket_send_piece(struct websocket *ws, enum websocket_opcode kind, bool last,
                         const void *bytes, size_t length)
{
    if (ws->state != WEBSOCKET_OPEN)
        return -EPIPE;
    write_frame(ws, ws->sending_pieces ? WEBSOCKET_CONTINUATION : kind, last, bytes, length);
    ws->sending_pieces = !last;
    return 0;
}

int websocket_ping(struct websocket *ws, const void *bytes, size_t length)
{
    if (ws->state != WEBSOCKET_OPEN)
        return -EPIPE;
    if (length > WEBSOCKET_CONTROL_MAX)
        return -EMSGSIZE;
    write_frame(ws, WEBSOCKET_PING, true, bytes, length);
    return 0;
}

static void send_owed_pong(struct websocket *ws)
{
    if (!ws->pong_owed || ws->state != WEBSOCKET_OPEN || websocket_is_full(ws))
        return;
    ws->pong_owed = false;
    write_frame(ws, WEBSOCKET_PONG, true, ws->pong, ws->pong_length);
}

/* Remember the newest ping only: that is all the RFC asks for, and all a full output may cost. */
static void answer_ping(struct websocket *ws, const char *bytes, size_t length)
{
    ws->pong_owed = true;
    ws->pong_length = (uint8_t) length;
    memcpy(ws->pong, bytes, length);
    send_owed_pong(ws);
}

static void send_close(struct websocket *ws, unsigned int code, const char *reason, size_t length)
{
    char payload[WEBSOCKET_CONTROL_MAX] = {(char) (code >> 8), (char) code};

    if (code == WEBSOCKET_CODE_NONE) {
        write_frame(ws, WEBSOCKET_CLOSE, true, NULL, 0);
        return;
    }
    memcpy(payload + WEBSOCKET_CODE_SIZE, reason, length);
    write_frame(ws, WEBSOCKET_CLOSE, true, payload, WEBSOCKET_CODE_SIZE + length);
}

/* --- the end --------------------------------------------------------------------------------- */

static void handle_is_closed(struct websocket *ws)
{
    if (--ws->handles)
        return;
    /* Not earlier: a callback that aborts may still look at its message. */
    free(TAKE_PTR(ws->held));
    websocket_reader_done(&ws->reader);
    stream_free(TAKE_PTR(ws->stream));
    ws->events->on_released(ws);
}

static void stream_closed(struct stream *stream)
{
    handle_is_closed(stream->owner);
}

static void deadline_closed(struct deadline *deadline)
{
    handle_is_closed(CONTAINER_OF(deadline, struct websocket, deadline));
}

static void websocket_release(struct websocket *ws)
{
    ws->state = WEBSOCKET_RELEASING;
    loop_task_cancel(&ws->replay);
    stream_close(ws->stream, stream_closed);
    deadline_close(&ws->deadline, deadline_closed);
}

static void tell_close(struct websocket *ws, unsigned int code, const char *reason, size_t length,
                       bool clean)
{
    char text[WEBSOCKET_CONTROL_MAX + 1] = {0};

    if (!ws->events->on_close)
        return;
    memcpy(text, reason, length < sizeof(text) ? length : sizeof(text) - 1);
    ws->events->on_close(ws, code, text, clean);
}

/* There will be no close frame from the peer. */
static void lose(struct websocket *ws, const char *reason)
{
    bool told = ws->state >= WEBSOCKET_LINGERING;

    if (ws->state == WEBSOCKET_RELEASING)
        return;
    websocket_release(ws);
    if (!told)
        tell_close(ws, WEBSOCKET_CODE_LOST, reason, strlen(reason), false);
}

/* The outcome is known: tell it, and let TCP end in order. Closing the socket now could reset the
 * connection and destroy our close frame on its way, so input is read and dropped until the peer's
 * end or the deadline. The server ends first, so that TIME_WAIT is on its side; so does whoever
 * met a fault. */
static void linger(struct websocket *ws, bool end_first)
{
    ws->state = WEBSOCKET_LINGERING;
    ws->pong_owed = false;
    if (end_first)
        stream_shut_write(ws->stream);
    deadline_set(&ws->deadline, ws->options.close_timeout_ms);
}

static void handle_close(struct websocket *ws, const struct websocket_event *event)
{
    if (ws->state == WEBSOCKET_OPEN)
        send_close(ws, event->code, "", 0);
    linger(ws, ws->options.role == WEBSOCKET_SERVER);
    tell_close(ws, event->code, event->bytes, event->length, true);
}

static void handle_fault(struct websocket *ws, const struct websocket_event *event)
{
    if (ws->state == WEBSOCKET_OPEN)
        send_close(ws, event->code, event->bytes, event->length);
    linger(ws, true);
    tell_close(ws, event->code, event->bytes, event->length, false);
}

/* The longest beginning of `reason` that fits and ends at a character; 0 when it is not UTF-8. */
static size_t usable_reason(const char *reason)
{
    size_t length = strlen(reason);

    if (!utf8_is_valid(reason, length))
        return 0;
    if (length <= WEBSOCKET_REASON_MAX)
        return length;
    length = WEBSOCKET_REASON_MAX;
    while (length && (reason[length] & 0xc0) == 0x80)
        length--;
    return length;
}

int websocket_close(struct websocket *ws, unsigned int code, const char *reason)
{
    if (code != WEBSOCKET_CODE_NONE && !websocket_code_is_valid(code))
        return -EINVAL;
    if (ws->state != WEBSOCKET_OPEN)
        return 0;
    send_close(ws, code, reason ?: "", usable_reason(reason ?: ""));
    ws->state = WEBSOCKET_CLOSING;
    ws->pong_owed = false;
    websocket_reader_discard(&ws->reader);
    deadline_set(&ws->deadline, ws->options.close_timeout_ms);
    websocket_resume(ws);
    return 0;
}

void websocket_abort(struct websocket *ws)
{
    if (ws->state != WEBSOCKET_RELEASING)
        websocket_release(ws);
}

/* Lingering is over when both ends were sent; ours comes after the close frame still queued. */
static void end_lingering(struct websocket *ws)
{
    stream_shut_write(ws->stream);
    if (ws->stream->ended && ws->stream->shut_done)
        websocket_release(ws);
}

static void on_end(struct stream *stream)
{
    struct websocket *ws = stream->owner;

    if (ws->state == WEBSOCKET_LINGERING)
        end_lingering(ws);
    else
        lose(ws, "connection ended without a close frame");
}

static void on_shut(struct stream *stream)
{
    end_lingering(stream->owner);
}

static void on_failure(struct stream *stream, int error)
{
    lose(stream->owner, strerrordesc_np(error < 0 ? -error : error) ?: "connection failed");
}

/* --- signs of life --------------------------------------------------------------------------- */

static void expect_pong(struct websocket *ws)
{
    ws->pinged_at = loop_now(ws->stream->loop);
    ws->sent_then = ws->stream->bytes_sent;
    deadline_set(&ws->deadline, ws->options.pong_timeout_ms);
}

/* Whether to go on believing in a peer that did not answer our ping: one that takes our output
 * slowly gets to the ping only after all that was queued before it, and one whose bytes we leave
 * unread may have answered already. */
static bool may_be_alive(const struct websocket *ws)
{
    bool takes_output = stream_queued(ws->stream) && ws->stream->bytes_sent > ws->sent_then;

    return ws->paused || takes_output;
}

static void check_life(struct websocket *ws)
{
    uint64_t now = loop_now(ws->stream->loop);
    uint64_t silent = now - ws->heard_at;

    if (ws->pinged_at && ws->heard_at < ws->pinged_at) {
        if (may_be_alive(ws))
            expect_pong(ws);
        else
            lose(ws, "no answer to ping");
        return;
    }
    ws->pinged_at = 0;
    if (silent < ws->options.ping_interval_ms) {
        deadline_set(&ws->deadline, ws->options.ping_interval_ms - silent);
        return;
    }
    if (!websocket_is_full(ws)) /* else the test is whether the peer takes what is queued */
        write_frame(ws, WEBSOCKET_PING, true, NULL, 0);
    expect_pong(ws);
}

static void on_deadline(struct deadline *deadline)
{
    struct websocket *ws = CONTAINER_OF(deadline, struct websocket, deadline);

    if (ws->state == WEBSOCKET_OPEN)
        check_life(ws);
    else
        lose(ws, "no close frame in time");
}

/* --- receiving ------------------------------------------------------------------------------- */

static void handle_data(struct websocket *ws, const struct websocket_event *event)
{
    struct websocket_piece piece = {
        .kind = event->kind,
        .first = event->first,
        .last = event->last,
        .bytes = event->bytes,
        .length = event->length,
    };

    if (ws->options.streaming)
        ws->events->on_piece(ws, &piece);
    else
        ws->events->on_message(ws, event->kind, event->bytes, event->length);
}

static void handle_event(struct websocket *ws, const struct websocket_event *event)
{
    switch (event->type) {
    case WEBSOCKET_EVENT_DATA:
        handle_data(ws, event);
        break;
    case WEBSOCKET_EVENT_PING:
        if (ws->state == WEBSOCKET_OPEN)
            answer_ping(ws, event->bytes, event->length);
        break;
    case WEBSOCKET_EVENT_PONG:
        if (ws->events->on_pong && ws->state == WEBSOCKET_OPEN)
            ws->events->on_pong(ws, event->bytes, event->length);
        break;
    case WEBSOCKET_EVENT_CLOSE:
        handle_close(ws, event);
        break;
    case WEBSOCKET_EVENT_FAULT:
        handle_fault(ws, event);
        break;
    }
}

/* Read until the bytes are used up or the consumer has enough; returns how many are left over.
 * Every event may change `state` and `paused`, so both are asked again after each. */
static size_t websocket_read_on(struct websocket *ws, const char *bytes, size_t length)
{
    char scratch[WEBSOCKET_SCRATCH_SIZE];
    struct websocket_event event;

    ws->reading = true;
    while (ws->state != WEBSOCKET_RELEASING && !ws->paused &&
           websocket_reader_next(&ws->reader, &bytes, &length, scratch, &event))
        handle_event(ws, &event);
    ws->reading = false;
    websocket_reader_release(&ws->reader);
    return ws->state == WEBSOCKET_RELEASING ? 0 : length;
}

/* Keep bytes for later. At most what one read gives: the stream is paused while any are held. */
static void websocket_hold(struct websocket *ws, const char *bytes, size_t length)
{
    ws->held = mem_resize(ws->held, ws->held_length + length);
    memcpy(ws->held + ws->held_length, bytes, length);
    ws->held_length += length;
    stream_pause(ws->stream);
}

static void on_data(struct stream *stream, const char *bytes, size_t length)
{
    struct websocket *ws = stream->owner;
    size_t left = length;

    ws->heard_at = loop_now(ws->stream->loop);
    if (!ws->held)
        left = websocket_read_on(ws, bytes, length);
    if (left)
        websocket_hold(ws, bytes + (length - left), left);
}

static void replay(struct loop_task *task)
{
    struct websocket *ws = CONTAINER_OF(task, struct websocket, replay);
    size_t left = websocket_read_on(ws, ws->held + ws->held_at, ws->held_length - ws->held_at);

    ws->held_at = ws->held_length - left;
    if (left || ws->state == WEBSOCKET_RELEASING)
        return;
    free(TAKE_PTR(ws->held));
    ws->held_length = ws->held_at = 0;
    if (!ws->paused)
        stream_resume(ws->stream);
}

void websocket_pause(struct websocket *ws)
{
    if (ws->state != WEBSOCKET_OPEN)
        return;
    ws->paused = true;
    stream_pause(ws->stream);
}

void websocket_resume(struct websocket *ws)
{
    if (!ws->paused || ws->state == WEBSOCKET_RELEASING)
        return;
    ws->paused = false;
    ws->heard_at = loop_now(ws->stream->loop); /* its silence was our doing */
    if (ws->held && !ws->reading)
        loop_defer(ws->stream->loop, &ws->replay);
    else if (!ws->held)
        stream_resume(ws->stream);
}

static void on_drain(struct stream *stream)
{
    struct websocket *ws = stream->owner;

    send_owed_pong(ws);
    if (ws->state == WEBSOCKET_OPEN && ws->events->on_drain)
        ws->events->on_drain(ws);
}

/* --- beginning ------------------------------------------------------------------------------- */

static const struct stream_events stream_events = {
    .on_data = on_data,
    .on_end = on_end,
    .on_drain = on_drain,
    .on_shut = on_shut,
    .on_failure = on_failure,
};

static struct websocket_options with_defaults(struct websocket_options options)
{
    options.message_max = options.message_max ?: WEBSOCKET_MESSAGE_MAX;
    options.frames_max = options.frames_max ?: WEBSOCKET_FRAMES_MAX;
    options.pong_timeout_ms = options.pong_timeout_ms ?: WEBSOCKET_PONG_TIMEOUT_MS;
    options.close_timeout_ms = options.close_timeout_ms ?: WEBSOCKET_CLOSE_TIMEOUT_MS;
    return options;
}

void websocket_init(struct websocket *ws, struct stream *stream,
                    const struct websocket_options *options, const struct websocket_events *events,
                    const char *pending, size_t pending_length)
{
    *ws = (struct websocket){
        .stream = stream,
        .events = events,
        .options = with_defaults(*options),
        .heard_at = loop_now(stream->loop),
        .handles = 2,
    };
    stream_set_owner(stream, ws, &stream_events);
    websocket_reader_init(&ws->reader, options->role, options->streaming, ws->options.message_max,
                          ws->options.frames_max);
    deadline_init(stream->loop, &ws->deadline, on_deadline);
    loop_task_init(&ws->replay, replay);
    if (options->ping_interval_ms)
        deadline_set(&ws->deadline, options->ping_interval_ms);
    if (pending_length) {
        websocket_hold(ws, pending, pending_length);
        loop_defer(stream->loop, &ws->replay);
    } else {
        stream_resume(stream);
    }
}
