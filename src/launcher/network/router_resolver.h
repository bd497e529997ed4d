/* Whom the host asks for names.
 *
 * Sandboxes ask 169.254.1.1 (and the two addresses behind it, one per name server of the host); the
 * router redirects that to the host's own name servers, read here. A name server on the host's
 * loopback (127.0.0.53 of systemd-resolved) cannot be reached that way: then the servers it asks
 * itself, which systemd writes to a file of its own, are taken. When there are none either, names
 * do not work in sandboxes and `reason` says why. */
#pragma once

#include <netinet/in.h>
#include <stddef.h>

#include "launcher/network/router_rules.h"

#define ROUTER_RESOLVER_FILE         "/etc/resolv.conf"
#define ROUTER_RESOLVER_SYSTEMD_FILE "/run/systemd/resolve/resolv.conf"

/* A longer file is not read. */
#define ROUTER_RESOLVER_FILE_MAX (64 << 10)

struct router_resolvers {
    struct in_addr addresses[ROUTER_RESOLVERS_MAX];
    size_t count;
    size_t loopback;    /* entries that were left out because they are the host's loopback */
    size_t other;       /* ... because they are IPv6 or no address */
    const char *reason; /* static; why there are none, NULL when there are some */
};

/* The name servers in the text of a resolv.conf(5), in its order; the first three that can be used.
 * Never fails: what is not understood is left out. */
struct router_resolvers router_resolver_parse(const char *text);

/* Read `file`, or `fallback` when the first has nothing but loopback. A file that is missing or too
 * long counts as empty. */
struct router_resolvers router_resolver_read(const char *file, const char *fallback);
