/* The little of rtnetlink that a sandbox's network needs: links, IPv4 addresses, routes.
 *
 * A struct sys_netlink works in the network namespace where it was opened, wherever the thread
 * moves later. One request at a time; every function waits for the kernel's answer (tens of
 * microseconds; deleting a veth takes 30 ms) and returns 0 or its -errno. Not thread-safe. */
#pragma once

#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/auto.h"

struct sys_netlink {
    int fd; /* owned */
    uint32_t sequence;
};

int sys_netlink_open(struct sys_netlink *ret_netlink);
void sys_netlink_done(struct sys_netlink *netlink);

#define SYS_NETLINK_INIT                                                                           \
    {                                                                                              \
        .fd = -EBADF                                                                               \
    }

AUTO_DEFINE(netlink, struct sys_netlink, sys_netlink_done);

/* The index (> 0) of the link with that name, or -ENODEV. -EINVAL: no possible name. */
int sys_netlink_find(struct sys_netlink *netlink, const char *name);

int sys_netlink_set_up(struct sys_netlink *netlink, int index, bool up);

/* Let the link make up no IPv6 address of its own when it comes up: without one, and with nobody
 * who announces routes, it has no IPv6. A tenth of the cost of writing disable_ipv6 in /proc/sys of
 * a young namespace. -EAFNOSUPPORT when the kernel has no IPv6 at all. */
int sys_netlink_set_no_ipv6_address(struct sys_netlink *netlink, int index);

struct sys_netlink_veth {
    const char *name;
    int index; /* wished for, 0: the kernel chooses */
    bool up;   /* this end; the other one cannot be up before this one exists */
    const char *peer_name;
    int peer_index;
    int peer_namespace; /* descriptor of the network namespace the other end is born in */
    /* ETH_ALEN bytes each, or NULL: random ones */
    const uint8_t *hardware_address;
    const uint8_t *peer_hardware_address;
    bool single_queue; /* both ends: cheaper to make; by default they have one per processor */
};

/* -EEXIST when a name or index is taken. */
int sys_netlink_add_veth(struct sys_netlink *netlink, const struct sys_netlink_veth *veth);

/* Deletes both ends of a veth. */
int sys_netlink_delete(struct sys_netlink *netlink, int index);

/* Give the link `address`/`prefix`. */
int sys_netlink_add_address(struct sys_netlink *netlink, int index, struct in_addr address,
                            unsigned int prefix);

/* Say for good which hardware address a neighbour on the link has. Such an entry needs no ARP and
 * does not count against net.ipv4.neigh.default.gc_thresh3, which all namespaces share. */
int sys_netlink_add_neighbour(struct sys_netlink *netlink, int index, struct in_addr address,
                              const uint8_t hardware_address[static ETH_ALEN]);

struct sys_netlink_route {
    struct in_addr destination; /* with prefix 0: the default route */
    unsigned int prefix;
    struct in_addr gateway; /* 0.0.0.0: none, the destination is on the link itself */
    bool onlink;            /* the gateway is on the link although no address says so */
    int index;              /* the link */
};

/* -EEXIST when there is such a route; -ENETUNREACH when the gateway is not reachable. */
int sys_netlink_add_route(struct sys_netlink *netlink, const struct sys_netlink_route *route);
