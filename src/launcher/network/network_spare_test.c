#include <arpa/inet.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "launcher/network/network.h"
#include "launcher/network/network_spare.h"
#include "sys/network/sys_netlink.h"
#include "sys/process/sys_clone.h"
#include "sys/process/sys_namespace.h"
#include "sys/process/sys_process.h"
#include "sys/sys_test.h"

#define NEEDS_ROOT "root with network namespaces"

/* Of linux/in6.h, which cannot be included beside libc's. */
#define FLOWLABEL_MANAGER 32
struct flow_label {
    struct in6_addr destination;
    uint32_t label;
    uint8_t action, share;
    uint16_t flags, expires, linger;
    uint32_t pad;
};

static const struct sockaddr_in here = {.sin_family = AF_INET};

static void rest(void)
{
    (void) usleep((NETWORK_SPARES_REST_MS + 150) * 1000);
}

/* It knows what a new one looks like. */
static struct network_spares begin(void)
{
    struct network_spares spares = {.count = 0};
    int network = -EBADF;

    if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0)
        _exit(CHILD_UNABLE);
    spares.home = sys_namespace_open(0, "net");
    CHECK(spares.home >= 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(network_spares_take(&spares, &network), 0);
        (void) close(network);
        rest();
    }
    CHECK(spares.fresh.length > 0 && !spares.has_model);
    return spares;
}

static ino_t number_of(int network)
{
    struct stat stat;

    CHECK_EQUAL(fstat(network, &stat), 0);
    return stat.st_ino;
}

static ino_t own_number(void)
{
    AUTO(close) int own = sys_namespace_open(0, "net");

    return number_of(own);
}

/* --- uses ------------------------------------------------------------------------------------- */

static struct sockaddr_in at(const char *address, uint16_t port)
{
    struct sockaddr_in there = here;

    there.sin_port = htons(port);
    CHECK_EQUAL(inet_pton(AF_INET, address, &there.sin_addr), 1);
    return there;
}

static void do_nothing(void)
{
}

static void talk_by_unix(void)
{
    int pair[2];
    char byte;

    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    CHECK_EQUAL(write(pair[0], "x", 1), 1);
    CHECK_EQUAL(read(pair[1], &byte, 1), 1);
}

static void listen_for_nobody(void)
{
    struct sockaddr_in there = at("0.0.0.0", 80);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    CHECK_EQUAL(bind(fd, (struct sockaddr *) &there, sizeof(there)), 0);
    CHECK_EQUAL(listen(fd, 1), 0);
}

static void connect_to_itself(void)
{
    struct sockaddr_in there = at("127.0.0.1", 8080);
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);

    CHECK_EQUAL(bind(listener, (struct sockaddr *) &there, sizeof(there)), 0);
    CHECK_EQUAL(listen(listener, 1), 0);
    CHECK_EQUAL(connect(fd, (struct sockaddr *) &there, sizeof(there)), 0);
}

static void send_to_nobody(void)
{
    struct sockaddr_in there = at("127.0.0.1", 9);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    CHECK_EQUAL(sendto(fd, "x", 1, 0, (struct sockaddr *) &there, sizeof(there)), 1);
}

static void try_the_internet(void)
{
    struct sockaddr_in there = at("192.0.2.1", 80);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    CHECK_EQUAL(connect(fd, (struct sockaddr *) &there, sizeof(there)), -1);
    CHECK_EQUAL(errno, ENETUNREACH);
}

static int open_6(int type)
{
    int fd = socket(AF_INET6, type, 0);

    if (fd < 0)
        _exit(CHILD_UNABLE);
    return fd;
}

static void send_to_nobody_6(void)
{
    struct sockaddr_in6 there = {.sin6_family = AF_INET6, .sin6_port = htons(9)};
    int fd = open_6(SOCK_DGRAM);

    there.sin6_addr = in6addr_loopback;
    CHECK_EQUAL(sendto(fd, "x", 1, 0, (struct sockaddr *) &there, sizeof(there)), 1);
}

/* The kernel tells of it after the process has ended. */
static void join_a_group(void)
{
    struct ip_mreqn group = {.imr_ifindex = 1};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    CHECK_EQUAL(inet_pton(AF_INET, "239.1.2.3", &group.imr_multiaddr), 1);
    CHECK_EQUAL(setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof(group)), 0);
}

static void join_a_group_6(void)
{
    struct ipv6_mreq group = {.ipv6mr_interface = 1};
    int fd = open_6(SOCK_DGRAM);

    CHECK_EQUAL(inet_pton(AF_INET6, "ff0e::1234", &group.ipv6mr_multiaddr), 1);
    CHECK_EQUAL(setsockopt(fd, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &group, sizeof(group)), 0);
}

/* Nothing is sent: it only asks for the route. */
static void ask_for_a_route_6(void)
{
    struct sockaddr_in6 there = {.sin6_family = AF_INET6, .sin6_port = htons(9)};
    int fd = open_6(SOCK_DGRAM);

    there.sin6_addr = in6addr_loopback;
    CHECK_EQUAL(connect(fd, (struct sockaddr *) &there, sizeof(there)), 0);
}

/* It stays for some seconds after its socket, and is in nobody's counters. */
static void take_a_label(void)
{
    struct flow_label label = {.share = 1, .flags = 1, .label = htonl(0x12345), .linger = 6};
    int fd = open_6(SOCK_DGRAM);

    label.destination = in6addr_loopback;
    CHECK_EQUAL(setsockopt(fd, IPPROTO_IPV6, FLOWLABEL_MANAGER, &label, sizeof(label)), 0);
}

static const struct use {
    const char *name;
    void (*run)(void);
    bool goes_on;
} uses[] = {
    {"nothing", do_nothing, true},
    {"unix sockets", talk_by_unix, true},
    {"a listener that nobody called", listen_for_nobody, true},
    {"a connection", connect_to_itself, false},
    {"a datagram", send_to_nobody, false},
    {"an attempt without a route", try_the_internet, false},
    {"a datagram by IPv6", send_to_nobody_6, false},
    {"a flow label", take_a_label, false},
    {"a group that was joined", join_a_group, false},
    {"a group of IPv6", join_a_group_6, false},
    {"a route of IPv6 that was asked for", ask_for_a_route_6, false},
};

/* As a sandbox does: in a process of its own, which ends. */
static void use_network(const struct network_spares *spares, int network, void (*run)(void))
{
    AUTO(close) int pidfd = -EBADF;
    struct sys_clone how = {.exit_signal = SIGCHLD, .ret_pidfd = &pidfd};
    struct sys_exit ended;
    pid_t pid;

    CHECK_EQUAL(sys_namespace_enter(network, CLONE_NEWNET), 0);
    pid = sys_clone(&how);
    CHECK(pid >= 0);
    if (pid == 0) {
        run();
        _exit(0);
    }
    CHECK_EQUAL(sys_namespace_enter(spares->home, CLONE_NEWNET), 0);
    CHECK_EQUAL(sys_process_wait(pidfd, 10000, &ended), 0);
    if (ended.value == CHILD_UNABLE)
        _exit(CHILD_UNABLE);
    CHECK_EQUAL(ended.kind, SYS_EXIT_STATUS);
    CHECK_EQUAL(ended.value, 0);
}

/* Whether the next one gets it, after its rest. Takes the descriptor. */
static bool goes_on(struct network_spares *spares, int network)
{
    /* Ours, so that its number is nobody else's meanwhile. */
    AUTO(close) int same = fcntl(network, F_DUPFD_CLOEXEC, 0);
    AUTO(close) int next = -EBADF;

    if (!network_spares_give(spares, network)) {
        (void) close(network);
        return false;
    }
    rest();
    CHECK_EQUAL(network_spares_take(spares, &next), 0);
    CHECK_EQUAL(spares->count, 0);
    CHECK(is_close_on_exec(next));
    return number_of(next) == number_of(same);
}

static void use_and_give(void)
{
    struct network_spares spares = begin();
    ino_t home = own_number();

    for (size_t i = 0; i < ARRAY_COUNT(uses); i++) {
        const struct use *use = &uses[i];
        int network = -EBADF;

        CHECK_EQUAL(network_spares_take(&spares, &network), 0);
        use_network(&spares, network, use->run);
        if (goes_on(&spares, network) != use->goes_on) {
            (void) dprintf(STDERR_FILENO, "after %s\n", use->name);
            CHECK(false);
        }
        CHECK(own_number() == home);
    }
}

static void only_those_go_on_that_nobody_used(void **state)
{
    (void) state;
    run_in_child(use_and_give, NEEDS_ROOT);
}

static void leave_a_socket(void)
{
    struct network_spares spares = begin();
    int network = -EBADF, fd;

    CHECK_EQUAL(network_spares_take(&spares, &network), 0);
    CHECK_EQUAL(sys_namespace_enter(network, CLONE_NEWNET), 0);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    CHECK_EQUAL(sys_namespace_enter(spares.home, CLONE_NEWNET), 0);
    CHECK(!goes_on(&spares, network));
    (void) close(fd);
}

static void not_while_somebody_has_a_socket_there(void **state)
{
    (void) state;
    run_in_child(leave_a_socket, NEEDS_ROOT);
}

/* Settings of the host that new ones begin with may change. */
static void change_what_is_new(void)
{
    struct network_spares spares = begin();
    int network = -EBADF;

    spares.fresh.text[spares.fresh.length - 2]++;
    for (unsigned int i = 0; i < 16; i++) {
        CHECK_EQUAL(network_spares_take(&spares, &network), 0);
        CHECK(network_spares_give(&spares, network));
    }
    rest();
    CHECK_EQUAL(network_spares_take(&spares, &network), 0);
    CHECK_EQUAL(spares.count, 0);
    CHECK(spares.fresh.length == 0 && spares.has_model);
    rest();
    CHECK(goes_on(&spares, network));
    network_spares_clear(&spares);
}

static void what_is_new_is_learnt_again(void **state)
{
    (void) state;
    run_in_child(change_what_is_new, NEEDS_ROOT);
}

/* --- what is in them -------------------------------------------------------------------------- */

/* Root of a user namespace of its own, as in a sandbox, with all capabilities. */
static void try_rights(void)
{
    AUTO(netlink) struct sys_netlink netlink = SYS_NETLINK_INIT;
    struct in_addr address = {.s_addr = htonl(0x0a000001)};

    CHECK_EQUAL(unshare(CLONE_NEWUSER), 0);
    CHECK_EQUAL(sys_netlink_open(&netlink), 0);
    CHECK_EQUAL(sys_netlink_set_up(&netlink, 1, false), -EPERM);
    CHECK_EQUAL(sys_netlink_add_address(&netlink, 1, address, 32), -EPERM);
    CHECK_EQUAL(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), -1);
    CHECK_EQUAL(errno, EPERM);
    listen_for_nobody(); /* port 80, though */
}

static void take_and_try(void)
{
    struct network_spares spares = begin();
    int network = -EBADF;

    CHECK_EQUAL(network_spares_take(&spares, &network), 0);
    use_network(&spares, network, try_rights);
    use_network(&spares, network, connect_to_itself);
}

static void root_of_a_sandbox_has_no_rights_in_it(void **state)
{
    (void) state;
    run_in_child(take_and_try, NEEDS_ROOT);
}

/* --- how many --------------------------------------------------------------------------------- */

static void give_too_many(void)
{
    struct network_spares spares = begin();
    int networks[NETWORK_SPARES_MAX + 1], first = -EBADF, before = count_descriptors();

    for (size_t i = 0; i <= NETWORK_SPARES_MAX; i++)
        CHECK_EQUAL(network_spares_take(&spares, &networks[i]), 0);
    for (size_t i = 0; i < NETWORK_SPARES_MAX; i++)
        CHECK(network_spares_give(&spares, networks[i]));
    CHECK(!network_spares_give(&spares, networks[NETWORK_SPARES_MAX]));
    CHECK(!network_spares_give(&spares, -EBADF));
    CHECK_EQUAL(close(networks[NETWORK_SPARES_MAX]), 0);
    rest();
    CHECK_EQUAL(network_spares_take(&spares, &first), 0);
    CHECK_EQUAL(first, networks[0]);
    CHECK(network_spares_give(&spares, first)); /* goes round */
    CHECK_EQUAL(spares.count, NETWORK_SPARES_MAX);
    network_spares_clear(&spares);
    CHECK_EQUAL(spares.count, 0);
    CHECK_EQUAL(count_descriptors(), before - 1); /* the counters' folder */
}

static void some_are_kept_not_all(void **state)
{
    (void) state;
    run_in_child(give_too_many, NEEDS_ROOT);
}

static void grow_old(void)
{
    struct network_spares spares = begin();
    int networks[3], before = count_descriptors();

    for (size_t i = 0; i < ARRAY_COUNT(networks); i++)
        CHECK_EQUAL(network_spares_take(&spares, &networks[i]), 0);
    for (size_t i = 0; i < ARRAY_COUNT(networks); i++)
        CHECK(network_spares_give(&spares, networks[i]));
    network_spares_age(&spares);
    CHECK_EQUAL(spares.count, ARRAY_COUNT(networks));
    for (size_t i = 0; i + 1 < ARRAY_COUNT(networks); i++)
        spares.spares[spares.first + i].rested_ns -=
            (NETWORK_SPARES_REST_MS + NETWORK_SPARES_KEEP_MS) * UINT64_C(1000000);
    network_spares_age(&spares);
    CHECK_EQUAL(spares.count, 1);
    CHECK_EQUAL(count_descriptors(), before + 1);
    rest();
    CHECK_EQUAL(network_spares_take(&spares, &networks[0]), 0);
    CHECK_EQUAL(networks[0], networks[2]); /* the youngest */
    CHECK_EQUAL(close(networks[0]), 0);
    network_spares_clear(&spares);
}

static void those_that_nobody_wants_are_let_go(void **state)
{
    (void) state;
    run_in_child(grow_old, NEEDS_ROOT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_those_go_on_that_nobody_used),
        cmocka_unit_test(not_while_somebody_has_a_socket_there),
        cmocka_unit_test(what_is_new_is_learnt_again),
        cmocka_unit_test(root_of_a_sandbox_has_no_rights_in_it),
        cmocka_unit_test(some_are_kept_not_all),
        cmocka_unit_test(those_that_nobody_wants_are_let_go),
    };

    return cmocka_run_group_tests_name("network_spare", tests, NULL, NULL);
}
