/* An HTTP/1.1 server on one loop.
 *
 * Listens on TCP and unix sockets, plain or TLS; parses strictly; routes through tables; enforces
 * every limit of struct http_server_options; keeps connections alive, takes pipelined requests in
 * order, streams bodies both ways with back-pressure; logs one line per request; drains on request.
 *
 * Life: http_server_new -> http_server_listen (any number) -> loop_run ... http_server_drain, which
 * ends in on_drained -> http_server_free. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/list.h"
#include "net/http/http_parser.h"
#include "net/http/http_request.h"
#include "net/http/http_route.h"
#include "net/loop.h"
#include "net/tls.h"

/* A handler of requests. */
typedef void http_handler(struct http_request *request);

struct http_server_options {
    const struct http_router *router; /* borrowed */
    const struct clock *clock;        /* borrowed */
    struct log *log;                  /* borrowed, may be NULL: no access log */
    /* Asked first of all: whether somebody else answers this host (previews). Returns who, or NULL;
     * the request is then neither admitted nor routed, and its body has no limit. May be NULL. */
    http_handler *(*intercept)(struct http_request *request, void *data);
    void *intercept_data; /* borrowed */
    /* Asked before routing: whether this request may go on. Returns 0, or -1 with the error to
     * answer. It may set request->intercepted to answer by itself. May be NULL. */
    int (*admit)(struct http_request *request, void *data, struct error *err);
    /* The same once request->match names the route; not asked for the fallback. May be NULL. */
    int (*authorize)(struct http_request *request, void *data, struct error *err);
    /* Told of every error before its reply is written, whoever refuses. May be NULL. */
    void (*on_error)(struct http_request *request, const struct error *error, void *data);
    void *admit_data; /* borrowed: for all three */
    /* Of what request->caller points to, plain data that may be copied: whoever takes over a
     * connection keeps a copy, for http_server_review. 0: nobody is known. */
    size_t caller_size;
    /* For errors outside every dialect; NULL: plain text. */
    void (*encode_error)(const struct http_request *request, const struct error *error,
                         struct text *body, const char **ret_content_type);
    /* What answers a path that no table knows (a proxy); NULL: 404. */
    void (*fallback)(struct http_request *request);
    void *fallback_context;
    /* A connection has left, with the session it was adopted with, or a guest (NULL): whoever does
     * the accepting himself may take another. May be NULL. */
    void (*on_left)(void *session, void *data);
    void *left_data;        /* borrowed */
    bool takes_request_ids; /* the client is a daemon: its X-Request-Id is the request's id */
    size_t hidden_segments; /* of a path that are shown as "***" in the log: they hold tokens */

    struct http_limits limits;
    size_t connections_max;    /* more wait in the kernel's queue */
    uint64_t head_timeout_ms;  /* from the first byte of a head to its last */
    uint64_t body_timeout_ms;  /* between two pieces of a body that is wanted */
    uint64_t idle_timeout_ms;  /* between two requests */
    uint64_t stall_timeout_ms; /* a client that takes no byte of its reply */
};

#define HTTP_SERVER_OPTIONS_DEFAULT                                                                \
    {                                                                                              \
        .limits = HTTP_LIMITS_DEFAULT, .connections_max = 16384, .head_timeout_ms = 10000,         \
        .body_timeout_ms = 60000, .idle_timeout_ms = 75000, .stall_timeout_ms = 60000              \
    }

/* Numbers since the start, for metrics. */
struct http_server_counters {
    uint64_t connections;   /* accepted */
    uint64_t requests;      /* answered */
    uint64_t replies[6];    /* by first digit of the status; [0] unused */
    uint64_t refused_heads; /* malformed or too large */
    uint64_t timeouts;
    uint64_t bytes_received; /* bodies */
    uint64_t bytes_sent;     /* bodies */
};

struct http_server;

/* `options` is copied; what it points to is borrowed and outlives the server. */
struct http_server *http_server_new(struct loop *loop, const struct http_server_options *options);

/* Start listening on `address`: "127.0.0.1:8787", "[::1]:8787", port 0 for any free one, or
 * "unix:/path". `tls` is borrowed, NULL for plain. Returns 0, or -1 with a sentence. */
int http_server_listen(struct http_server *server, const char *address, struct tls_context *tls,
                       struct error *err);

/* The same on a socket that listens already, which is taken over also on failure. */
int http_server_listen_on(struct http_server *server, int fd, struct tls_context *tls,
                          struct error *err);

/* A connection that somebody else accepted, or that was something else before: a heap stream, which
 * is taken. It counts like any other, but connections_max is for whoever accepts to keep. */
struct http_adoption {
    const char *peer;
    bool is_tls;
    void *session; /* borrowed until on_left: whose requests these are; http_request_session */
    const char *pending; /* what came already; borrowed for the call */
    size_t pending_length;
};
void http_server_adopt(struct http_server *server, struct stream *stream,
                       const struct http_adoption *adoption);

/* End every connection and every guest now. Requests under way get their on_gone. */
void http_server_cut(struct http_server *server);

/* The port of the nth TCP listener, 0 when there is none: for port 0. */
uint16_t http_server_port(const struct http_server *server, size_t nth);

/* Stop accepting, close idle connections, let requests under way finish and then close theirs;
 * after `timeout_ms` cut the rest. `on_drained` is called once when the last one is gone. */
void http_server_drain(struct http_server *server, uint64_t timeout_ms,
                       void (*on_drained)(struct http_server *server, void *data), void *data);

/* Only after on_drained. */
void http_server_free(struct http_server *server);

const struct http_server_counters *http_server_counters(const struct http_server *server);
size_t http_server_connections(const struct http_server *server);
const struct clock *http_server_clock(const struct http_server *server);
struct loop *http_server_loop(const struct http_server *server);

/* How a guest is asked to end. */
enum http_leave {
    HTTP_LEAVE_POLITELY, /* the server drains */
    HTTP_LEAVE_NOW,      /* it has drained long enough */
    HTTP_LEAVE_EXPELLED, /* who asked for it may not any more: nothing more goes either way */
};

/* A protocol that took over a connection (WebSocket, tunnel) and that a draining server must wait
 * for. `on_shutdown` asks it to end, with a reason for people; `http_guest_leave` says that it
 * has. */
struct http_guest {
    struct list link;
    struct http_server *server;
    void *caller; /* owned: who asked for it; may be NULL */
    void (*on_shutdown)(struct http_guest *guest, enum http_leave how, const char *reason);
};

/* Who asks, for the guest that a request is about to become: a copy, which http_guest_enter takes.
 * NULL: nobody is known. */
void *http_guest_caller(const struct http_request *request);

void http_guest_enter(struct http_guest *guest, struct http_server *server, void *caller,
                      void (*on_shutdown)(struct http_guest *guest, enum http_leave how,
                                          const char *reason));
void http_guest_leave(struct http_guest *guest);

/* --- who may stay --------------------------------------------------------------------------- */

/* Whether this caller, who was let in, still may be there. Returns 0, or -1 with the error that a
 * request which has no reply yet is answered with; its message is told to the others, too. */
typedef int http_review(void *data, const void *caller, struct error *err);

struct http_expelled {
    size_t requests, guests;
};

/* Ask that of everybody who lasts: callers of requests under way and of guests. Who may not stay is
 * expelled: a request without a reply gets the error, an event stream ends with a comment, a
 * WebSocket is closed with 1008, and every other connection is cut. Not from inside a handler. */
struct http_expelled http_server_review(struct http_server *server, http_review *review,
                                        void *data);
