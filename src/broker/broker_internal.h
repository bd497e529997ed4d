/* Inside the broker: what its parts share. Nothing outside src/broker includes this. */
#pragma once

#include "base/list.h"
#include "base/pool.h"
#include "broker/authority.h"
#include "broker/engine.h"
#include "net/http/http_client.h"
#include "net/http/http_server.h"
#include "net/listener.h"
#include "net/outbound/dialer.h"
#include "net/tunnel.h"

struct broker_engine {
    struct broker_engine_options options;
    struct resolver *resolver;
    struct broker_counters counters;
    struct http_router *router; /* empty: requests are taken before they are routed */
    struct list outlets;
    size_t remains; /* outlets and passages whose memory is not gone */
    void (*on_closed)(void *context);
    void *closed_context;
    bool is_closing;
};

/* --- an outlet -------------------------------------------------------------------------------- */

enum door_kind { DOOR_PROXY, DOOR_TLS, DOOR_PLAIN, DOOR_FORWARD };

struct door {
    struct broker_outlet *outlet;
    enum door_kind kind;
    struct listener *listener; /* owned */
    char *host;                /* owned: of a forward */
    uint16_t port;
};

struct broker_outlet {
    struct list link; /* of the engine */
    struct broker_engine *engine;
    struct id sandbox, owner;
    struct door doors[BROKER_SOCKETS_MAX];
    size_t door_count;
    struct http_server *server;         /* owned */
    struct broker_authority *authority; /* owned; NULL: nothing is intercepted */
    struct list leaves, arrivals, tunnels, upstreams;
    size_t upstream_count;
    size_t arriving; /* arrivals whose memory is not gone */
    struct share_claim claim;
    struct deadline rest; /* until accepting is tried again */
    uint64_t told_ms;     /* when too many connections were told last */
    size_t handles;       /* doors, server, origins, deadline: until all are gone */
    bool is_resting, is_closing;
};

struct broker_outlet *outlet_open(struct broker_engine *engine, const struct broker_place *place,
                                  const int *sockets, struct error *err);
int outlet_change(struct broker_outlet *outlet, const struct broker_place *place,
                  struct error *err);
void outlet_cut(struct broker_outlet *outlet);
void outlet_close(struct broker_outlet *outlet);
/* A part of it is gone. */
void outlet_release(struct broker_outlet *outlet);
/* A connection has left: another may come. */
void outlet_has_room(struct broker_outlet *outlet);
void outlet_violated(struct broker_outlet *outlet, const char *reason, const char *host,
                     uint16_t port);
/* What to end TLS of `host` with; borrowed. NULL with `err`. */
struct tls_context *outlet_leaf(struct broker_outlet *outlet, const char *host, struct error *err);

void engine_release(struct broker_engine *engine);

/* --- a passage -------------------------------------------------------------------------------- */

struct broker_passage;
typedef void passage_answered(void *owner, struct broker_passage *passage,
                              const struct broker_grant *grant);

/* One thing that the domain was asked for. It is told of its end exactly once if it granted it. */
struct broker_passage {
    struct broker_engine *engine;
    struct pool pool;
    struct broker_ask ask;
    struct broker_grant grant; /* copied; of a refusal only what was borrowed for the call */
    struct broker_record record;
    passage_answered *answered; /* NULL: nobody waits any more */
    void *owner;
    uint64_t started_ns;
    bool is_answered, is_granted;
};

/* Ask; the strings of `ask` are copied. `answered` comes once, from the loop, unless it is ended
 * before. `grant` is the passage's own, all of it but `refusal` until passage_end. */
struct broker_passage *passage_ask(struct broker_outlet *outlet, const struct broker_ask *ask,
                                   passage_answered *answered, void *owner);

/* Milliseconds since it was asked. */
uint64_t passage_ms(const struct broker_passage *passage);

/* Over; `failure` may be NULL. Fills in times and names; the rest of `record` is the owner's. */
void passage_end(struct broker_passage *passage, const char *failure);

/* --- a session: whose requests come on a connection ------------------------------------------- */

enum session_kind {
    SESSION_MAPPED,      /* of DOOR_PLAIN: the host is the request's own */
    SESSION_PLAIN,       /* inside a CONNECT to port 80 */
    SESSION_INTERCEPTED, /* inside TLS that is ended here */
};

struct broker_session {
    struct broker_outlet *outlet;
    enum session_kind kind;
    struct broker_passage *passage; /* owned: of the CONNECT; may be NULL */
    uint16_t port;
    char host[URL_HOST_MAX + 1];
};

struct broker_session *session_new(struct broker_outlet *outlet, enum session_kind kind,
                                   const char *host, uint16_t port);
void session_end(struct broker_session *session);

/* --- arrivals --------------------------------------------------------------------------------- */

/* A connection through this door; the descriptor is taken. */
void arrival_new(struct door *door, int fd, const char *peer);

/* What is left of a CONNECT that was answered with 200: the stream and the passage are taken, and
 * for a tunnel the connected socket `upstream`; -EBADF for an interception. */
void arrival_connected(struct broker_outlet *outlet, struct stream *client, const char *pending,
                       size_t length, struct broker_passage *passage, int upstream);

void arrivals_cut(struct broker_outlet *outlet);

/* --- tunnels ---------------------------------------------------------------------------------- */

/* Join them under the passage; all are taken. */
void tunnel_begin(struct broker_outlet *outlet, struct broker_passage *passage,
                  struct stream *client, const char *client_pending, size_t client_length,
                  struct stream *upstream, const char *upstream_pending, size_t upstream_length,
                  bool is_websocket);
void tunnels_cut(struct broker_outlet *outlet);

/* --- requests --------------------------------------------------------------------------------- */

/* The handler of every request of an outlet's server; request->context is the outlet. */
void gate_handle(struct http_request *request);

/* One request whose `ask` is known: ask, then pass it on or refuse it. */
void relay_begin(struct http_request *request, const struct broker_ask *ask);

/* A CONNECT, likewise. */
void connect_begin(struct http_request *request, const struct broker_ask *ask);

/* --- upstreams -------------------------------------------------------------------------------- */

struct upstream;

struct upstream_address {
    char host[URL_HOST_MAX + 1];
    uint16_t port;
    bool is_tls;
};

/* Kept connections to that address with that grant's proof, for this outlet. */
struct upstream *upstream_get(struct broker_outlet *outlet, const struct upstream_address *address,
                              const struct broker_grant *grant);
bool upstream_has_idle(const struct upstream *upstream);
/* On a kept connection, or on `fd`, which is taken (-EBADF: there is none). */
struct http_exchange *upstream_start(struct upstream *upstream, int fd,
                                     const struct http_exchange_request *request,
                                     const struct http_exchange_events *events, void *data);
/* A request holds it: it is not thrown away meanwhile. */
void upstream_hold(struct upstream *upstream);
void upstream_leave(struct upstream *upstream);
/* Whether the exchange failed because a kept connection was dead, with nothing lost: try again. */
bool upstream_was_stale(const struct error *error);
void upstreams_close(struct broker_outlet *outlet);

/* Connect to where the grant leads. */
struct dial *outlet_dial(struct broker_outlet *outlet, const char *host, uint16_t port,
                         const struct broker_grant *grant,
                         void (*done)(void *context, int fd, const struct error *err),
                         void *context);
