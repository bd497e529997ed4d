/* The rules of the router namespace and of the host: which packets of a sandbox go where.
 *
 * In the router namespace (links: `uplink` to the host, one per sandbox named s<slot>):
 *
 *     table inet burrow {
 *         set live        { type mark; }                        one of each sandbox there is
 *         set host        { type ipv4_addr; }                   the host's own addresses
 *         set never       { type ipv4_addr; flags interval; }   no rule of a sandbox opens these
 *         set private     { type ipv4_addr; flags interval; }   closed unless a rule opens them
 *         set neighbours  { type ipv4_addr; flags interval; }   the same: what is on the host's links
 *         set connections { type ipv4_addr; flags dynamic; }    counts per sandbox
 *         map resolvers   { type ipv4_addr : ipv4_addr; }       169.254.1.1 : 192.0.2.53
 *         map policies    { type ipv4_addr : verdict; }         10.66.0.7 : goto s7
 *
 *         chain source {    type filter hook prerouting priority raw; policy accept;
 *             fib saddr . iif oif missing drop
 *         }
 *         chain names {     type nat hook prerouting priority dstnat; policy accept;
 *             nfproto ipv4 iifname != "uplink" l4proto udp th dport 53 dnat to ip daddr map
 * @resolvers nfproto ipv4 iifname != "uplink" l4proto tcp th dport 53 dnat to ip daddr map
 * @resolvers
 *         }
 *         chain input {     type filter hook input priority filter; policy drop;
 *             ct state established,related accept
 *         }
 *         chain forward {   type filter hook forward priority filter; policy drop;
 *             nfproto != ipv4 drop
 *             ct state invalid drop
 *             ct state established,related ct mark @live accept
 *             ct state established,related drop                 left by a sandbox that is gone
 *             iifname "uplink" drop                             nothing comes in by itself
 *             oifname != "uplink" drop                          no way to other sandboxes
 *             ct mark set iif                                   whose connection it is
 *             ip saddr vmap @policies
 *             add @connections { ip saddr ct count over N } reject
 *             jump walls
 *             goto internet
 *         }
 *         chain walls {
 *             ct status dnat accept                             names: redirected above
 *             ip daddr @host reject
 *             ip daddr @never reject
 *         }
 *         chain internet {
 *             ip daddr @private reject
 *             ip daddr @neighbours reject
 *             l4proto { tcp, udp, icmp } accept, one rule each
 *             reject
 *         }
 *         chain nat {       type nat hook postrouting priority srcnat; policy accept;
 *             nfproto ipv4 oifname "uplink" masquerade
 *         }
 *         chain s7 { ... }                                      network_policy.h; only on demand
 *     }
 *
 * On the host (link `burrow` to the router):
 *
 *     table inet burrow {
 *         set resolvers { type ipv4_addr; }
 *         chain input {     type filter hook input priority filter; policy accept;
 *             iifname "burrow" goto from_router
 *         }
 *         chain from_router {
 *             nfproto != ipv4 drop
 *             ct state established,related accept
 *             ip daddr @resolvers l4proto udp th dport 53 accept
 *             ip daddr @resolvers l4proto tcp th dport 53 accept
 *             drop                                              every address of the host
 *         }
 *         chain forward {   type filter hook forward priority filter; policy accept;
 *             iifname "burrow" nfproto != ipv4 drop
 *             iifname "burrow" ip saddr != <router> drop
 *             oifname "burrow" ct state established,related accept
 *             oifname "burrow" drop
 *         }
 *         chain nat {       type nat hook postrouting priority srcnat; policy accept;
 *             nfproto ipv4 ip saddr <router> oifname != "burrow" masquerade
 *         }
 *     }
 *
 * A connection outlives its sandbox: the other side may send for minutes, the tracking remembers
 * for a day. `live` keeps that from whoever gets the address next. Links, and with them the marks
 * of connections, have numbers that do not come back, so what is marked with a number that is not
 * live is dropped, and nobody has to search the whole table of connections when a sandbox ends.
 *
 * The addresses of sandboxes are translated twice and never seen on the host, so they cannot
 * collide with its routes, and a sandbox cannot be reached from outside for want of a route even
 * where a rule were missing. Other tables are not touched. All functions return 0 or -errno. */
#pragma once

#include <netinet/in.h>

#include "launcher/network/nft.h"

#define ROUTER_UPLINK         "uplink" /* the router's link to the host */
#define ROUTER_SET_POLICIES   "policies"
#define ROUTER_SET_LIVE       "live"
#define ROUTER_CHAIN_WALLS    "walls"
#define ROUTER_CHAIN_INTERNET "internet"

/* Where sandboxes ask for names: 169.254.1.1, and the two addresses behind it. */
#define ROUTER_RESOLVERS_MAX 3

/* Make the table, or bring one that is there up to date in one step: what belongs to sandboxes
 * stays. `connections` is the limit for sandboxes without one of their own. */
int router_rules_apply(struct nft *router, const char *table, uint32_t connections);
int router_rules_apply_host(struct nft *host, const char *table, struct in_addr router_address);
int router_rules_delete_host(struct nft *host, const char *table);

struct router_network {
    struct in_addr address; /* the first of the network */
    unsigned int prefix;
};

/* What the host has of its own: addresses, and the networks of its links, in which its neighbours
 * are. These may repeat and contain each other. */
struct router_host {
    struct in_addr *addresses;
    size_t address_count;
    struct router_network *networks;
    size_t network_count;
};

int router_rules_set_host(struct nft *router, const char *table, const struct router_host *host);

/* The nth address of ours leads to the nth of `addresses`. */
int router_rules_set_resolvers(struct nft *router, struct nft *host, const char *table,
                               const struct in_addr *addresses, size_t count);

/* The address sandboxes use as their gateway and as nth (from 0) name server. */
struct in_addr router_rules_address(unsigned int n);
