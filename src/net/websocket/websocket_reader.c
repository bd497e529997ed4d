#include "net/websocket/websocket_reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"

/* Close codes a frame may carry. 1004-1006 and 1015 are reserved for other uses, 1012-1014 were
 * registered after the RFC, 3000 and up belong to libraries and applications. */
static const struct {
    uint16_t from, to;
} valid_codes[] = {{1000, 1003}, {1007, 1014}, {3000, 4999}};

bool websocket_code_is_valid(unsigned int code)
{
    for (size_t i = 0; i < ARRAY_COUNT(valid_codes); i++) {
        if (code >= valid_codes[i].from && code <= valid_codes[i].to)
            return true;
    }
    return false;
}

void websocket_reader_init(struct websocket_reader *reader, enum websocket_role role,
                           bool streaming, uint64_t message_max, uint32_t frames_max)
{
    *reader = (struct websocket_reader){
        .parser = WEBSOCKET_FRAME_PARSER_INIT(role),
        .streaming = streaming,
        .message_max = message_max,
        .frames_max = frames_max,
    };
}

void websocket_reader_release(struct websocket_reader *reader)
{
    free(TAKE_PTR(reader->lent));
}

static void drop_message(struct websocket_reader *reader)
{
    free(TAKE_PTR(reader->message));
    reader->gathered = 0;
    reader->capacity = 0;
}

void websocket_reader_done(struct websocket_reader *reader)
{
    websocket_reader_release(reader);
    drop_message(reader);
}

void websocket_reader_discard(struct websocket_reader *reader)
{
    reader->discarding = true;
    drop_message(reader);
}

/* --- the last words -------------------------------------------------------------------------- */

static bool fault(struct websocket_reader *reader, struct websocket_event *event, uint16_t code,
                  const char *reason)
{
    reader->finished = true;
    drop_message(reader);
    *event = (struct websocket_event){
        .type = WEBSOCKET_EVENT_FAULT, .code = code, .bytes = reason, .length = strlen(reason)};
    return true;
}

static bool tell_close(struct websocket_reader *reader, struct websocket_event *event)
{
    size_t length = (size_t) reader->frame.length;
    const char *payload = reader->control;
    uint16_t code = WEBSOCKET_CODE_NONE;

    if (length == 1)
        return fault(reader, event, WEBSOCKET_CODE_PROTOCOL, "close frame with half a code");
    if (length >= WEBSOCKET_CODE_SIZE) {
        code = (uint16_t) ((uint8_t) payload[0] << 8 | (uint8_t) payload[1]);
        if (!websocket_code_is_valid(code))
            return fault(reader, event, WEBSOCKET_CODE_PROTOCOL, "close code that may not be sent");
        payload += WEBSOCKET_CODE_SIZE;
        length -= WEBSOCKET_CODE_SIZE;
    }
    if (!utf8_is_valid(payload, length))
        return fault(reader, event, WEBSOCKET_CODE_INVALID_TEXT, "close reason is not UTF-8");
    reader->finished = true;
    drop_message(reader);
    *event = (struct websocket_event){
        .type = WEBSOCKET_EVENT_CLOSE, .code = code, .bytes = payload, .length = length};
    return true;
}

/* --- headers --------------------------------------------------------------------------------- */

/* A data frame begins: does it fit what came before, and the limits? */
static bool data_frame_is_refused(struct websocket_reader *reader, struct websocket_event *event)
{
    const struct websocket_frame *frame = &reader->frame;

    if (frame->opcode == WEBSOCKET_CONTINUATION && !reader->in_message)
        return fault(reader, event, WEBSOCKET_CODE_PROTOCOL, "continuation of no message");
    if (frame->opcode != WEBSOCKET_CONTINUATION && reader->in_message)
        return fault(reader, event, WEBSOCKET_CODE_PROTOCOL, "message inside a message");
    if (frame->opcode != WEBSOCKET_CONTINUATION) {
        reader->kind = frame->opcode;
        reader->in_message = true;
        reader->piece_told = false;
        reader->message_announced = 0;
        reader->message_frames = 0;
        reader->utf8 = (struct utf8_check) UTF8_CHECK_INIT;
    }
    if (reader->discarding)
        return false;
    if (frame->length > reader->message_max - reader->message_announced)
        return fault(reader, event, WEBSOCKET_CODE_TOO_BIG, "message too long");
    if (reader->message_frames == reader->frames_max)
        return fault(reader, event, WEBSOCKET_CODE_POLICY, "message in too many frames");
    reader->message_announced += frame->length;
    reader->message_frames++;
    return false;
}

/* Read on to the end of a header. Returns true with an event only for a fault. */
static bool next_header(struct websocket_reader *reader, const char **bytes, size_t *length,
                        struct websocket_event *event)
{
    const char *why;
    int r = websocket_frame_parse(&reader->parser, bytes, length, &reader->frame, &why);

    if (r < 0)
        return fault(reader, event, WEBSOCKET_CODE_PROTOCOL, why);
    if (r == 0)
        return false;
    reader->in_frame = true;
    reader->frame_taken = 0;
    if (websocket_opcode_is_control(reader->frame.opcode))
        return false;
    return data_frame_is_refused(reader, event);
}

/* --- control frames -------------------------------------------------------------------------- */

/* Move `count` payload bytes of the frame from the input to `to`, unmasked. */
static void take_payload(struct websocket_reader *reader, char *to, const char **bytes,
                         size_t *length, size_t count)
{
    const struct websocket_frame *frame = &reader->frame;

    if (frame->masked)
        websocket_mask(to, *bytes, count, frame->key, reader->frame_taken);
    else if (count)
        memcpy(to, *bytes, count);
    reader->frame_taken += count;
    *bytes += count;
    *length -= count;
}

/* How much of the frame's payload the input holds. */
static size_t payload_at_hand(const struct websocket_reader *reader, size_t length)
{
    uint64_t left = reader->frame.length - reader->frame_taken;

    return left < length ? (size_t) left : length;
}

static bool next_control(struct websocket_reader *reader, const char **bytes, size_t *length,
                         struct websocket_event *event)
{
    take_payload(reader, reader->control + reader->frame_taken, bytes, length,
                 payload_at_hand(reader, *length));
    if (reader->frame_taken < reader->frame.length)
        return false;
    reader->in_frame = false;
    if (reader->frame.opcode == WEBSOCKET_CLOSE)
        return tell_close(reader, event);
    *event = (struct websocket_event){
        .type =
            reader->frame.opcode == WEBSOCKET_PING ? WEBSOCKET_EVENT_PING : WEBSOCKET_EVENT_PONG,
        .bytes = reader->control,
        .length = (size_t) reader->frame.length,
    };
    return true;
}

/* --- data frames ----------------------------------------------------------------------------- */

static bool frame_is_complete(const struct websocket_reader *reader)
{
    return reader->frame_taken == reader->frame.length;
}

static bool message_is_complete(const struct websocket_reader *reader)
{
    return reader->frame.final && frame_is_complete(reader);
}

/* The next `length` bytes of the message are at `bytes`: can they be text? The end of a message
 * must also be the end of a character. */
static bool text_is_broken(struct websocket_reader *reader, const char *bytes, size_t length)
{
    if (reader->kind != WEBSOCKET_TEXT)
        return false;
    if (!utf8_check_feed(&reader->utf8, bytes, length))
        return true;
    return message_is_complete(reader) && !utf8_check_finish(&reader->utf8);
}

/* Room for `extra` bytes more. Doubles what arrived, so that an announcement alone costs nothing,
 * but never asks for more than the message can still become. */
static void make_room(struct websocket_reader *reader, size_t extra)
{
    uint64_t most = reader->frame.final ? reader->message_announced : reader->message_max;
    size_t needed = reader->gathered + extra;
    uint64_t wanted = (uint64_t) needed * 2;

    if (reader->message && needed <= reader->capacity)
        return;
    reader->capacity = (size_t) (wanted < most ? wanted : most);
    reader->message = mem_resize(reader->message, reader->capacity);
}

/* Describe the bytes as the data event due now. */
static bool tell_data(struct websocket_reader *reader, struct websocket_event *event,
                      const char *bytes, size_t length)
{
    *event = (struct websocket_event){
        .type = WEBSOCKET_EVENT_DATA,
        .kind = reader->kind,
        .first = !reader->piece_told,
        .last = message_is_complete(reader),
        .bytes = bytes,
        .length = length,
    };
    reader->piece_told = true;
    reader->in_frame = !frame_is_complete(reader);
    reader->in_message = !event->last;
    return true;
}

/* Hand out what is at hand: where it lies if it is plain, else through the scratch. Used for pieces
 * and for messages that are wholly at hand. */
static bool websocket_reader_pass_on(struct websocket_reader *reader, const char **bytes,
                                     size_t *length, char *scratch, size_t count,
                                     struct websocket_event *event)
{
    const char *place = *bytes;

    if (reader->frame.masked) {
        take_payload(reader, scratch, bytes, length, count);
        place = scratch;
    } else {
        reader->frame_taken += count;
        *bytes += count;
        *length -= count;
    }
    if (text_is_broken(reader, place, count))
        return fault(reader, event, WEBSOCKET_CODE_INVALID_TEXT, "text is not UTF-8");
    return tell_data(reader, event, place, count);
}

/* Add what is at hand to the message. Unmasking and checking take turns on pieces that stay in the
 * fastest cache. */
static bool gather(struct websocket_reader *reader, const char **bytes, size_t *length,
                   struct websocket_event *event)
{
    size_t count = payload_at_hand(reader, *length);

    make_room(reader, count);
    do {
        size_t part = count < WEBSOCKET_SCRATCH_SIZE ? count : WEBSOCKET_SCRATCH_SIZE;
        char *place = reader->message + reader->gathered;

        take_payload(reader, place, bytes, length, part);
        if (text_is_broken(reader, place, part))
            return fault(reader, event, WEBSOCKET_CODE_INVALID_TEXT, "text is not UTF-8");
        reader->gathered += part;
        count -= part;
    } while (count);
    if (!message_is_complete(reader)) {
        reader->in_frame = !frame_is_complete(reader);
        return false;
    }
    reader->lent = TAKE_PTR(reader->message);
    count = reader->gathered;
    drop_message(reader);
    return tell_data(reader, event, reader->lent, count);
}

static bool websocket_reader_skip(struct websocket_reader *reader, const char **bytes,
                                  size_t *length)
{
    size_t count = payload_at_hand(reader, *length);

    reader->frame_taken += count;
    *bytes += count;
    *length -= count;
    reader->in_frame = !frame_is_complete(reader);
    reader->in_message = !message_is_complete(reader);
    return false;
}

static bool next_data(struct websocket_reader *reader, const char **bytes, size_t *length,
                      char *scratch, struct websocket_event *event)
{
    size_t count = payload_at_hand(reader, *length);
    bool fits = !reader->frame.masked || count <= WEBSOCKET_SCRATCH_SIZE;

    if (reader->discarding)
        return websocket_reader_skip(reader, bytes, length);
    if (reader->streaming) {
        if (!fits)
            count = WEBSOCKET_SCRATCH_SIZE;
        if (count || reader->frame.final) /* an empty piece says something only at the end */
            return websocket_reader_pass_on(reader, bytes, length, scratch, count, event);
        return websocket_reader_skip(reader, bytes, length);
    }
    if (fits && reader->frame.final && reader->message_frames == 1 && !reader->frame_taken &&
        count == reader->frame.length)
        return websocket_reader_pass_on(reader, bytes, length, scratch, count, event);
    return gather(reader, bytes, length, event);
}

bool websocket_reader_next(struct websocket_reader *reader, const char **bytes, size_t *length,
                           char scratch[static WEBSOCKET_SCRATCH_SIZE],
                           struct websocket_event *ret_event)
{
    websocket_reader_release(reader);
    while (!reader->finished && (*length || reader->in_frame)) {
        if (!reader->in_frame && next_header(reader, bytes, length, ret_event))
            return true;
        if (!reader->in_frame) /* the header is not complete: nothing is left */
            return false;
        /* An empty payload is complete without input; any other needs some. */
        if (!*length && !frame_is_complete(reader))
            return false;
        if (websocket_opcode_is_control(reader->frame.opcode)
                ? next_control(reader, bytes, length, ret_event)
                : next_data(reader, bytes, length, scratch, ret_event))
            return true;
    }
    if (reader->finished) {
        *bytes += *length;
        *length = 0;
    }
    return false;
}
