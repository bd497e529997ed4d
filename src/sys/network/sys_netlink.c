#include "sys/network/sys_netlink.h"

#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sys/network/sys_netlink_batch.h"
#include "sys/sys_call.h"

/* The largest request is that for a veth, below 200 bytes. */
#define REQUEST_SIZE 512

/* A link with all its attributes and statistics is below 4 kB; more is refused, not cut. */
#define REPLY_SIZE 16384

/* A request being built. Room is checked at every append and the failure kept in `overflowed`. */
struct request {
    _Alignas(struct nlmsghdr) char bytes[REQUEST_SIZE];
    size_t length;
    bool overflowed;
};

struct sys_netlink_reply {
    _Alignas(struct nlmsghdr) char bytes[REPLY_SIZE];
    size_t length;
};

int sys_netlink_open(struct sys_netlink *ret_netlink)
{
    int fd = sys_netlink_batch_socket(NETLINK_ROUTE, 0);

    if (fd < 0)
        return fd;
    *ret_netlink = (struct sys_netlink){.fd = fd};
    return 0;
}

void sys_netlink_done(struct sys_netlink *netlink)
{
    netlink->fd = fd_close(netlink->fd);
}

/* Append zeroed, aligned space and return where it begins; a position, because no pointer into
 * the buffer is aligned for every structure by its type. */
static size_t sys_netlink_append(struct request *request, const void *bytes, size_t length)
{
    size_t at = request->length;
    size_t aligned = NLMSG_ALIGN(length);

    if (aligned > sizeof(request->bytes) - at) {
        request->overflowed = true;
        return 0;
    }
    if (length)
        memcpy(request->bytes + at, bytes, length);
    request->length += aligned;
    return at;
}

static struct request sys_netlink_begin(uint16_t type, uint16_t flags, const void *body,
                                        size_t length)
{
    struct request request = {0};
    struct nlmsghdr header = {.nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags};

    (void) sys_netlink_append(&request, &header, sizeof(header));
    (void) sys_netlink_append(&request, body, length);
    return request;
}

static void attribute(struct request *request, uint16_t type, const void *value, size_t length)
{
    struct rtattr header = {.rta_type = type, .rta_len = (unsigned short) RTA_LENGTH(length)};

    (void) sys_netlink_append(request, &header, sizeof(header));
    (void) sys_netlink_append(request, value, length);
}

static void attribute_number(struct request *request, uint16_t type, uint32_t value)
{
    attribute(request, type, &value, sizeof(value));
}

static void attribute_text(struct request *request, uint16_t type, const char *value)
{
    attribute(request, type, value, strlen(value) + 1);
}

/* An attribute that holds others: open it, append them, close it with what open returned. */
static size_t open_nested(struct request *request, uint16_t type)
{
    struct rtattr header = {.rta_type = type};

    return sys_netlink_append(request, &header, sizeof(header));
}

static void close_nested(struct request *request, size_t at)
{
    unsigned short length = (unsigned short) (request->length - at);

    if (!request->overflowed)
        memcpy(request->bytes + at + offsetof(struct rtattr, rta_len), &length, sizeof(length));
}

static int send_request(struct sys_netlink *netlink, struct request *request)
{
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    struct nlmsghdr header;
    ssize_t count;

    if (request->overflowed)
        return -EMSGSIZE;
    memcpy(&header, request->bytes, sizeof(header));
    header.nlmsg_len = (uint32_t) request->length;
    header.nlmsg_seq = ++netlink->sequence;
    memcpy(request->bytes, &header, sizeof(header));
    do {
        count = sys_call_fault();
        if (count == 0)
            count = sys_call_size(sendto(netlink->fd, request->bytes, request->length, 0,
                                         (struct sockaddr *) &kernel, sizeof(kernel)));
    } while (count == -EINTR);
    if (count < 0)
        return (int) count;
    return (size_t) count == request->length ? 0 : -EIO;
}

static int sys_netlink_receive(struct sys_netlink *netlink, struct sys_netlink_reply *ret_reply)
{
    struct sockaddr_nl sender = {0};
    struct iovec part = {.iov_base = ret_reply->bytes, .iov_len = sizeof(ret_reply->bytes)};
    struct msghdr message = {
        .msg_name = &sender, .msg_namelen = sizeof(sender), .msg_iov = &part, .msg_iovlen = 1};
    ssize_t count;

    do {
        count = sys_call_fault();
        if (count == 0)
            count = sys_call_size(recvmsg(netlink->fd, &message, 0));
        /* Only the kernel has port 0; other processes may write to our socket too. */
    } while (count == -EINTR || (count >= 0 && sender.nl_pid != 0));
    if (count < 0)
        return (int) count;
    if (message.msg_flags & MSG_TRUNC)
        return -EMSGSIZE;
    ret_reply->length = (size_t) count;
    return 0;
}

/* Called with the body of each answer that is no acknowledgement. */
typedef void answer_function(void *context, const char *body, size_t length);

/* Look through one received datagram. Returns 1 when the acknowledgement was in it, 0 when more
 * must come, or -errno: the kernel's own when it refused. */
static int read_reply(const struct sys_netlink_reply *reply, uint32_t sequence,
                      answer_function *answer, void *context)
{
    size_t at = 0;

    while (reply->length - at >= sizeof(struct nlmsghdr)) {
        const char *body = reply->bytes + at + NLMSG_HDRLEN;
        struct nlmsghdr header;
        size_t length;
        int refusal;

        memcpy(&header, reply->bytes + at, sizeof(header));
        if (header.nlmsg_len < sizeof(header) || header.nlmsg_len > reply->length - at)
            return -EBADMSG;
        length = header.nlmsg_len - NLMSG_HDRLEN;
        at += NLMSG_ALIGN(header.nlmsg_len) < reply->length - at ? NLMSG_ALIGN(header.nlmsg_len)
                                                                 : reply->length - at;
        /* Left over from an earlier request whose answer we gave up on. */
        if (header.nlmsg_seq != sequence)
            continue;
        if (header.nlmsg_type != NLMSG_ERROR) {
            if (answer)
                answer(context, body, length);
            continue;
        }
        if (length < sizeof(struct nlmsgerr))
            return -EBADMSG;
        memcpy(&refusal, body, sizeof(refusal));
        return refusal ? refusal : 1;
    }
    return 0;
}

static int transact(struct sys_netlink *netlink, struct request *request, answer_function *answer,
                    void *context)
{
    struct sys_netlink_reply reply;
    int result = send_request(netlink, request);

    while (result == 0) {
        result = sys_netlink_receive(netlink, &reply);
        if (result == 0)
            result = read_reply(&reply, netlink->sequence, answer, context);
    }
    return result < 0 ? result : 0;
}

static bool is_link_name(const char *name)
{
    size_t length = strlen(name);

    return length > 0 && length < IFNAMSIZ;
}

static void note_index(void *context, const char *body, size_t length)
{
    struct ifinfomsg link;
    int *index = context;

    if (length < sizeof(link))
        return;
    memcpy(&link, body, sizeof(link));
    *index = link.ifi_index;
}

int sys_netlink_find(struct sys_netlink *netlink, const char *name)
{
    struct ifinfomsg link = {0};
    struct request request = sys_netlink_begin(RTM_GETLINK, 0, &link, sizeof(link));
    int index = 0;
    int result;

    if (!is_link_name(name))
        return -EINVAL;
    attribute_text(&request, IFLA_IFNAME, name);
    result = transact(netlink, &request, note_index, &index);
    if (result < 0)
        return result;
    return index > 0 ? index : -ENODEV;
}

int sys_netlink_set_up(struct sys_netlink *netlink, int index, bool up)
{
    struct ifinfomsg link = {
        .ifi_index = index, .ifi_flags = up ? IFF_UP : 0, .ifi_change = IFF_UP};
    struct request request = sys_netlink_begin(RTM_NEWLINK, 0, &link, sizeof(link));

    return transact(netlink, &request, NULL, NULL);
}

int sys_netlink_set_no_ipv6_address(struct sys_netlink *netlink, int index)
{
    struct ifinfomsg link = {.ifi_index = index};
    struct request request = sys_netlink_begin(RTM_SETLINK, 0, &link, sizeof(link));
    uint8_t mode = IN6_ADDR_GEN_MODE_NONE;
    size_t families = open_nested(&request, IFLA_AF_SPEC);
    size_t ipv6 = open_nested(&request, AF_INET6);

    attribute(&request, IFLA_INET6_ADDR_GEN_MODE, &mode, sizeof(mode));
    close_nested(&request, ipv6);
    close_nested(&request, families);
    return transact(netlink, &request, NULL, NULL);
}

/* What both ends of a veth may be given. */
static void describe_end(struct request *request, const char *name, const uint8_t *address,
                         bool single_queue)
{
    attribute_text(request, IFLA_IFNAME, name);
    if (address)
        attribute(request, IFLA_ADDRESS, address, ETH_ALEN);
    if (single_queue) {
        attribute_number(request, IFLA_NUM_TX_QUEUES, 1);
        attribute_number(request, IFLA_NUM_RX_QUEUES, 1);
    }
}

int sys_netlink_add_veth(struct sys_netlink *netlink, const struct sys_netlink_veth *veth)
{
    struct ifinfomsg link = {.ifi_index = veth->index,
                             .ifi_flags = veth->up ? IFF_UP : 0,
                             .ifi_change = veth->up ? IFF_UP : 0};
    struct ifinfomsg peer = {.ifi_index = veth->peer_index};
    struct request request =
        sys_netlink_begin(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &link, sizeof(link));
    size_t information, data, other;

    if (!is_link_name(veth->name) || !is_link_name(veth->peer_name))
        return -EINVAL;
    describe_end(&request, veth->name, veth->hardware_address, veth->single_queue);
    information = open_nested(&request, IFLA_LINKINFO);
    attribute_text(&request, IFLA_INFO_KIND, "veth");
    data = open_nested(&request, IFLA_INFO_DATA);
    other = open_nested(&request, VETH_INFO_PEER);
    (void) sys_netlink_append(&request, &peer, sizeof(peer));
    describe_end(&request, veth->peer_name, veth->peer_hardware_address, veth->single_queue);
    attribute_number(&request, IFLA_NET_NS_FD, (uint32_t) veth->peer_namespace);
    close_nested(&request, other);
    close_nested(&request, data);
    close_nested(&request, information);
    return transact(netlink, &request, NULL, NULL);
}

int sys_netlink_delete(struct sys_netlink *netlink, int index)
{
    struct ifinfomsg link = {.ifi_index = index};
    struct request request = sys_netlink_begin(RTM_DELLINK, 0, &link, sizeof(link));

    /* The kernel would take 0 for "by name or group". */
    if (index <= 0)
        return -EINVAL;
    return transact(netlink, &request, NULL, NULL);
}

int sys_netlink_add_address(struct sys_netlink *netlink, int index, struct in_addr address,
                            unsigned int prefix)
{
    struct ifaddrmsg body = {
        .ifa_family = AF_INET, .ifa_prefixlen = (uint8_t) prefix, .ifa_index = (uint32_t) index};
    struct request request =
        sys_netlink_begin(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &body, sizeof(body));

    if (prefix > 32)
        return -EINVAL;
    attribute(&request, IFA_LOCAL, &address, sizeof(address));
    attribute(&request, IFA_ADDRESS, &address, sizeof(address));
    return transact(netlink, &request, NULL, NULL);
}

int sys_netlink_add_neighbour(struct sys_netlink *netlink, int index, struct in_addr address,
                              const uint8_t hardware_address[static ETH_ALEN])
{
    struct ndmsg body = {.ndm_family = AF_INET, .ndm_ifindex = index, .ndm_state = NUD_PERMANENT};
    struct request request =
        sys_netlink_begin(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_EXCL, &body, sizeof(body));

    attribute(&request, NDA_DST, &address, sizeof(address));
    attribute(&request, NDA_LLADDR, hardware_address, ETH_ALEN);
    return transact(netlink, &request, NULL, NULL);
}

int sys_netlink_add_route(struct sys_netlink *netlink, const struct sys_netlink_route *route)
{
    bool gateway = route->gateway.s_addr != 0;
    struct rtmsg body = {.rtm_family = AF_INET,
                         .rtm_dst_len = (uint8_t) route->prefix,
                         .rtm_table = RT_TABLE_MAIN,
                         .rtm_protocol = RTPROT_STATIC,
                         .rtm_scope = gateway ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK,
                         .rtm_type = RTN_UNICAST,
                         .rtm_flags = route->onlink ? RTNH_F_ONLINK : 0};
    struct request request =
        sys_netlink_begin(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &body, sizeof(body));

    if (route->prefix > 32)
        return -EINVAL;
    if (route->prefix)
        attribute(&request, RTA_DST, &route->destination, sizeof(route->destination));
    if (gateway)
        attribute(&request, RTA_GATEWAY, &route->gateway, sizeof(route->gateway));
    attribute_number(&request, RTA_OIF, (uint32_t) route->index);
    return transact(netlink, &request, NULL, NULL);
}
