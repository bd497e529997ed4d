/* A WebSocket: one connection after the handshake, as server or client (RFC 6455).
 *
 * Ownership. The owner embeds a `struct websocket` in an object of its own. The stream, allocated
 * by itself as http_reply_upgrade hands it over, becomes the WebSocket's, which closes and frees
 * it.
 *
 *     websocket_init                    open: messages both ways
 *          |
 *          |  websocket_close, or a close frame, a fault, a lost or silent peer
 *          v
 *     on_close     once                 the outcome is known, no other message follows; the TCP
 *          |                            connection may linger a moment for a clean end
 *          v
 *     on_released  once, always last    the stream is gone, and the memory of the WebSocket may be
 *                                       reused: here the owner frees itself, never earlier
 *
 * websocket_abort leads to on_released without on_close. on_released never comes from inside a
 * function of this header. Every event may call every function except websocket_init; from
 * on_close on they do nothing, except that websocket_abort cuts the lingering short.
 *
 * Back-pressure. When websocket_is_full, stop sending until on_drain. A consumer that cannot keep
 * up calls websocket_pause: no message follows, not even one that was already read, and the peer's
 * writes stall. A paused connection does not expect signs of life.
 *
 * Memory. An idle connection keeps no buffers. A message costs what arrived of it (at most twice),
 * never more than `message_max`; streaming costs nothing. Pings are answered at once, but while the
 * output is full only the newest one will be: a peer that pings and never reads costs nothing.
 *
 * All functions belong to the loop's thread; none blocks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/stream.h"
#include "net/websocket/websocket_frame.h"
#include "net/websocket/websocket_reader.h"

#define WEBSOCKET_MESSAGE_MAX      ((uint64_t) 1024 * 1024)
#define WEBSOCKET_FRAMES_MAX       16384
#define WEBSOCKET_PONG_TIMEOUT_MS  20000
#define WEBSOCKET_CLOSE_TIMEOUT_MS 5000

/* Keys drawn from the kernel at once, so that a small frame of a client costs no system call. */
#define WEBSOCKET_KEYS_AT_ONCE 16

struct websocket_options {
    enum websocket_role role;
    bool streaming;            /* on_piece as bytes arrive, instead of on_message */
    uint64_t message_max;      /* 0: WEBSOCKET_MESSAGE_MAX; longer: close 1009 */
    uint32_t frames_max;       /* 0: WEBSOCKET_FRAMES_MAX; a message of more: close 1008 */
    uint64_t ping_interval_ms; /* ping a peer silent for so long; 0: never */
    uint64_t pong_timeout_ms;  /* a pinged peer silent for so long is lost; 0: the default */
    uint64_t close_timeout_ms; /* for the closing handshake, and for TCP's end; 0: the default */
};

/* Part of a message. A piece of text may end inside a character. Only the last may be empty. */
struct websocket_piece {
    enum websocket_opcode kind; /* WEBSOCKET_TEXT or WEBSOCKET_BINARY */
    bool first;
    bool last;
    const char *bytes; /* borrowed for the call */
    size_t length;
};

struct websocket;

struct websocket_events {
    /* A whole message, WEBSOCKET_TEXT (valid UTF-8, not NUL-terminated) or WEBSOCKET_BINARY;
     * borrowed for the call, never NULL. Needed unless streaming. */
    void (*on_message)(struct websocket *ws, enum websocket_opcode kind, const char *bytes,
                       size_t length);
    /* Needed when streaming. If the message goes wrong later on, on_close says so. */
    void (*on_piece)(struct websocket *ws, const struct websocket_piece *piece);
    /* The answer to websocket_ping, or an unasked one. Optional. */
    void (*on_pong)(struct websocket *ws, const char *bytes, size_t length);
    /* The output has room again. Optional. */
    void (*on_drain)(struct websocket *ws);
    /* The end. `clean`: close frames were exchanged, `code` and `reason` are the peer's (code
     * WEBSOCKET_CODE_NONE: it gave none). Else `code` is what we closed with because of a fault of
     * the peer, or WEBSOCKET_CODE_LOST; `reason` says why. Borrowed, NUL-terminated. Optional. */
    void (*on_close)(struct websocket *ws, unsigned int code, const char *reason, bool clean);
    /* See above. */
    void (*on_released)(struct websocket *ws);
};

enum websocket_state {
    WEBSOCKET_OPEN,
    WEBSOCKET_CLOSING,   /* our close frame was sent, the peer's is awaited */
    WEBSOCKET_LINGERING, /* on_close was told, TCP's end is awaited */
    WEBSOCKET_RELEASING, /* on_released is due */
};

struct websocket {
    struct stream *stream;                 /* owned */
    const struct websocket_events *events; /* borrowed: static */
    struct websocket_options options;      /* defaults filled in */
    struct websocket_reader reader;
    struct deadline deadline; /* the next ping, pong or end, by state */
    struct loop_task replay;  /* end of turn: read on in `held` */
    char *held;               /* owned: bytes read but not looked at, or NULL */
    size_t held_length;
    size_t held_at;     /* bytes of `held` done with */
    uint64_t heard_at;  /* loop_now() when the peer last sent something */
    uint64_t pinged_at; /* loop_now() of the ping not answered yet; 0: none */
    uint64_t sent_then; /* stream's `given` when we last looked for signs of life */
    enum websocket_state state;
    uint8_t handles;         /* stream and deadline still open */
    bool paused : 1;         /* by the consumer */
    bool reading : 1;        /* inside the reading loop */
    bool sending_pieces : 1; /* our message is unfinished */
    bool pong_owed : 1;      /* the output was full */
    uint8_t pong_length;
    char pong[WEBSOCKET_CONTROL_MAX]; /* payload of the owed pong */
    uint8_t keys_left;
    uint8_t keys[WEBSOCKET_KEYS_AT_ONCE][WEBSOCKET_KEY_SIZE]; /* random, used once each */
};

/* Start on `stream`, which is connected and past the handshake; it is taken over. `pending` are
 * bytes that came behind the handshake in the same read (may be NULL with length 0); they are
 * copied and read at the end of the turn. Events come only after this returns. Does not fail. */
void websocket_init(struct websocket *ws, struct stream *stream,
                    const struct websocket_options *options, const struct websocket_events *events,
                    const char *pending, size_t pending_length);

/* Send a whole message; `kind` is WEBSOCKET_TEXT (must be UTF-8: the peer checks, we do not) or
 * WEBSOCKET_BINARY. Returns 0 when it was taken, -EPIPE when the connection is closing (it is
 * dropped), -EBUSY between the pieces of another message. */
int websocket_send(struct websocket *ws, enum websocket_opcode kind, const void *bytes,
                   size_t length);

/* Send a message piece by piece: each piece is a frame, `last` ends the message. `kind` counts for
 * the first piece only. Returns 0 or -EPIPE. */
int websocket_send_piece(struct websocket *ws, enum websocket_opcode kind, bool last,
                         const void *bytes, size_t length);

/* Ping with a payload of our own. Returns 0, -EPIPE, or -EMSGSIZE above WEBSOCKET_CONTROL_MAX. */
int websocket_ping(struct websocket *ws, const void *bytes, size_t length);

/* Begin the closing handshake: nothing more is sent or delivered, on_close follows. `code` as
 * websocket_code_is_valid, or WEBSOCKET_CODE_NONE for an empty close frame. A reason (may be NULL)
 * is cut to WEBSOCKET_REASON_MAX bytes at a character; one that is not UTF-8 is left out. Also ends
 * a pause. Returns 0 (also when closing already) or -EINVAL for a code that may not be sent. */
int websocket_close(struct websocket *ws, unsigned int code, const char *reason);

/* End without ceremony: what is queued is lost. on_released follows, on_close does not. */
void websocket_abort(struct websocket *ws);

void websocket_pause(struct websocket *ws);

/* Messages held back come at the end of this turn. */
void websocket_resume(struct websocket *ws);

/* Whether a well-behaved producer should wait for on_drain. */
static inline bool websocket_is_full(const struct websocket *ws)
{
    return stream_is_full(ws->stream);
}
