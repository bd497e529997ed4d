/* An HTTP/1.1 client for peers that are not trusted: sandbox agents, and whatever runs on a port
 * inside a sandbox.
 *
 * An origin is one peer (a TCP or unix address, or a dialler that hands out sockets) with its pool
 * of kept connections. An exchange is one request and its response, streamed both ways with
 * back-pressure. The peer may be hostile: its heads, interim responses and silence are bounded,
 * data nobody asked for ends its connection, and at most `connections_max` connections and
 * `waiting_max` waiting exchanges exist per origin, so that one peer cannot eat what others need.
 *
 *     exchange = http_exchange_start(origin, &request, &events, data);
 *     http_exchange_write(exchange, ...); http_exchange_end(exchange);     when it has a body
 *     -> on_head, on_body ..., on_end            or on_upgrade             or on_failure
 *
 * Exactly one of on_end, on_upgrade, on_failure comes, last, and never from inside
 * http_exchange_start; afterwards the exchange is gone. After http_exchange_cancel none comes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "net/http/http_head.h"
#include "net/http/http_parser.h"
#include "net/loop.h"
#include "net/stream.h"
#include "net/tls.h"

struct http_origin;
struct http_exchange;

struct http_origin_options {
    /* Where sockets come from instead of the address: returns a non-blocking socket that is
     * connected or connecting, or -errno. `ret_connecting` says which. */
    int (*dial)(void *data, bool *ret_connecting);
    void *dial_data;
    struct tls_context *tls; /* borrowed; NULL for plain */
    const char *tls_host;    /* the name the peer must prove */
    struct http_limits limits;
    size_t connections_max;
    size_t idle_max;    /* connections kept for the next exchange */
    size_t waiting_max; /* exchanges that wait for a connection */
    uint64_t connect_timeout_ms;
    uint64_t head_timeout_ms;  /* from the request's last byte to the response's head; 0: none */
    uint64_t body_timeout_ms;  /* between two pieces of a response; 0: none (event streams) */
    uint64_t stall_timeout_ms; /* a peer that takes no byte of the request */
    uint64_t idle_timeout_ms;
    bool is_agent; /* a program of ours: told in X-Request-Id for which request this is */
};

#define HTTP_ORIGIN_OPTIONS_DEFAULT                                                                \
    {                                                                                              \
        .limits = HTTP_LIMITS_DEFAULT, .connections_max = 256, .idle_max = 128,                    \
        .waiting_max = 1024, .connect_timeout_ms = 5000, .head_timeout_ms = 0,                     \
        .body_timeout_ms = 0, .stall_timeout_ms = 60000, .idle_timeout_ms = 30000                  \
    }

/* `address` as in http_server_listen; it may be NULL when options->dial is set. `options` may be
 * NULL for the defaults and is copied. NULL with ERR_INVALID for a bad address. */
struct http_origin *http_origin_new(struct loop *loop, const char *address,
                                    const struct http_origin_options *options, struct error *err);

/* Fail every exchange, close every connection, then call `on_closed` once (may be NULL). The origin
 * is gone when that returns. */
void http_origin_close(struct http_origin *origin,
                       void (*on_closed)(struct http_origin *origin, void *data), void *data);

/* Connections open now, idle ones included. */
size_t http_origin_connections(const struct http_origin *origin);

/* Whether the next exchange would find a kept connection. */
bool http_origin_has_idle(const struct http_origin *origin);

/* Whether an exchange is under way or waits. Tunnels made of one do not count: they have left. */
bool http_origin_is_busy(const struct http_origin *origin);

struct http_exchange_request {
    const char *method;
    const char *target;
    const struct http_header *headers; /* Host and all others but framing; borrowed for the call */
    size_t header_count;
    int64_t body_length; /* 0: none; HTTP_LENGTH_UNKNOWN: chunked */
    bool send_length;    /* say "Content-Length: 0" when there is no body */
    bool upgrade;        /* a 101 is welcome */
};

struct http_exchange_events {
    /* The response's head is there: http_exchange_head. */
    void (*on_head)(struct http_exchange *exchange);
    void (*on_body)(struct http_exchange *exchange, const char *bytes, size_t length);
    void (*on_end)(struct http_exchange *exchange);
    void (*on_drain)(struct http_exchange *exchange); /* optional: the request body may go on */
    /* 101: the stream becomes the receiver's (set owner and events now, free it with stream_close
     * and stream_free); `pending` came behind the head, borrowed. Needed when upgrade was set. */
    void (*on_upgrade)(struct http_exchange *exchange, struct stream *stream, const char *pending,
                       size_t length);
    void (*on_failure)(struct http_exchange *exchange, const struct error *error);
};

/* Header names and values are not checked here: they come from parsed heads or from us. */
struct http_exchange *http_exchange_start(struct http_origin *origin,
                                          const struct http_exchange_request *request,
                                          const struct http_exchange_events *events, void *data);

void *http_exchange_data(const struct http_exchange *exchange);

/* The response's head, from on_head on. Borrowed: lives until the last event returns. */
const struct http_head *http_exchange_head(const struct http_exchange *exchange);

/* The request's body. When http_exchange_is_full, wait for on_drain. */
void http_exchange_write(struct http_exchange *exchange, const void *bytes, size_t length);
bool http_exchange_is_full(const struct http_exchange *exchange);
void http_exchange_end(struct http_exchange *exchange);

/* The response's body. After a pause at most LOOP_SCRATCH_SIZE bytes still arrive. */
void http_exchange_pause(struct http_exchange *exchange);
void http_exchange_resume(struct http_exchange *exchange);

/* Give up: closes its connection; no event follows and the exchange is gone. */
void http_exchange_cancel(struct http_exchange *exchange);
