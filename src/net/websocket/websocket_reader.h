/* The receiving half of a WebSocket: bytes in, events out, one at a time.
 *
 * Knows what frames mean together (RFC 6455, sections 5.4 to 5.6, 7.4 and 8.1): fragments become
 * messages, control frames may come between them, text must be UTF-8, close codes must exist, and
 * the limits hold. Knows no socket and no clock, so that it can be fuzzed: the events are the same
 * however the bytes are split, except for the cuts between streamed pieces and how many of them
 * come before a fault.
 *
 *     while (websocket_reader_next(&reader, &bytes, &length, scratch, &event))
 *         ...
 *
 * A payload is touched once: unmasked on the way into the message's buffer, or handed out where it
 * lies when there is nothing to unmask and the message is whole. Memory grows with what arrived,
 * not with what was announced; between messages there is none. Not thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/encoding/utf8.h"
#include "net/websocket/websocket_frame.h"

/* Close codes (RFC 6455, section 7.4.1). The last two are never on the wire. */
enum websocket_code {
    WEBSOCKET_CODE_NORMAL = 1000,
    WEBSOCKET_CODE_GOING_AWAY = 1001,
    WEBSOCKET_CODE_PROTOCOL = 1002,
    WEBSOCKET_CODE_UNSUPPORTED = 1003,
    WEBSOCKET_CODE_INVALID_TEXT = 1007,
    WEBSOCKET_CODE_POLICY = 1008,
    WEBSOCKET_CODE_TOO_BIG = 1009,
    WEBSOCKET_CODE_INTERNAL = 1011,
    WEBSOCKET_CODE_TRY_AGAIN = 1013,
    WEBSOCKET_CODE_NONE = 1005, /* the close frame carried no code */
    WEBSOCKET_CODE_LOST = 1006, /* there was no close frame */
};

/* Whether a close frame may carry `code`. */
bool websocket_code_is_valid(unsigned int code);

#define WEBSOCKET_CODE_SIZE  2
#define WEBSOCKET_REASON_MAX (WEBSOCKET_CONTROL_MAX - WEBSOCKET_CODE_SIZE)

/* Room the caller lends to each call; also the longest masked piece when streaming. */
#define WEBSOCKET_SCRATCH_SIZE ((size_t) 16 * 1024)

enum websocket_event_type {
    WEBSOCKET_EVENT_DATA, /* a whole message, or a piece of one when streaming */
    WEBSOCKET_EVENT_PING,
    WEBSOCKET_EVENT_PONG,
    WEBSOCKET_EVENT_CLOSE, /* the last event: `code`, and the reason in `bytes` */
    WEBSOCKET_EVENT_FAULT, /* the last event: `code` to close with, and why in `bytes` */
};

struct websocket_event {
    enum websocket_event_type type;
    enum websocket_opcode kind; /* of data: WEBSOCKET_TEXT or WEBSOCKET_BINARY */
    bool first;                 /* data: begins a message */
    bool last;                  /* data: ends it */
    uint16_t code;              /* of close and fault */
    const char *bytes;          /* borrowed until the next call; never NULL */
    size_t length;
};

struct websocket_reader {
    struct websocket_frame_parser parser;
    struct websocket_frame frame;
    uint64_t frame_taken;       /* payload bytes of `frame` so far */
    uint64_t message_max;       /* longest message accepted */
    uint64_t message_announced; /* its frames so far, this one in full */
    uint32_t frames_max;        /* most frames of one message */
    uint32_t message_frames;    /* its frames so far */
    enum websocket_opcode kind; /* of the message */
    bool streaming : 1;         /* hand out pieces, keep nothing */
    bool discarding : 1;        /* drop data, watch only for control frames */
    bool finished : 1;          /* close or fault was told: all further bytes are dropped */
    bool in_frame : 1;          /* `frame` is valid and its payload incomplete */
    bool in_message : 1;        /* between the first and the last frame of a message */
    bool piece_told : 1;        /* the message's first piece was handed out */
    struct utf8_check utf8;     /* of a text message */
    size_t gathered;            /* bytes in `message` */
    size_t capacity;            /* of `message` */
    char *message;              /* owned: what is being gathered, or NULL */
    char *lent;                 /* owned: behind the last event, or NULL */
    char control[WEBSOCKET_CONTROL_MAX]; /* payload of a control frame */
};

/* Start on an empty connection. `message_max` caps memory in whole-message mode. */
void websocket_reader_init(struct websocket_reader *reader, enum websocket_role role,
                           bool streaming, uint64_t message_max, uint32_t frames_max);

/* Free the buffers. The reader may not be used after that. */
void websocket_reader_done(struct websocket_reader *reader);

/* Read from the front of `*bytes`, moving `*bytes` and `*length` past what was used, up to the next
 * event. Returns true with the event, or false when all bytes were used without one. The event's
 * bytes lie in the input, in `scratch` or in the reader; they are good until the next call, or
 * until websocket_reader_release. */
bool websocket_reader_next(struct websocket_reader *reader, const char **bytes, size_t *length,
                           char scratch[static WEBSOCKET_SCRATCH_SIZE],
                           struct websocket_event *ret_event);

/* The last event is done with: an idle reader keeps no memory. */
void websocket_reader_release(struct websocket_reader *reader);

/* From now on drop messages, including one half gathered, without looking into them: we are
 * closing and wait for the peer's close frame only. */
void websocket_reader_discard(struct websocket_reader *reader);
