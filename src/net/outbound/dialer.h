/* Connecting to a host that somebody else named: its name is resolved off the loop, each address is
 * checked against rules, and the address that was checked is the one that is connected to, so DNS
 * that changes its answer gains nothing. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "net/address_rules.h"
#include "net/outbound/resolver.h"

#define DIALER_TRY_MS 5000 /* for one of several addresses */

struct dial;

struct dial_request {
    const char *host; /* a name, or an address without brackets */
    uint16_t port;
    /* NULL: any address. Else also none of this machine's own, unless a rule names that very
     * address. Borrowed until it has ended. */
    const struct address_rules *rules;
    const void *asker; /* whose lookups these are: see resolver.h */
    uint64_t total_ms; /* from the name to the connection */
    /* Once, never from inside dial_start: a connected, non-blocking socket, the receiver's; or -1
     * with ERR_FORBIDDEN "the host has no public address" (also when it has none at all: who names
     * hosts must not learn what is behind them), ERR_UPSTREAM or ERR_UPSTREAM_TIMEOUT. */
    void (*done)(void *context, int fd, const struct error *err);
    void *context;
};

/* Everything is copied but what is said to be borrowed. */
struct dial *dial_start(struct loop *loop, struct resolver *resolver,
                        const struct dial_request *request);

/* `done` will not come. */
void dial_cancel(struct dial *dial);
