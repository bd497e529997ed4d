/* The egress broker: the real implementation of domain/broker.h, on the daemon's loop.
 *
 *     engine      all of it: host, rules, resolver, counters
 *       outlet    of one sandbox: doors (listeners inside), its HTTP server, authority, limits
 *         arrival   a connection that is no HTTP yet, or never will be: TLS by name, plain TCP
 *         relay     one request to its upstream and back, metered
 *         passage   one thing that was asked of the domain, until it is told how it ended
 *         upstream  kept connections to one host, with one proof; never shared between sandboxes
 *
 * What it guarantees, whatever the sandbox sends and the upstream answers: nothing goes out that the
 * host did not grant; the address that was checked is the one that is dialled; proofs are put in
 * here and are in no error, log line or reply of ours; memory per connection is bounded however
 * long bodies are; and one sandbox has at most `connections_max` connections, the rest wait.
 *
 * The host may close, cut and change outlets whenever it likes, but from inside of `ask` and
 * `violated`. `made_authority` comes from inside of open and change. */
#pragma once

#include "base/clock.h"
#include "base/text.h"
#include "domain/broker.h"
#include "net/address_rules.h"
#include "net/loop.h"
#include "net/tls.h"
#include "share/share.h"

struct broker_engine;

struct broker_engine_options {
    struct loop *loop;          /* borrowed */
    const struct clock *clock;  /* borrowed */
    struct shares *shares;      /* borrowed, may be NULL: nothing is counted */
    struct tls_context *tls;    /* borrowed: what upstreams are verified with */
    struct broker_host host;    /* copied; its `self` outlives the engine */
    struct address_rules rules; /* of upstreams that the operator did not name */
    size_t connections_max;     /* of one sandbox */
    uint64_t dial_ms;           /* name and TCP, then TLS again as long */
    uint64_t hello_ms;          /* for a client to say whom it wants */
    uint64_t answer_ms;         /* an upstream thinks about a request */
    uint64_t pause_ms;          /* between two pieces of a reply */
};

/* A model may think for ten minutes before it answers. */
#define BROKER_ENGINE_OPTIONS_DEFAULT                                                              \
    {                                                                                              \
        .connections_max = 256, .dial_ms = 10000, .hello_ms = 10000, .answer_ms = 900000,          \
        .pause_ms = 600000                                                                         \
    }

/* `options` is copied. */
struct broker_engine *broker_engine_new(const struct broker_engine_options *options);

/* For the domain. Borrowed from the engine. */
struct broker broker_engine_interface(struct broker_engine *engine);

/* Close every outlet. `on_closed` comes when the last answer that was asked for has come. */
void broker_engine_close(struct broker_engine *engine, void (*on_closed)(void *context),
                         void *context);

/* Numbers since the start, and some of now. */
struct broker_counters {
    uint64_t connections;    /* accepted */
    uint64_t asked, denied;  /* of the domain, and by it */
    uint64_t requests;       /* passed on */
    uint64_t tunnels;        /* begun: CONNECT, TLS by name, TCP, WebSockets */
    uint64_t intercepted;    /* TLS connections ended here */
    uint64_t failures;       /* upstreams that did not answer as they should */
    uint64_t violations;     /* told to the domain */
    uint64_t cut;            /* streams, because a budget was used up */
    uint64_t held_back;      /* times a sandbox had as many connections as it may */
    uint64_t sent, received; /* bytes of bodies and tunnels, to and from upstreams */
    uint64_t outlets;        /* open now */
};

const struct broker_counters *broker_engine_counters(const struct broker_engine *engine);

/* The same in Prometheus' format. */
void broker_engine_write_metrics(const struct broker_engine *engine, struct text *out);
