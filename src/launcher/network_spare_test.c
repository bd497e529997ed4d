#include <arpa/inet.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "launcher/network.h"
#include "launcher/network_spare.h"
#include "sys/sys_clone.h"
#include "sys/sys_namespace.h"
#include "sys/sys_netlink.h"
#include "sys/sys_process.h"
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

static struct network_spares begin(void)
{
    struct network_spares spares = {.count = 0};

    if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0)
        _exit(CHILD_UNABLE);
    spares.home = sys_namespace_open(0, "net");
    CHECK(spares.home >= 0);
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
    bool is_kept;
} uses[] = {
    {"nothing", do_nothing, true},
    {"unix sockets", talk_by_unix, true},
    {"a listener that nobody called", listen_for_nobody, true},
    {"a connection", connect_to_itself, false},
    {"a datagram", send_to_nobody, false},
    {"an attempt without a route", try_the_internet, false},
    {"a datagram by IPv6", send_to_nobody_6, false},
    {"a flow label", take_a_label, false},
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

#define AT_MOST 200 /* looks, where it is to be kept */
#define ENOUGH  30  /* where it is not */

/* The kernel counts a socket for a moment after it is closed. */
static bool give_soon(struct network_spares *spares, int network, int looks)
{
    for (int i = 0; i < looks; i++) {
        if (network_spares_give(spares, network))
            return true;
        (void) usleep(10000);
    }
    return false;
}

static void use_and_give(void)
{
    struct network_spares spares = begin();
    ino_t home = own_number();

    for (size_t i = 0; i < ARRAY_COUNT(uses); i++) {
        const struct use *use = &uses[i];
        int network = -EBADF, again = -EBADF;

        CHECK_EQUAL(network_spares_take(&spares, &network), 0);
        CHECK(is_close_on_exec(network));
        use_network(&spares, network, use->run);
        if (use->is_kept) {
            CHECK(give_soon(&spares, network, AT_MOST));
            CHECK_EQUAL(network_spares_take(&spares, &again), 0);
            CHECK_EQUAL(again, network);
        } else if (give_soon(&spares, network, ENOUGH)) {
            (void) dprintf(STDERR_FILENO, "kept after %s\n", use->name);
            CHECK(false);
        }
        CHECK_EQUAL(spares.count, 0);
        CHECK(own_number() == home);
        (void) close(network);
    }
}

static void only_those_are_kept_that_nobody_used(void **state)
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
    CHECK(!network_spares_give(&spares, network));
    (void) close(fd);
    CHECK(give_soon(&spares, network, AT_MOST));
    network_spares_clear(&spares);
    CHECK_EQUAL(fcntl(network, F_GETFD), -1);
}

static void not_while_somebody_has_a_socket_there(void **state)
{
    (void) state;
    run_in_child(leave_a_socket, NEEDS_ROOT);
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
    int networks[NETWORK_SPARES_MAX + 1];

    for (size_t i = 0; i <= NETWORK_SPARES_MAX; i++) {
        CHECK_EQUAL(network_spares_take(&spares, &networks[i]), 0);
        CHECK(i == 0 || number_of(networks[i]) != number_of(networks[i - 1]));
    }
    for (size_t i = 0; i < NETWORK_SPARES_MAX; i++)
        CHECK(give_soon(&spares, networks[i], AT_MOST));
    CHECK(!network_spares_give(&spares, networks[NETWORK_SPARES_MAX]));
    CHECK(!network_spares_give(&spares, -EBADF));
    network_spares_clear(&spares);
    CHECK_EQUAL(spares.count, 0);
}

static void some_are_kept_not_all(void **state)
{
    (void) state;
    run_in_child(give_too_many, NEEDS_ROOT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_those_are_kept_that_nobody_used),
        cmocka_unit_test(not_while_somebody_has_a_socket_there),
        cmocka_unit_test(root_of_a_sandbox_has_no_rights_in_it),
        cmocka_unit_test(some_are_kept_not_all),
    };

    return cmocka_run_group_tests_name("network_spare", tests, NULL, NULL);
}
