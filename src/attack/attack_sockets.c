/* Sockets that a sandbox has no use for, and those of others. Nothing is ever sent but to the lab's
 * own listeners. */
#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "attack/attack.h"
#include "base/auto.h"

#define AF_ALG_NUMBER   38
#define AF_VSOCK_NUMBER 40
#define IPT_SO_GET_INFO 64
#define IPT_INFO_SIZE   84

static int socket_make(int family, int type, int protocol)
{
    AUTO(close) int fd = socket(family, type | SOCK_CLOEXEC, protocol);

    return fd < 0 ? -errno : 0;
}

static int raw_socket(void)
{
    return socket_make(AF_INET, SOCK_RAW, IPPROTO_ICMP);
}

static int raw_socket_6(void)
{
    return socket_make(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6);
}

static int packet_socket(void)
{
    return socket_make(AF_PACKET, SOCK_RAW, 0);
}

static int old_packet_socket(void)
{
    return socket_make(AF_INET, SOCK_PACKET, 0);
}

static int filter_netlink(void)
{
    return socket_make(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
}

static int audit_netlink(void)
{
    return socket_make(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT);
}

static int crypto_socket(void)
{
    return socket_make(AF_ALG_NUMBER, SOCK_SEQPACKET, 0);
}

/* Made, never connected. */
static int machine_socket(void)
{
    return socket_make(AF_VSOCK_NUMBER, SOCK_STREAM, 0);
}

/* Of sctp, which the kernel would load. */
static int sequenced_socket(void)
{
    return socket_make(AF_INET, SOCK_SEQPACKET, 0);
}

static int multipath_socket(void)
{
    return socket_make(AF_INET, SOCK_STREAM, 262 /* IPPROTO_MPTCP */);
}

static int old_filter_option(void)
{
    AUTO(close) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char info[IPT_INFO_SIZE] = "filter";
    socklen_t length = sizeof(info);

    return fd < 0 ? -errno
                  : attack_result(getsockopt(fd, IPPROTO_IP, IPT_SO_GET_INFO, info, &length));
}

/* One more address of loopback. */
static int add_address(void)
{
    struct {
        struct nlmsghdr head;
        struct ifaddrmsg address;
        struct rtattr attribute;
        uint32_t value;
    } request = {
        .head = {.nlmsg_len = sizeof(request),
                 .nlmsg_type = RTM_NEWADDR,
                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE},
        .address = {.ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_index = 1},
        .attribute = {.rta_len = RTA_LENGTH(4), .rta_type = IFA_LOCAL},
        .value = htonl(0x7f000909),
    };
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
        char rest[256];
    } answer = {0};
    AUTO(close) int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

    if (fd < 0 || send(fd, &request, sizeof(request), 0) < 0 ||
        recv(fd, &answer, sizeof(answer), 0) < 0)
        return -errno;
    return answer.head.nlmsg_type == NLMSG_ERROR ? answer.error.error : -EIO;
}

/* --- those of others ------------------------------------------------------------------------ */

static int connect_abstract(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *name = attack_target("TARGET_ABSTRACT");
    AUTO(close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(address.sun_path + 1, name, strnlen(name, sizeof(address.sun_path) - 1));
    return fd < 0 ? -errno
                  : attack_result(connect(
                        fd, (struct sockaddr *) &address,
                        (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))));
}

static int connect_loopback(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t) attack_number("TARGET_PORT")),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    AUTO(close) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    return fd < 0 ? -errno
                  : attack_result(connect(fd, (struct sockaddr *) &address, sizeof(address)));
}

static int use_shared_memory(void)
{
    return attack_result(shmget(attack_number("TARGET_SHARED"), 4096, 0));
}

static int see_host_name(void)
{
    char name[256] = "";

    (void) gethostname(name, sizeof(name) - 1);
    return strcmp(name, attack_target("TARGET_HOSTNAME")) == 0 ? 0 : -ENOENT;
}

const struct attack attack_sockets[] = {
    {"raw_socket", raw_socket},
    {"raw_socket_6", raw_socket_6},
    {"packet_socket", packet_socket},
    {"old_packet_socket", old_packet_socket},
    {"filter_netlink", filter_netlink},
    {"audit_netlink", audit_netlink},
    {"crypto_socket", crypto_socket},
    {"machine_socket", machine_socket},
    {"multipath_socket", multipath_socket},
    {"sequenced_socket", sequenced_socket},
    {"old_filter_option", old_filter_option},
    {"add_address", add_address},
    {"connect_abstract", connect_abstract},
    {"connect_loopback", connect_loopback},
    {"use_shared_memory", use_shared_memory},
    {"see_host_name", see_host_name},
    {NULL, NULL},
};
