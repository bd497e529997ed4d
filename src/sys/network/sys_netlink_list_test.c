#include <arpa/inet.h>
#include <poll.h>
#include <string.h>

#include "sys/file/sys_file.h"
#include "sys/network/sys_netlink_list.h"
#include "sys/process/sys_namespace.h"
#include "sys/sys_test.h"

#define NEEDS_NETWORK "network namespaces with veth (root with CAP_NET_ADMIN, /proc)"

static const uint8_t near_end[ETH_ALEN] = {2, 0, 0, 0, 0, 1};
static const uint8_t far_end[ETH_ALEN] = {2, 0, 0, 0, 0, 2};

static struct in_addr ip(const char *text)
{
    struct in_addr address;

    CHECK_EQUAL(inet_pton(AF_INET, text, &address), 1);
    return address;
}

/* A veth of which both ends are here: near (index 100, 10.1.0.1/24) and far (200). Without IPv6 it
 * sends nothing by itself. */
static void make_network(struct sys_netlink *netlink, bool ipv6)
{
    AUTO(close) int here = -EBADF;
    struct sys_netlink_veth veth = {.name = "near",
                                    .index = 100,
                                    .peer_name = "far",
                                    .peer_index = 200,
                                    .hardware_address = near_end,
                                    .peer_hardware_address = far_end,
                                    .single_queue = true};

    if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0)
        _exit(CHILD_UNABLE);
    here = sys_namespace_open(0, "net");
    CHECK_EQUAL(sys_netlink_open(netlink), 0);
    veth.peer_namespace = here;
    if (sys_netlink_add_veth(netlink, &veth) == -EOPNOTSUPP)
        _exit(CHILD_UNABLE); /* no veth in this kernel */
    CHECK_EQUAL(sys_netlink_add_address(netlink, 100, ip("10.1.0.1"), 24), 0);
    for (int index = 100; index <= 200; index += 100) {
        int result = ipv6 ? 0 : sys_netlink_set_no_ipv6_address(netlink, index);

        CHECK(result == 0 || result == -EAFNOSUPPORT);
        CHECK_EQUAL(sys_netlink_set_up(netlink, index, true), 0);
    }
    CHECK_EQUAL(sys_netlink_settle(netlink, 100), 0);
}

static void count_link(void *context, const struct sys_netlink_link *link)
{
    int *seen = context;

    seen[0]++;
    if (strcmp(link->name, "near") == 0)
        seen[1] = link->index;
}

static void count_address(void *context, const struct sys_netlink_address *address)
{
    int *seen = context;

    seen[0]++;
    CHECK_EQUAL(address->index, 100);
    CHECK_EQUAL(address->prefix, 24);
    CHECK_EQUAL(address->address.s_addr, ip("10.1.0.1").s_addr);
}

static void count_route(void *context, const struct sys_netlink_route *route)
{
    int *seen = context;

    if (route->prefix == 24 && route->destination.s_addr == ip("10.1.0.0").s_addr)
        seen[0] = route->index;
    if (route->prefix == 0 && route->gateway.s_addr == ip("10.1.0.9").s_addr)
        seen[1] = route->index;
}

static void list_everything(void)
{
    AUTO(netlink) struct sys_netlink netlink = SYS_NETLINK_INIT;
    struct sys_netlink_route gateway = {.gateway = ip("10.1.0.9"), .index = 100};
    struct sys_netlink_link link;
    int links[2] = {0}, addresses[1] = {0}, routes[2] = {0};

    make_network(&netlink, false);
    CHECK_EQUAL(sys_netlink_add_route(&netlink, &gateway), 0);
    CHECK_EQUAL(sys_netlink_each_link(&netlink, count_link, links), 0);
    CHECK(links[0] >= 3);
    CHECK_EQUAL(links[1], 100);
    CHECK_EQUAL(sys_netlink_each_address(&netlink, count_address, addresses), 0);
    CHECK_EQUAL(addresses[0], 1);
    CHECK_EQUAL(sys_netlink_each_route(&netlink, count_route, routes), 0);
    CHECK_EQUAL(routes[0], 100);
    CHECK_EQUAL(routes[1], 100);
    CHECK_EQUAL(sys_netlink_read_link(&netlink, 200, &link), 0);
    CHECK(strcmp(link.name, "far") == 0);
    CHECK_EQUAL(sys_netlink_read_link(&netlink, 4711, &link), -ENODEV);
    CHECK_EQUAL(sys_netlink_read_link(&netlink, 0, &link), -EINVAL);
}

static void links_addresses_and_routes_are_listed(void **state)
{
    (void) state;
    run_in_child(list_everything, NEEDS_NETWORK);
}

/* The one neighbour as /proc shows it, so that netlink does not check itself. */
static void send_to_neighbour(void)
{
    AUTO(netlink) struct sys_netlink netlink = SYS_NETLINK_INIT;
    AUTO(close) int fd = -EBADF;
    AUTO(free) char *table = NULL;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(9)};
    struct sys_netlink_link before, after;
    size_t length;

    make_network(&netlink, false);
    CHECK_EQUAL(sys_netlink_add_neighbour(&netlink, 100, ip("10.1.0.2"), far_end), 0);
    CHECK_EQUAL(sys_netlink_add_neighbour(&netlink, 100, ip("10.1.0.2"), far_end), -EEXIST);
    CHECK_EQUAL(sys_file_read_all(AT_FDCWD, "/proc/net/arp", 4096, &table, &length), 0);
    CHECK(strstr(table, "0x6         02:00:00:00:00:02"));
    address.sin_addr = ip("10.1.0.2");
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK_EQUAL(sys_netlink_read_link(&netlink, 200, &before), 0);
    CHECK_EQUAL(sendto(fd, "12345678", 8, 0, (struct sockaddr *) &address, sizeof(address)), 8);
    CHECK_EQUAL(sys_netlink_read_link(&netlink, 200, &after), 0);
    CHECK_EQUAL(after.received_packets - before.received_packets, 1);
    CHECK_EQUAL(after.received_bytes - before.received_bytes, ETH_HLEN + 20 + 8 + 8);
    CHECK_EQUAL(after.sent_packets, before.sent_packets);
}

static void packets_to_a_known_neighbour_need_no_arp_and_are_counted(void **state)
{
    (void) state;
    run_in_child(send_to_neighbour, NEEDS_NETWORK);
}

static bool has_ipv6(const char *name)
{
    AUTO(free) char *table = NULL;
    size_t length;

    if (sys_file_read_all(AT_FDCWD, "/proc/net/if_inet6", 65536, &table, &length) < 0)
        _exit(CHILD_UNABLE);
    return strstr(table, name);
}

static void bring_up_without_ipv6(void)
{
    AUTO(netlink) struct sys_netlink netlink = SYS_NETLINK_INIT;
    int result;

    make_network(&netlink, true);
    CHECK(has_ipv6("far"));
    CHECK_EQUAL(sys_netlink_set_up(&netlink, 200, false), 0);
    CHECK(!has_ipv6("far"));
    result = sys_netlink_set_no_ipv6_address(&netlink, 200);
    if (result == -EAFNOSUPPORT)
        _exit(CHILD_UNABLE);
    CHECK_EQUAL(result, 0);
    CHECK_EQUAL(sys_netlink_set_up(&netlink, 200, true), 0);
    CHECK(!has_ipv6("far"));
}

static void a_link_comes_up_without_ipv6_when_told(void **state)
{
    (void) state;
    run_in_child(bring_up_without_ipv6, NEEDS_NETWORK " and IPv6");
}

static void watch(void)
{
    AUTO(netlink) struct sys_netlink netlink = SYS_NETLINK_INIT;
    AUTO(close) int fd = -EBADF;

    make_network(&netlink, false);
    fd = sys_netlink_watch_addresses();
    CHECK(is_close_on_exec(fd));
    CHECK_EQUAL(sys_file_poll(fd, POLLIN, 0), 0);
    CHECK_EQUAL(sys_netlink_add_address(&netlink, 100, ip("10.1.0.7"), 32), 0);
    CHECK_EQUAL(sys_file_poll(fd, POLLIN, 1000), POLLIN);
    sys_netlink_watch_drain(fd);
    CHECK_EQUAL(sys_file_poll(fd, POLLIN, 0), 0);
}

static void new_addresses_wake_the_watcher(void **state)
{
    (void) state;
    run_in_child(watch, NEEDS_NETWORK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_addresses_and_routes_are_listed),
        cmocka_unit_test(packets_to_a_known_neighbour_need_no_arp_and_are_counted),
        cmocka_unit_test(a_link_comes_up_without_ipv6_when_told),
        cmocka_unit_test(new_addresses_wake_the_watcher),
    };

    return cmocka_run_group_tests_name("sys_netlink_list", tests, NULL, NULL);
}
