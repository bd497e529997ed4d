/* What router.c and network*.c share: the insides of a router. */
#pragma once

#include <net/if.h>

#include "launcher/network/nft.h"
#include "launcher/network/router.h"
#include "sys/network/sys_netlink.h"

struct router {
    char name[IFNAMSIZ]; /* of the host's link, and of both tables */
    struct in_addr pool; /* first address of the range; slot n has the nth behind it */
    uint32_t slots;
    uint32_t connections;
    int state;                     /* owned; the state folder */
    int taken;                     /* owned; the folder of slots (network_slot.h) */
    int users;                     /* owned; locked shared as long as the handle lives */
    int home;                      /* owned; the host's network namespace */
    int inside;                    /* owned; the router's */
    int watch;                     /* owned; tells of changed addresses */
    struct sys_netlink host_links; /* owned */
    struct sys_netlink links;      /* owned; in the router namespace */
    struct nft host_filter;        /* owned */
    struct nft filter;             /* owned; in the router namespace */
    struct in_addr host_address;   /* of the uplink, at the host's end */
    struct in_addr address;        /* at the router's end */
    struct router_resolvers resolvers;
    const struct host_mounts *host; /* borrowed; NULL: we are in them */
    char *state_folder;             /* owned */
    char *resolver_file;            /* owned */
    char *resolver_fallback;        /* owned */
};
