/* A call: one client's request for an operation, and its answer, whichever way it came.
 *
 * operation->run is called once the arguments are there. It answers at once, or later from any
 * callback on the loop's thread. As for an HTTP request (http_request.h) the rules are few:
 *
 * - Answer exactly once, in one of four forms:
 *       call_reply                                        one JSON object
 *       call_fail                                         an error
 *       call_begin_events, call_event ..., call_end       a stream of events
 *       call_begin_bytes, call_write ..., call_end        raw bytes behind a JSON head
 *       call_begin_json, call_write ..., call_end         one JSON object in pieces
 *   The call ends with call_reply, call_fail, call_end and call_break: its memory is gone when they
 *   return. call_fail is for before anything was begun; afterwards say it in an event of the
 *   stream, or call_break.
 * - Who returns from `run` before the answer is complete sets `on_gone`: the last thing that is
 *   heard of a client that left, or cancelled its stream. Afterwards the call must not be touched.
 * - Never more than a bounded amount of memory for a slow client: while call_is_full, produce
 *   nothing and wait for `on_drain`.
 * - Whatever lives as long as the call comes from `pool`; strings of `arguments` live as long.
 *
 * Nothing of this is called back from inside a function of this header, but that call_begin_*,
 * call_event and call_write may find the client gone: then they do nothing and on_gone comes later.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "agent/api_error.h"
#include "agent/operation.h"
#include "base/pool.h"
#include "base/text.h"

struct agent;

#define CALL_BODY_DEFAULT ((size_t) 1024 * 1024)

/* The session id that means: no session, a process of its own. And the one of who names none. */
#define CALL_NO_SESSION      "__DISABLE_SESSION__"
#define CALL_DEFAULT_SESSION "default"
#define CALL_SESSION_MAX     ((size_t) 256)

struct call;

/* How a transport answers. Its functions are called in the right order and never after the end. */
struct call_transport {
    void (*reply)(struct call *call, const char *json, size_t length);
    void (*fail)(struct call *call, const struct api_error *error);
    void (*begin_events)(struct call *call);
    void (*event)(struct call *call, const char *type, const char *json, size_t length);
    void (*begin_bytes)(struct call *call, const char *head, size_t length);
    void (*begin_json)(struct call *call);
    void (*write)(struct call *call, const void *bytes, size_t length);
    void (*end)(struct call *call);
    void (*abandon)(struct call *call); /* cut what was begun */
    bool (*is_full)(const struct call *call);
    /* Let the input come, or wait. Only for calls that have input. */
    void (*want_input)(struct call *call, bool wanted);
    /* A JSON object may be any size, in pieces; otherwise at most CALL_REPLY_MAX bytes in all. */
    bool unlimited_json;
};

/* The most a transport must take as one JSON object. */
#define CALL_REPLY_MAX ((size_t) 48 * 1024 * 1024)

enum call_state { CALL_FRESH, CALL_EVENTS, CALL_BYTES, CALL_JSON };

struct call {
    struct agent *agent;               /* borrowed */
    const struct operation *operation; /* borrowed */
    struct pool *pool;                 /* borrowed: lives as long as the call */
    json_t *arguments;                 /* borrowed: an object */
    const char *session;               /* never NULL or empty: which one is meant */
    bool has_session;                  /* the client named it, in whatever way */
    bool has_input;                    /* a stream of bytes came along */

    /* The service's own. */
    void *data;
    void (*on_gone)(struct call *call);
    void (*on_drain)(struct call *call);
    /* Of the input: pieces, borrowed, and its end. `complete`: false when the sender broke it off.
     */
    void (*on_input)(struct call *call, const char *bytes, size_t length);
    void (*on_input_end)(struct call *call, bool complete);

    /* The transport's own. */
    const struct call_transport *transport; /* borrowed: static */
    enum call_state state;
    bool is_work; /* counted by quiesce.h until it ends */
};

/* --- what was asked -------------------------------------------------------------------------- */

/* Whether this can be a session's id: not empty, not only spaces, not too long. */
bool call_session_is_valid(const char *session);

/* Whether the call is for a process of its own, not for a session. */
bool call_is_sessionless(const struct call *call);

/* Start the input: on_input and on_input_end are set. It comes from the next turn on. */
void call_take_input(struct call *call);
void call_pause_input(struct call *call);
void call_resume_input(struct call *call);

/* --- the answer ------------------------------------------------------------------------------ */

/* `json` is one object. */
void call_reply(struct call *call, const struct text *json);

/* `error->operation` is filled in from the operation when it is NULL. */
void call_fail(struct call *call, struct api_error *error);

/* The same for a code and a message; the context is {}. */
void call_fail_text(struct call *call, enum api_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A validation error of one field: see api_error_field. */
void call_fail_field(struct call *call, const char *field, const char *message);

void call_begin_events(struct call *call);
/* `json` is one object without line breaks, and has its own "type". */
void call_event(struct call *call, const char *type, const char *json, size_t length);

/* `head` is a JSON object. Only RPC clients see it: as the result, in which "content" becomes the
 * stream. HTTP clients get the bytes. */
void call_begin_bytes(struct call *call, const struct text *head);

/* One JSON object, written in pieces. */
void call_begin_json(struct call *call);

/* A piece of bytes or of a JSON object. */
void call_write(struct call *call, const void *bytes, size_t length);

bool call_is_full(const struct call *call);

/* The answer is complete. */
void call_end(struct call *call);

/* The answer cannot be completed: the client learns that it is broken. */
void call_break(struct call *call);

/* --- for replies that most services have in common ------------------------------------------- */

struct json_writer;

/* "timestamp": now, as clients expect it. */
void call_add_timestamp(const struct call *call, struct json_writer *json);

/* Begin {"success":true, ... ; and end it with the timestamp and answer. */
void call_begin_success(struct json_writer *json, struct text *body);
void call_finish_success(struct call *call, struct json_writer *json, struct text *body);

/* --- for transports -------------------------------------------------------------------------- */

/* The client is gone, or room is there again: pass it on. */
void call_tell_gone(struct call *call);
void call_tell_drain(struct call *call);
