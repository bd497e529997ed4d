/* The router: one network namespace of ours between the host and all sandboxes with a network.
 *
 *     host namespace            router namespace                       a sandbox
 *     burrow 198.18.254.0/31 -- uplink 198.18.254.1/31
 *     (masquerade)              lo 169.254.1.1/32
 *                               s7  --------------------------------  eth0 10.66.0.7/32
 *                               route 10.66.0.7/32 dev s7              default via 169.254.1.1
 *
 * It is made once, kept by a mount of the host on a file of the state folder (host_mounts.h), and
 * found again by the next program: sandboxes keep their network while the launcher restarts.
 * Several programs may use it at once. Its rules are in router_rules.h, sandboxes join it by
 * network.h.
 *
 * On the host it adds one link and one nftables table, both named `name`, and switches IPv4
 * forwarding on (net.ipv4.ip_forward); nothing else is touched. IPv6 is off in the router and at
 * the eth0 of every sandbox (::1 inside works).
 *
 * Names: see router_resolver.h. For a program with one thread; "the host" is the network namespace
 * the program is in. Errors are ERR_INVALID for settings, ERR_CONFLICT for what somebody else has
 * taken, otherwise what the errno stands for. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/id.h"
#include "launcher/host/host_mounts.h"
#include "launcher/network/router_resolver.h"

struct router;

struct router_settings {
    const char *name;         /* of link and table: at most 15 of a-z 0-9 - */
    const char *state_folder; /* on a tmpfs; made when missing */
    const char *pool;         /* addresses of sandboxes: "10.66.0.0/16"; prefix 8 to 30 */
    const char *uplink_range; /* where a free pair for the uplink is looked for; prefix 8 to 31 */
    uint32_t connections;     /* most at once, per sandbox that has no limit of its own */
    const char *resolver_file;
    const char *resolver_fallback;
    const struct host_mounts *host; /* where the namespace is kept; NULL: in our own mounts */
};

/* 198.18.0.0/15 is set aside for benchmarks (RFC 2544) and hence on no host's way to anywhere. */
#define ROUTER_SETTINGS_DEFAULT                                                                    \
    {                                                                                              \
        .name = "burrow", .state_folder = "/run/burrow/network", .pool = "10.66.0.0/16",           \
        .uplink_range = "198.18.254.0/24", .connections = 1024,                                    \
        .resolver_file = ROUTER_RESOLVER_FILE, .resolver_fallback = ROUTER_RESOLVER_SYSTEMD_FILE   \
    }

/* Find the router or make it, and bring its rules up to date. Returns 0 and a handle (router_free),
 * or -1. Takes about 5 ms; waits while another program does the same. */
int router_open(const struct router_settings *settings, struct router **ret_router,
                struct error *err);

/* Whether a sandbox may have a network, by the state folder alone: where the router cannot be had,
 * nobody could take anything of it down, and nothing was made. */
bool router_may_have(const char *state_folder, const struct id *id);

/* Close the handle. The router stays. Accepts NULL. The kernel may make us wait some milliseconds.
 */
void router_free(struct router *router);

AUTO_DEFINE_PTR(router, struct router, router_free);

/* Take away namespace, link, table and state, but not the setting of ip_forward. ERR_CONFLICT, and
 * nothing is changed, while a slot is taken or another program has the router open. On success the
 * handle is good for router_free only. Takes about 50 ms: for a child process, or at the end. */
int router_remove(struct router *router, struct error *err);

/* Tell the rules the host's addresses and name servers of now, and load our table on the host
 * again: `nft flush ruleset`, which reloading a firewall often means, takes it away, and sandboxes
 * are then without network. About 0.2 ms. Call it when the descriptor of router_watch becomes
 * readable (an address of the host came or went), when resolv.conf changed, and every now and then.
 * Even before a new address is told no sandbox reaches it: the rules on the host's side do not
 * depend on addresses. */
int router_refresh(struct router *router, struct error *err);

/* Borrowed. */
int router_watch(const struct router *router);

/* Name servers as of the last refresh; borrowed. Sandboxes are told router_rules_address(0) and so
 * on, as many as `count` says. */
const struct router_resolvers *router_resolvers(const struct router *router);

/* The range of sandbox addresses has so many slots. */
uint32_t router_slots(const struct router *router);
