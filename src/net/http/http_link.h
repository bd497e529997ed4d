/* Inside the HTTP client: what its three parts share. Nothing outside http_origin.c, http_link.c
 * and http_exchange.c includes this.
 *
 *     http_exchange   one request and its response, as the caller sees it
 *          │ placed on
 *     http_link       one connection: parser, deadlines; busy with one exchange, or idle
 *          │ pooled by
 *     http_origin     one peer: dials, keeps idle links, queues exchanges that must wait
 */
#pragma once

#include "base/list.h"
#include "base/trace.h"
#include "net/http/http_client.h"
#include "sys/network/sys_address.h"

/* One connection of an origin. */
struct http_link {
    struct list link; /* in the origin's busy or idle list */
    struct http_origin *origin;
    struct stream *stream; /* owned until an upgrade hands it over */
    struct deadline deadline;
    struct http_parser parser;
    struct pool pool;               /* of the response's head */
    struct http_exchange *exchange; /* NULL while idle */
    uint64_t sent_before;
    unsigned int interim;
    uint8_t handles;
    bool connected : 1;
    bool idle : 1;          /* in the origin's idle list */
    bool reused : 1;        /* carried an exchange before */
    bool awaits_answer : 1; /* the deadline is for the peer's answer, not for our request */
    bool dying : 1;
};

struct http_exchange {
    struct list link; /* in the origin's waiting list */
    struct http_origin *origin;
    struct http_link *connection;     /* NULL while waiting and when it is over */
    const struct http_head *response; /* of the connection's parser; NULL before the head */
    const struct http_exchange_events *events;
    void *data;
    struct trace_context trace; /* of whoever started it; its events are told as that */
    struct text head;           /* the request's, and body bytes until there is a connection */
    struct loop_task fail_task;
    struct error error;
    int64_t body_left; /* promised bytes still to come, or HTTP_LENGTH_UNKNOWN */
    bool body_ended : 1;
    bool chunked : 1;
    bool is_head : 1;
    bool is_safe : 1; /* may be sent again when a kept connection turns out dead */
    bool wants_upgrade : 1;
    bool paused : 1;
};

struct http_origin {
    struct loop *loop;
    struct http_origin_options options;
    struct sys_address address;
    struct list busy;
    struct list idle; /* newest last */
    struct list waiting;
    size_t open; /* links that still count: not yet closing */
    size_t idle_count;
    size_t waiting_count;
    size_t remains; /* links whose memory is not gone yet */
    void (*on_closed)(struct http_origin *origin, void *data);
    void *closed_data;
    struct loop_task closed_task;
    bool closing;
};

/* http_origin.c */
/* A connection for the exchange, or a place in the queue; failures come later as events. */
void http_origin_place(struct http_exchange *exchange);
/* A connection came free: let those who wait have it. */
void http_origin_advance(struct http_origin *origin);
/* To the head of the queue: for an exchange whose connection turned out dead. */
void http_origin_requeue(struct http_exchange *exchange);
/* A link's memory is gone. */
void http_origin_link_gone(struct http_origin *origin);

/* The rest of the scope is done for the link's exchange, if it has one. */
#define HTTP_LINK_TRACE(connection)                                                                \
    TRACE_SCOPE TRACE_NAME(__LINE__) =                                                             \
        trace_enter((connection)->exchange ? &(connection)->exchange->trace.request : NULL,        \
                    (connection)->exchange ? &(connection)->exchange->trace.sandbox : NULL)

/* http_link.c */
/* A link on a connected or connecting socket, which is taken over on success. */
int http_link_new(struct http_origin *origin, int fd, bool connecting, struct http_link **ret_link);
void http_link_attach(struct http_link *link, struct http_exchange *exchange);
/* Take the link out of use and close it; its exchange must have been dealt with. */
void http_link_leave(struct http_link *link);
/* What the peer must do next, and by when, follows from the state: call after changing it. */
void http_link_expect(struct http_link *link);

/* http_exchange.c */
/* The last event of an exchange that went wrong; its link goes with it. */
void http_exchange_fail(struct http_exchange *exchange, const struct error *error);
void http_exchange_fail_later(struct http_exchange *exchange, enum err_code code, int system,
                              const char *text);
void http_exchange_free(struct http_exchange *exchange);
