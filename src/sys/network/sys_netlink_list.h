/* What is there: links, IPv4 addresses and routes of a network namespace, read by rtnetlink.
 *
 * Each function calls back once per entry, in the kernel's order, and returns 0 or -errno. The list
 * is as of several moments when something changes meanwhile. Does not block. */
#pragma once

#include "sys/network/sys_netlink.h"

struct sys_netlink_link {
    int index;
    char name[IFNAMSIZ];
    uint64_t received_bytes; /* by this end of a veth, so: sent by the other */
    uint64_t received_packets;
    uint64_t sent_bytes;
    uint64_t sent_packets;
};

typedef void sys_netlink_link_function(void *context, const struct sys_netlink_link *link);

int sys_netlink_each_link(struct sys_netlink *netlink, sys_netlink_link_function *call,
                          void *context);

/* One link; -ENODEV when there is none with that index. */
int sys_netlink_read_link(struct sys_netlink *netlink, int index,
                          struct sys_netlink_link *ret_link);

/* Of a veth, the end that was brought up first sends nothing until the kernel has noticed, a moment
 * later, that the other came up: a first packet would be lost and repeated after a second. Asking
 * for the link makes the kernel notice now (Linux 6.8 and later; before, it is left to chance). */
int sys_netlink_settle(struct sys_netlink *netlink, int index);

struct sys_netlink_address {
    int index; /* of the link */
    struct in_addr address;
    unsigned int prefix;
};

typedef void sys_netlink_address_function(void *context, const struct sys_netlink_address *address);

int sys_netlink_each_address(struct sys_netlink *netlink, sys_netlink_address_function *call,
                             void *context);

typedef void sys_netlink_route_function(void *context, const struct sys_netlink_route *route);

/* Unicast routes of all tables; `onlink` is not read. */
int sys_netlink_each_route(struct sys_netlink *netlink, sys_netlink_route_function *call,
                           void *context);

/* A CLOEXEC socket that becomes readable when an IPv4 address comes or goes in the caller's network
 * namespace: the caller's. */
int sys_netlink_watch_addresses(void);

/* Take away what waits on such a socket. */
void sys_netlink_watch_drain(int fd);
