#include "sys/network/sys_netlink_list.h"

#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "sys/network/sys_netlink_batch.h"

/* Whom to call, through the one answer function of a run. */
struct netlink_list_walk {
    union {
        sys_netlink_link_function *link;
        sys_netlink_address_function *address;
        sys_netlink_route_function *route;
    };
    void *context;
};

static int dump(struct sys_netlink *netlink, uint16_t type, const void *body, size_t length,
                sys_netlink_answer *answer, struct netlink_list_walk *walk)
{
    AUTO(netlink_batch) struct sys_netlink_batch batch = SYS_NETLINK_BATCH_INIT;

    sys_netlink_batch_message(&batch, type, NLM_F_DUMP, body, length);
    return sys_netlink_batch_run(&batch, netlink->fd, &netlink->sequence, answer, walk);
}

static void read_statistics(const struct sys_netlink_attribute *attribute,
                            struct sys_netlink_link *link)
{
    struct rtnl_link_stats64 statistics = {0};
    size_t length = attribute->length;

    /* Newer kernels know more counters than our header. */
    if (length > sizeof(statistics))
        length = sizeof(statistics);
    memcpy(&statistics, attribute->value, length);
    link->received_bytes = statistics.rx_bytes;
    link->received_packets = statistics.rx_packets;
    link->sent_bytes = statistics.tx_bytes;
    link->sent_packets = statistics.tx_packets;
}

static void answer_link(void *context, uint16_t type, const char *body, size_t length)
{
    struct netlink_list_walk *walk = context;
    struct sys_netlink_link link = {0};
    struct sys_netlink_attribute attribute;
    struct ifinfomsg message;

    if (type != RTM_NEWLINK || length < sizeof(message))
        return;
    memcpy(&message, body, sizeof(message));
    body += NLMSG_ALIGN(sizeof(message));
    length -= NLMSG_ALIGN(sizeof(message));
    link.index = message.ifi_index;
    while (sys_netlink_attribute_next(&body, &length, &attribute)) {
        if (attribute.type == IFLA_IFNAME && attribute.length <= sizeof(link.name))
            memcpy(link.name, attribute.value, attribute.length);
        else if (attribute.type == IFLA_STATS64)
            read_statistics(&attribute, &link);
    }
    link.name[sizeof(link.name) - 1] = '\0';
    walk->link(walk->context, &link);
}

int sys_netlink_each_link(struct sys_netlink *netlink, sys_netlink_link_function *call,
                          void *context)
{
    struct ifinfomsg all = {.ifi_family = AF_UNSPEC};
    struct netlink_list_walk walk = {.link = call, .context = context};

    return dump(netlink, RTM_GETLINK, &all, sizeof(all), answer_link, &walk);
}

static void keep_link(void *context, const struct sys_netlink_link *link)
{
    *(struct sys_netlink_link *) context = *link;
}

int sys_netlink_read_link(struct sys_netlink *netlink, int index, struct sys_netlink_link *ret_link)
{
    AUTO(netlink_batch) struct sys_netlink_batch batch = SYS_NETLINK_BATCH_INIT;
    struct ifinfomsg one = {.ifi_family = AF_UNSPEC, .ifi_index = index};
    struct sys_netlink_link link = {0};
    struct netlink_list_walk walk = {.link = keep_link, .context = &link};
    int result;

    if (index <= 0)
        return -EINVAL;
    sys_netlink_batch_message(&batch, RTM_GETLINK, NLM_F_ACK, &one, sizeof(one));
    result = sys_netlink_batch_run(&batch, netlink->fd, &netlink->sequence, answer_link, &walk);
    if (result < 0)
        return result;
    if (link.index != index)
        return -EPROTO;
    *ret_link = link;
    return 0;
}

int sys_netlink_settle(struct sys_netlink *netlink, int index)
{
    struct sys_netlink_link ignored;

    return sys_netlink_read_link(netlink, index, &ignored);
}

static void answer_address(void *context, uint16_t type, const char *body, size_t length)
{
    struct netlink_list_walk *walk = context;
    struct sys_netlink_address address = {0};
    struct sys_netlink_attribute attribute;
    struct ifaddrmsg message;

    if (type != RTM_NEWADDR || length < sizeof(message))
        return;
    memcpy(&message, body, sizeof(message));
    if (message.ifa_family != AF_INET)
        return;
    body += NLMSG_ALIGN(sizeof(message));
    length -= NLMSG_ALIGN(sizeof(message));
    address.index = (int) message.ifa_index;
    address.prefix = message.ifa_prefixlen;
    while (sys_netlink_attribute_next(&body, &length, &attribute)) {
        if (attribute.type == IFA_LOCAL)
            address.address.s_addr = sys_netlink_attribute_u32(&attribute);
    }
    walk->address(walk->context, &address);
}

int sys_netlink_each_address(struct sys_netlink *netlink, sys_netlink_address_function *call,
                             void *context)
{
    struct ifaddrmsg all = {.ifa_family = AF_INET};
    struct netlink_list_walk walk = {.address = call, .context = context};

    return dump(netlink, RTM_GETADDR, &all, sizeof(all), answer_address, &walk);
}

static void answer_route(void *context, uint16_t type, const char *body, size_t length)
{
    struct netlink_list_walk *walk = context;
    struct sys_netlink_route route = {0};
    struct sys_netlink_attribute attribute;
    struct rtmsg message;

    if (type != RTM_NEWROUTE || length < sizeof(message))
        return;
    memcpy(&message, body, sizeof(message));
    if (message.rtm_family != AF_INET || message.rtm_type != RTN_UNICAST)
        return;
    body += NLMSG_ALIGN(sizeof(message));
    length -= NLMSG_ALIGN(sizeof(message));
    route.prefix = message.rtm_dst_len;
    while (sys_netlink_attribute_next(&body, &length, &attribute)) {
        if (attribute.type == RTA_DST)
            route.destination.s_addr = sys_netlink_attribute_u32(&attribute);
        else if (attribute.type == RTA_GATEWAY)
            route.gateway.s_addr = sys_netlink_attribute_u32(&attribute);
        else if (attribute.type == RTA_OIF)
            route.index = (int) sys_netlink_attribute_u32(&attribute);
    }
    walk->route(walk->context, &route);
}

int sys_netlink_each_route(struct sys_netlink *netlink, sys_netlink_route_function *call,
                           void *context)
{
    struct rtmsg all = {.rtm_family = AF_INET};
    struct netlink_list_walk walk = {.route = call, .context = context};

    return dump(netlink, RTM_GETROUTE, &all, sizeof(all), answer_route, &walk);
}

int sys_netlink_watch_addresses(void)
{
    return sys_netlink_batch_socket(NETLINK_ROUTE, RTMGRP_IPV4_IFADDR);
}

void sys_netlink_watch_drain(int fd)
{
    char ignored[4096];

    /* ENOBUFS says that events were lost, which is as good as having read them. */
    while (recv(fd, ignored, sizeof(ignored), MSG_DONTWAIT) >= 0 || errno == EINTR ||
           errno == ENOBUFS)
        continue;
}
