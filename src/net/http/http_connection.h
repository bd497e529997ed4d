/* Inside the HTTP server: one connection, and what its parts (connection, body, reply) share.
 * Nothing outside net/http_*.c includes this.
 *
 *      bytes                 head                      body                     reply
 *   stream ──► parser ──► http_dispatch ──► handler ──► http_body ... handler ──► http_reply
 *      ▲                        │ one request at a time; bytes that came early wait in `early`   │
 *      └────────────────────────┴──────────────────────── output ◄──────────────────────────────┘
 */
#pragma once

#include "base/trace.h"
#include "net/http/http_parser.h"
#include "net/http/http_request.h"
#include "net/http/http_server.h"
#include "net/loop.h"
#include "net/stream.h"

#define HTTP_PEER_MAX 64

enum http_wait {
    HTTP_WAIT_IDLE,  /* for the first byte of a request */
    HTTP_WAIT_HEAD,  /* for the rest of a head */
    HTTP_WAIT_BODY,  /* for more of a body that is wanted */
    HTTP_WAIT_REPLY, /* for the handler, or for the client to take its reply */
    HTTP_WAIT_CLOSE, /* for the client to notice that we are done (lingering close) */
};

struct http_connection {
    struct http_server *server;
    struct list link;
    struct stream *stream; /* owned until an upgrade hands it over */
    void *session;         /* borrowed: of http_server_adopt */
    struct deadline deadline;
    struct loop_task advance; /* go on with early bytes, outside of any handler */
    struct http_parser parser;
    struct http_request *request; /* owned; NULL between requests */
    struct text early;            /* bytes that arrived before we could use them */
    const char *feed_at;          /* borrowed: what the running feed has not used yet */
    size_t feed_left;
    uint64_t sent_before; /* stream->bytes_sent when the stall timer was set */
    enum http_wait wait;
    bool is_tls : 1;
    bool is_unix : 1;
    bool close_after_reply : 1;
    bool dispatched : 1;      /* the handler of `request` was called */
    bool parser_upgraded : 1; /* the parser waits for the outcome of an upgrade */
    bool peer_ended : 1;
    bool feeding : 1; /* inside the parser or a handler: do not recurse */
    bool dying : 1;   /* closing; memory goes when both handles are closed */
    uint8_t handles;  /* stream and deadline still open */
    char peer[HTTP_PEER_MAX];
};

struct http_server {
    struct loop *loop;
    struct text scratch; /* the reply head being written */
    struct http_server_options options;
    struct http_server_counters counters;
    struct list listeners;
    struct list connections;
    struct list guests;
    struct http_request *spare_requests; /* owned: recycled with one block of their pool */
    size_t spare_request_count;
    size_t connection_count;
    size_t guest_count;
    size_t listener_count; /* still open or closing */
    struct deadline drain_deadline;
    void (*on_drained)(struct http_server *server, void *data);
    void *drain_data;
    struct loop_task drained;
    uint8_t random[64 * ID_RANDOM_SIZE]; /* for ids; what is left of them is at its beginning */
    size_t random_left;
    char date[HTTP_DATE_SIZE];
    int64_t date_second;
    bool draining : 1;
    bool drain_timer_closing : 1;
    bool accept_paused : 1;
};

/* http_connection.c */
int http_connection_new(struct http_server *server, int fd, struct tls_context *tls, bool is_unix,
                        const char *peer);
void http_connection_adopt(struct http_server *server, struct stream *stream,
                           const struct http_adoption *adoption);
void http_connection_cut(struct http_connection *connection);
/* What the client must do next, and by when, follows from the state: call after changing it. */
void http_connection_settle(struct http_connection *connection);
/* Answer what cannot be parsed or was not sent in time, then close. */
void http_connection_refuse(struct http_connection *connection, const struct error *error);
/* The reply of the current request is complete (or its body is still coming in). */
void http_connection_reply_done(struct http_connection *connection);
/* The reply is complete and the rest of the body is not worth reading: close. */
void http_connection_give_up_body(struct http_connection *connection);
/* Close now if nothing is under way: for draining. */
void http_connection_drain(struct http_connection *connection);
/* Give up the stream: the connection frees itself. */
struct stream *http_connection_hand_over(struct http_connection *connection,
                                         struct text *ret_pending);

/* The rest of the scope is done for the connection's request, if it has one. */
#define HTTP_TRACE(connection)                                                                     \
    TRACE_SCOPE TRACE_NAME(__LINE__) =                                                             \
        trace_enter((connection)->request ? &(connection)->request->id : NULL,                     \
                    (connection)->request ? &(connection)->request->sandbox : NULL)

/* http_dispatch.c */
/* Find the route of the request whose head is complete and call its handler, or answer why not. */
void http_dispatch(struct http_connection *connection);

/* http_body.c */
void http_body_piece(struct http_request *request, const char *bytes, size_t length);
void http_body_end(struct http_request *request);
/* Whether the announced length fits the route's limit: 0, or -1 with ERR_TOO_LARGE. */
int http_body_check(struct http_request *request, struct error *err);

/* http_reply.c */
/* Errors in the dialect of the request, whatever its state; used by the server itself. */
void http_reply_error_now(struct http_request *request, const struct error *error);

/* http_server.c */
struct http_request *http_server_take_request(struct http_server *server);
void http_server_give_request(struct http_server *server, struct http_request *request);
void http_server_connection_gone(struct http_server *server, void *session);
const char *http_server_date(struct http_server *server);
void http_server_log(struct http_server *server, struct http_request *request);
