/* For the tests of router and network only: a small world of network namespaces, all in a child
 * process and gone with it.
 *
 *     internet  25.7.7.1 (and many addresses on lo) ---- 25.7.7.2 eth0  host  192.0.2.2 on lo
 *                                                            the host has the router and sandboxes
 *
 * In the internet, on the host and in a sandbox where the test wants it, a server process answers:
 * port 80 with HTTP and the address of who asked, port 81 with an echo that keeps the connection,
 * port 53 (UDP, and TCP as HTTP) as a name server would. Nothing leaves these namespaces. */
#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/memory.h"
#include "launcher/network/network.h"
#include "launcher/network/network_namespace.h"
#include "launcher/network/network_policy.h"
#include "launcher/network/router_internal.h"
#include "sys/file/sys_file.h"
#include "sys/network/sys_netlink_list.h"
#include "sys/process/sys_namespace.h"
#include "sys/sys_test.h"

#define NEEDS_ROUTER "network namespaces with veth and nftables (root, /proc)"

#define WORLD_STATE    "/tmp/state"
#define WORLD_RESOLVER "/tmp/resolv.conf"

/* Answers come at once here, so this is long enough to call a packet lost. */
#define PATIENCE_MS 300

/* For answers that have to come: the process that gives them may wait for a CPU. */
#define ANSWER_MS 10000

struct world {
    int internet;
    int host; /* where we are */
    struct router_settings settings;
    struct router *router;
};

static const char *const internet_addresses[] = {
    "25.0.113.10",     "25.0.113.53", "25.51.100.7",  "169.254.169.254",
    "10.9.9.9",        "10.9.9.10",   "203.0.113.77", "192.168.50.5",
    "100.100.100.200", "100.64.0.9",  "10.255.0.53",
};

static inline struct in_addr ip(const char *text)
{
    struct in_addr address;

    CHECK_EQUAL(inet_pton(AF_INET, text, &address), 1);
    return address;
}

/* A fresh network namespace with lo up, in which we then are. */
static inline int enter_new_network(void)
{
    int fd;

    if (sys_namespace_unshare(CLONE_NEWNET) < 0)
        _exit(CHILD_UNABLE);
    fd = sys_namespace_open(0, "net");
    CHECK(fd >= 0);
    CHECK_EQUAL(network_loopback_up(), 0);
    return fd;
}

static inline int serve_socket(int type, uint16_t port)
{
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int one = 1;

    CHECK(fd >= 0);
    CHECK_EQUAL(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
    CHECK_EQUAL(bind(fd, (struct sockaddr *) &address, sizeof(address)), 0);
    CHECK(type != SOCK_STREAM || listen(fd, 64) == 0);
    CHECK(type != SOCK_DGRAM || setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &one, sizeof(one)) == 0);
    return fd;
}

/* The answer comes from the address that was asked: the message of IP_PKTINFO is sent back. */
static inline void answer_datagram(int fd)
{
    struct sockaddr_in peer;
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct in_pktinfo))];
    char bytes[512];
    struct iovec part = {.iov_base = bytes, .iov_len = sizeof(bytes)};
    struct msghdr message = {.msg_name = &peer,
                             .msg_namelen = sizeof(peer),
                             .msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    ssize_t length = recvmsg(fd, &message, 0);

    if (length <= 0)
        return;
    part.iov_len = (size_t) length;
    (void) sendmsg(fd, &message, MSG_NOSIGNAL);
}

static inline void answer_http(int fd)
{
    struct sockaddr_in peer;
    socklen_t size = sizeof(peer);
    int connection = accept4(fd, (struct sockaddr *) &peer, &size, SOCK_CLOEXEC);
    char text[128], address[INET_ADDRSTRLEN];

    if (connection < 0)
        return;
    (void) inet_ntop(AF_INET, &peer.sin_addr, address, sizeof(address));
    (void) snprintf(text, sizeof(text), "HTTP/1.0 200 OK\r\n\r\n%s", address);
    (void) sys_file_poll(connection, POLLIN, PATIENCE_MS);
    (void) recv(connection, (char[512]){0}, 512, MSG_DONTWAIT);
    (void) send(connection, text, strlen(text), MSG_NOSIGNAL);
    (void) close(connection);
}

#define SERVED_MAX 256

/* Listeners come first: HTTP, HTTP on the port of names, names, echo. */
static inline void serve_for_ever(struct pollfd *polls, size_t count)
{
    for (;;) {
        if (poll(polls, count, -1) < 0)
            continue;
        for (size_t i = 4; i < count; i++) {
            char bytes[64];
            ssize_t length = polls[i].revents ? recv(polls[i].fd, bytes, sizeof(bytes), 0) : -1;

            if (length > 0)
                (void) send(polls[i].fd, bytes, (size_t) length, MSG_NOSIGNAL);
            else if (polls[i].revents)
                (void) close(polls[i].fd), polls[i].fd = -1;
        }
        if (polls[0].revents)
            answer_http(polls[0].fd);
        if (polls[1].revents)
            answer_http(polls[1].fd);
        if (polls[2].revents)
            answer_datagram(polls[2].fd);
        if (polls[3].revents && count < SERVED_MAX)
            polls[count++] =
                (struct pollfd){accept4(polls[3].fd, NULL, NULL, SOCK_CLOEXEC), POLLIN, 0};
    }
}

/* Start the server of the namespace we are in; it dies with us. */
static inline void start_server(void)
{
    struct pollfd polls[SERVED_MAX] = {{serve_socket(SOCK_STREAM, 80), POLLIN, 0},
                                       {serve_socket(SOCK_STREAM, 53), POLLIN, 0},
                                       {serve_socket(SOCK_DGRAM, 53), POLLIN, 0},
                                       {serve_socket(SOCK_STREAM, 81), POLLIN, 0}};
    pid_t parent = getpid(), pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent)
            serve_for_ever(polls, 4);
        _exit(0);
    }
    for (int i = 0; i < 4; i++)
        (void) close(polls[i].fd);
}

static inline void make_internet(struct world *world)
{
    AUTO(netlink) struct sys_netlink netlink = SYS_NETLINK_INIT;

    world->internet = enter_new_network();
    CHECK_EQUAL(sys_netlink_open(&netlink), 0);
    for (size_t i = 0; i < ARRAY_COUNT(internet_addresses); i++)
        CHECK_EQUAL(sys_netlink_add_address(&netlink, 1, ip(internet_addresses[i]), 32), 0);
    start_server();
}

static inline void make_host(struct world *world)
{
    AUTO(netlink) struct sys_netlink netlink = SYS_NETLINK_INIT, far = SYS_NETLINK_INIT;
    struct sys_netlink_veth veth = {.name = "eth0",
                                    .index = 10,
                                    .up = true,
                                    .peer_name = "wan",
                                    .peer_index = 11,
                                    .peer_namespace = world->internet};
    struct sys_netlink_route gateway = {.gateway = ip("25.7.7.1"), .index = 10};

    CHECK_EQUAL(sys_netlink_open(&far), 0);
    world->host = enter_new_network();
    CHECK_EQUAL(sys_netlink_open(&netlink), 0);
    if (sys_netlink_add_veth(&netlink, &veth) < 0)
        _exit(CHILD_UNABLE);
    CHECK_EQUAL(sys_netlink_add_address(&netlink, 1, ip("192.0.2.2"), 32), 0);
    CHECK_EQUAL(sys_netlink_add_address(&netlink, 10, ip("25.7.7.2"), 24), 0);
    CHECK_EQUAL(sys_netlink_add_address(&far, 11, ip("25.7.7.1"), 24), 0);
    CHECK_EQUAL(sys_netlink_set_up(&far, 11, true), 0);
    CHECK_EQUAL(sys_netlink_settle(&netlink, 10), 0);
    CHECK_EQUAL(sys_netlink_add_route(&netlink, &gateway), 0);
    start_server();
}

static inline void write_resolvers(const char *text)
{
    CHECK_EQUAL(sys_file_replace(AT_FDCWD, WORLD_RESOLVER, text, strlen(text), 0644), 0);
}

static inline void open_router(struct world *world)
{
    struct error err = ERROR_INIT;

    if (router_open(&world->settings, &world->router, &err) == 0)
        return;
    (void) fprintf(stderr, "router_open: %s\n", err.message);
    _exit(1);
}

/* Internet, host and router; we are on the host, in a mount namespace of our own. */
static inline struct world make_world(void)
{
    struct world world = {.settings = ROUTER_SETTINGS_DEFAULT};

    enter_private_mounts();
    make_internet(&world);
    make_host(&world);
    world.settings.state_folder = WORLD_STATE;
    world.settings.resolver_file = WORLD_RESOLVER;
    world.settings.resolver_fallback = "/tmp/no-such-file";
    world.settings.connections = 8;
    write_resolvers("nameserver 10.255.0.53\nnameserver 25.0.113.53\n");
    open_router(&world);
    return world;
}

struct sandbox {
    int inside; /* its network namespace */
    struct network network;
};

/* lo is left as it is born: network_attach has to bring it up. */
static inline struct sandbox make_sandbox(struct world *world)
{
    struct sandbox sandbox;
    struct error err = ERROR_INIT;
    struct id id = id_new();

    CHECK_EQUAL(sys_namespace_unshare(CLONE_NEWNET), 0);
    sandbox.inside = sys_namespace_open(0, "net");
    CHECK(sandbox.inside >= 0);
    network_namespace_return(world->host);
    if (network_attach(world->router, &id, sandbox.inside, &sandbox.network, &err) < 0) {
        (void) fprintf(stderr, "network_attach: %s\n", err.message);
        _exit(1);
    }
    return sandbox;
}

/* A socket in `namespace` that is connected, or the -errno of what happened; -ETIMEDOUT for
 * nothing.
 */
static inline int connect_from(const struct world *world, int namespace, const char *address,
                               uint16_t port)
{
    AUTO(close) int fd = -EBADF;
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = ip(address)};
    int error = 0;
    socklen_t size = sizeof(error);

    CHECK_EQUAL(network_namespace_enter(namespace), 0);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    network_namespace_return(world->host);
    CHECK(fd >= 0);
    if (connect(fd, (struct sockaddr *) &to, sizeof(to)) < 0 && errno != EINPROGRESS)
        return -errno;
    if (sys_file_poll(fd, POLLOUT, PATIENCE_MS) == 0)
        return -ETIMEDOUT;
    CHECK_EQUAL(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size), 0);
    return error ? -error : TAKE_FD(fd);
}

#define SEEN_SIZE 64

/* An HTTP request: 200 and the address the server saw, or -errno. */
static inline int fetch(const struct world *world, int namespace, const char *address,
                        uint16_t port, char ret_seen[static SEEN_SIZE])
{
    AUTO(close) int fd = connect_from(world, namespace, address, port);
    char text[SEEN_SIZE] = "";
    size_t length = 0;
    ssize_t count;

    ret_seen[0] = '\0';
    if (fd < 0)
        return fd;
    CHECK_EQUAL(send(fd, "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL), 18);
    while (sys_file_poll(fd, POLLIN, ANSWER_MS) > 0) {
        count = recv(fd, text + length, sizeof(text) - 1 - length, 0);
        if (count <= 0)
            break;
        length += (size_t) count;
    }
    if (strncmp(text, "HTTP/1.0 200 OK\r\n\r\n", 19) != 0)
        return -EBADMSG;
    (void) snprintf(ret_seen, SEEN_SIZE, "%s", text + 19);
    return 200;
}

static inline int try_fetch(const struct world *world, int namespace, const char *address)
{
    char seen[SEEN_SIZE];

    return fetch(world, namespace, address, 80, seen);
}

/* Ask a name server over UDP: 0 when the answer came from the address asked, or -errno. */
static inline int ask_name_within(const struct world *world, int namespace, const char *address,
                                  int timeout_ms)
{
    AUTO(close) int fd = -EBADF;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(53), .sin_addr = ip(address)};
    char answer[16] = "";

    CHECK_EQUAL(network_namespace_enter(namespace), 0);
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    network_namespace_return(world->host);
    CHECK_EQUAL(connect(fd, (struct sockaddr *) &to, sizeof(to)), 0);
    CHECK_EQUAL(send(fd, "question", 8, 0), 8);
    if (sys_file_poll(fd, POLLIN, timeout_ms) == 0)
        return -ETIMEDOUT;
    if (recv(fd, answer, sizeof(answer) - 1, 0) < 0)
        return -errno;
    return strcmp(answer, "question") == 0 ? 0 : -EBADMSG;
}

static inline int ask_name(const struct world *world, int namespace, const char *address)
{
    return ask_name_within(world, namespace, address, ANSWER_MS);
}
