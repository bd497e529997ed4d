/* What the domain asks of the egress broker, and what the broker asks the domain: an interface,
 * because the domain speaks no protocol and the broker decides nothing. src/broker has the real one;
 * tests have their own.
 *
 * The broker is how a sandbox without a network reaches the hosts that its policy names, and no
 * other. The daemon holds listeners inside the sandbox's network, at BROKER_ADDRESS: its outlet.
 * Which sandbox asks is known by the listener; nothing that a sandbox says names it. Secrets are put
 * in outside and never enter a sandbox.
 *
 * Ways in, which the broker tells apart:
 *   BROKER_ROUTE    http://127.66.0.1:8790/<route>/...: the base URL of an API; a named upstream
 *   BROKER_HTTP     a plain request to a host: absolute form at :8790, or a mapped name at :80
 *   BROKER_CONNECT  CONNECT host:port at :8790, or TLS to a mapped name at :443 (known by its SNI);
 *                   asked once, before a byte goes out
 *   BROKER_REQUEST  one request inside of a BROKER_CONNECT that the domain had intercepted
 *   BROKER_TCP      a connection to a listener of broker_place.forwards
 *
 * Answers come exactly once, from the loop, never from inside the call. What a call is given is
 * copied, what an answer is given is borrowed for the call. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/id.h"

#define BROKER_ADDRESS      "127.66.0.1"
#define BROKER_PORT         8790
#define BROKER_FORWARDS_MAX 16 /* plain TCP rules of one sandbox */
#define BROKER_HEADERS_MAX  4  /* that are put in */
/* An outlet takes so many sockets: for BROKER_PORT, 443, 80, and one for each forward. */
#define BROKER_SOCKETS     3
#define BROKER_SOCKETS_MAX (BROKER_SOCKETS + BROKER_FORWARDS_MAX)

/* --- an outlet -------------------------------------------------------------------------------- */

/* Whoever connects to `address`:`port` inside is connected to `host`:`port`. */
struct broker_forward {
    const char *address; /* 127.66.1.N */
    const char *host;    /* a name or an address */
    uint16_t port;
};

struct broker_place {
    struct id sandbox, owner;
    const struct broker_forward *forwards;
    size_t forward_count;
    /* Hosts that TLS may be ended for, exact names: the CA's name constraints. */
    const char *const *intercepted;
    size_t intercepted_count;
    /* The CA of this sandbox as made before (PEM), or NULL: make one when `intercepted` is not
     * covered by it, and tell the host (`made_authority`) before it signs anything. */
    const char *ca_certificate, *ca_key;
};

struct broker_outlet;

/* --- what is asked ---------------------------------------------------------------------------- */

enum broker_way { BROKER_ROUTE, BROKER_HTTP, BROKER_CONNECT, BROKER_REQUEST, BROKER_TCP };

struct broker_ask {
    struct id sandbox;
    enum broker_way way;
    const char *route;  /* BROKER_ROUTE: the first part of the path; else NULL */
    const char *host;   /* lower case, no port; NULL for BROKER_ROUTE */
    uint16_t port;      /* 0 for BROKER_ROUTE */
    const char *method; /* NULL where there is no request: CONNECT, TCP */
    /* Without the route, without the query, "." and ".." and escapes of unreserved bytes resolved;
     * NULL where there is no request. */
    const char *path;
    bool is_upgrade; /* the request asks for a WebSocket */
    /* What the client sent to prove itself, in the place its kind of API has for it (the bearer, or
     * the value of x-api-key, x-goog-api-key, api-key, ?key=), or NULL. A label of ours, or a leak:
     * never passed on, never logged. */
    const char *placeholder;
    uint64_t body_bytes; /* as announced; 0 when not known */
};

enum broker_verdict {
    BROKER_DENY,
    BROKER_TUNNEL,    /* of CONNECT and TCP: bytes go through; the SNI must be the asked host */
    BROKER_INTERCEPT, /* of CONNECT: end TLS here and ask again for each request */
    BROKER_PASS,      /* of a request: send it, with `headers` in place of what proved the client */
};

/* How usage is read from the reply while it passes. */
enum broker_format {
    BROKER_UNMETERED,
    BROKER_ANTHROPIC,
    BROKER_OPENAI_RESPONSES,
    BROKER_OPENAI_CHAT,
    BROKER_GOOGLE,
    BROKER_OPENAI_OTHER, /* embeddings: `usage` of the body */
};

struct broker_header {
    const char *name, *value;
};

struct broker_grant {
    enum broker_verdict verdict;
    uint64_t number; /* names it in what the broker tells later; never 0 */
    /* BROKER_DENY: ERR_FORBIDDEN (egress_denied), ERR_QUOTA (a budget), ... The broker tells the
     * client in the form of the API that `format` names, or {"error":{"type","message"}}. */
    const struct error *refusal;
    const char *refusal_type; /* "egress_denied", "budget_exceeded", ... */
    const char *base;         /* of a route: the upstream's URL, the path is put behind it */
    struct broker_header headers[BROKER_HEADERS_MAX];
    size_t header_count;
    /* Where the proof is in the query (Google's ?key=): its new value, or NULL to take it out. */
    const char *query_key;
    enum broker_format format;
    bool may_be_local; /* the operator named this upstream: its address need not be public */
};

typedef void broker_answer(void *context, const struct broker_grant *grant);

/* --- what is told ----------------------------------------------------------------------------- */

struct broker_usage {
    /* Tokens, none counted twice: `input` without cached ones, `output` without reasoning. */
    uint64_t input, output, reasoning, cache_read, cache_write;
    bool is_known;  /* the reply had any */
    char model[96]; /* as the reply tells; "" */
};

/* How one request, tunnel or forward ended. */
struct broker_record {
    struct id sandbox;
    uint64_t grant;
    enum broker_way way;
    const char *route, *host, *method, *path; /* as asked; never a query, header or body */
    uint16_t port;
    unsigned int status; /* of the reply; 0: none came */
    uint64_t sent, received, ms, first_byte_ms;
    enum broker_format format;
    struct broker_usage usage;
    bool is_partial;     /* the stream was cut: the last numbers seen */
    const char *failure; /* NULL, or what went wrong, in words */
};

/* What the domain gives the broker when it is made. */
struct broker_host {
    void *self;
    /* Decide. May be answered later (a token is refreshed first), exactly once, from the loop. */
    void (*ask)(void *self, const struct broker_ask *ask, broker_answer *done, void *context);
    /* Usage so far of a stream that goes on; false: the budget is used up, cut it. */
    bool (*used)(void *self, uint64_t grant, enum broker_format format,
                 const struct broker_usage *usage);
    /* Once for every grant that was not a refusal. */
    void (*ended)(void *self, const struct broker_record *record);
    /* Something a well-meaning program does not do: another SNI than asked, a request that two
     * parsers could read differently, too many connections. `reason` is a word: "sni_mismatch". */
    void (*violated)(void *self, const struct id *sandbox, const char *reason, const char *host,
                     uint16_t port);
    /* Keep it sealed. The key never goes anywhere else. */
    void (*made_authority)(void *self, const struct id *sandbox, const char *certificate,
                           const char *key);
};

/* --- what the domain asks --------------------------------------------------------------------- */

struct broker {
    void *self;

    /* Listen inside. `sockets` (3 + forward_count of them) are unconnected TCP sockets of the
     * sandbox's network and are taken, also on failure (NULL). */
    struct broker_outlet *(*open)(void *self, const struct broker_place *place, const int *sockets,
                                  struct error *err);
    /* Other hosts are intercepted from now on; forwards stay (open another outlet for others). */
    int (*change)(void *self, struct broker_outlet *outlet, const struct broker_place *place,
                  struct error *err);
    /* What clients inside must trust: the CA's certificate (PEM), or NULL when nothing is
     * intercepted. Borrowed until the next call for this outlet. */
    const char *(*authority)(void *self, struct broker_outlet *outlet);
    /* A right is gone: tunnels, intercepted connections and requests are cut, listeners stay. */
    void (*cut)(void *self, struct broker_outlet *outlet);
    /* Everything of it ends at once; `ended` is told for what was under way. */
    void (*close)(void *self, struct broker_outlet *outlet);
};
