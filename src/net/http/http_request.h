/* One request and its reply, as a handler sees them.
 *
 * A handler is called once the head is there. It answers at once, or later from any callback on the
 * loop's thread. The rules are few:
 *
 * - Reply exactly once: http_reply / http_reply_text / http_reply_error, or http_reply_begin ...
 *   http_reply_write ... http_reply_end for a stream.
 * - A handler that returns before its reply is complete sets `on_gone`: the last call it gets when
 *   the client leaves or the connection fails. Afterwards the request must not be touched. A
 * handler that returns with neither reply nor on_gone is a bug and is answered with 500.
 * - The body is taken with http_request_collect (all of it, up to the route's limit) or
 *   http_request_stream (piece by piece, with back-pressure). A handler that wants none ignores it.
 * - Whatever lives as long as the request comes from `pool`.
 *
 * The request ends with http_reply_end (or the whole replies, which imply it): its memory is gone
 * when that call returns. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/error.h"
#include "base/id.h"
#include "base/pool.h"
#include "net/http/http_head.h"
#include "net/http/http_route.h"
#include "net/stream.h"
#include "net/url.h"

struct http_connection;
struct http_server;

enum http_request_state {
    HTTP_REQUEST_FRESH,    /* no reply yet */
    HTTP_REQUEST_REPLYING, /* head sent, body under way */
    HTTP_REQUEST_REPLIED,  /* complete, or handed over */
};

struct http_request;

/* Somebody who watches a request from outside of its handler, such as to keep its answer for when
 * the same is asked again. */
struct http_watch {
    /* A whole reply is about to be sent; its body is borrowed. True: it is held back, request->
     * on_gone is the watcher's from now on, and it is sent by http_reply later, which asks again.
     * For a reply that comes in pieces `body` is NULL, and nothing can be held back. */
    bool (*on_reply)(struct http_watch *watch, struct http_request *request, int status,
                     const char *content_type, const void *body, size_t length);
    /* The request is over, in whatever way: the last call. */
    void (*on_over)(struct http_watch *watch);
};

struct http_request {
    struct pool pool;
    const struct http_head *head;
    struct url_target target;
    struct http_match match;
    void *context;      /* borrowed: of the dialect that is mounted */
    const void *caller; /* who asks: set by the server's `authorize`, in the pool; may be NULL.
                         * Of caller_size bytes (http_server_options) */
    struct id id;       /* in the log and in X-Request-Id */
    struct id sandbox;  /* what it turned out to be about, for the trace; "": nothing known */
    const char *peer;   /* borrowed: address of the client as text */
    bool is_local;      /* over a unix socket */
    bool is_secure;     /* over TLS */

    /* The handler's own. */
    void *data;
    void (*on_gone)(struct http_request *request);
    void (*on_drain)(struct http_request *request);

    /* The request is over, in whatever way; the very last call, before its memory goes. Not while
     * an upgraded connection lasts: that is the new owner's to know. */
    void (*on_ended)(struct http_request *request);
    void *ended_data;

    struct http_watch *watch; /* borrowed, may be NULL */

    /* Set by http_request_stream. */
    void (*on_body)(struct http_request *request, const char *bytes, size_t length);
    void (*on_body_end)(struct http_request *request);

    /* Below: the server's. */
    struct http_connection *connection;
    void (*intercepted)(struct http_request *request); /* who answers instead of a route */
    void (*on_collected)(struct http_request *request, const char *body, size_t length);
    struct text collected;
    struct text extra_headers;
    uint64_t started_ns;
    uint64_t body_received;
    uint64_t body_sent;
    uint64_t body_limit;
    int64_t reply_length; /* promised by http_reply_begin, or HTTP_LENGTH_UNKNOWN */
    enum http_request_state state;
    int status;
    bool body_wanted : 1;
    bool body_done : 1;
    bool body_paused : 1;
    bool continue_owed : 1;  /* the client waits for 100 Continue */
    bool chunked : 1;        /* our reply is */
    bool no_reply_body : 1;  /* HEAD, 204, 304 */
    bool is_upgrade : 1;     /* the parser stopped: what follows is not HTTP */
    bool has_date : 1;       /* among the headers added to the reply */
    bool has_request_id : 1; /* likewise */
    bool is_events : 1;      /* our reply is an event stream */
};

/* The server a request came to. */
struct http_server *http_request_server(const struct http_request *request);

/* --- what was asked ------------------------------------------------------------------------- */

/* A header (any case), or NULL. */
static inline const char *http_request_header(const struct http_request *request, const char *name)
{
    return http_head_get(request->head, name);
}

/* A {name} of the route's pattern. */
static inline const char *http_request_parameter(const struct http_request *request,
                                                 const char *name)
{
    return http_match_get(&request->match, name);
}

/* A query parameter, decoded into the pool; NULL when it is not there or malformed. */
const char *http_request_query(struct http_request *request, const char *name);

/* Host as the client means it: of an absolute target, else of the Host header, else "". */
const char *http_request_host(struct http_request *request);

/* --- the body ------------------------------------------------------------------------------- */

/* Take the whole body (up to the route's limit) and then call `on_collected` once with it,
 * NUL-terminated, borrowed for the call. Set on_gone before. A body over the limit is answered
 * with 413 by the server, after on_gone. */
void http_request_collect(struct http_request *request,
                          void (*on_collected)(struct http_request *request, const char *body,
                                               size_t length));

/* Take the body in pieces: on_body for each (borrowed), on_body_end after the last. */
void http_request_stream(struct http_request *request,
                         void (*on_body)(struct http_request *request, const char *bytes,
                                         size_t length),
                         void (*on_body_end)(struct http_request *request));

/* Stop and continue reading. After a pause at most LOOP_SCRATCH_SIZE bytes still arrive. */
void http_request_pause(struct http_request *request);
void http_request_resume(struct http_request *request);

/* --- the reply ------------------------------------------------------------------------------ */

/* Add a header to the coming reply. Names and values that are not valid (line breaks) are refused:
 * returns -EINVAL and adds nothing. Content-Length, Transfer-Encoding and Connection are
 * the server's own; Date and X-Request-Id are added unless given here. */
int http_reply_header(struct http_request *request, const char *name, const char *value);

/* The whole reply. `content_type` may be NULL. */
void http_reply(struct http_request *request, int status, const char *content_type,
                const void *body, size_t length);

/* The same for a string. */
void http_reply_text(struct http_request *request, int status, const char *content_type,
                     const char *body);

/* Answer an error in the dialect of the route; status from the one table. When the reply has begun
 * already the connection is cut instead, which is how a client learns that a stream is broken. */
void http_reply_error(struct http_request *request, const struct error *error);

/* Begin a reply whose body follows: `length` bytes, or chunks for HTTP_LENGTH_UNKNOWN. */
void http_reply_begin(struct http_request *request, int status, const char *content_type,
                      int64_t length);

/* A piece of the body. Never blocks; when http_reply_is_full, wait for on_drain. */
void http_reply_write(struct http_request *request, const void *bytes, size_t length);

/* The same in up to HTTP_PARTS_MAX parts, which travel as one. */
#define HTTP_PARTS_MAX 4
void http_reply_write_parts(struct http_request *request, const struct iovec *parts, int count);

bool http_reply_is_full(const struct http_request *request);

/* The reply is complete; ends the request. Writing less than was promised cuts the connection. */
void http_reply_end(struct http_request *request);

/* Cut the connection: the reply cannot be completed. Ends the request. */
void http_reply_cut(struct http_request *request);

/* Send 101 with the headers added before and hand the connection over. The stream becomes the
 * caller's: give it an owner and events at once (stream_set_owner), close it with stream_close and
 * stream_free. `ret_pending` (initialised by the caller) gets what the client sent ahead. Ends the
 * request: its memory is gone when this returns. Returns the stream, or NULL with `err` when the
 * client did not ask for an upgrade; nothing was sent then and the request goes on. */
struct stream *http_reply_upgrade(struct http_request *request, const char *protocol,
                                  struct text *ret_pending, struct error *err);

/* The same for CONNECT: says 200 and nothing else. Never NULL. */
struct stream *http_reply_connected(struct http_request *request, struct text *ret_pending);

/* What the connection was adopted with (http_server_adopt), or NULL. */
void *http_request_session(const struct http_request *request);
