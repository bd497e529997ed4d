#include "attack_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/auto.h"

#define SERVED_MAX     256
#define REMEMBERED_MAX 64

enum { TELL, ECHO, REMEMBER, RECALL, LISTENERS };

static const struct {
    int type;
    uint16_t port;
} listeners[LISTENERS] = {
    [TELL] = {SOCK_STREAM, ATTACK_PORT_TELL},
    [ECHO] = {SOCK_DGRAM, ATTACK_PORT_ECHO},
    [REMEMBER] = {SOCK_DGRAM, ATTACK_PORT_REMEMBER},
    [RECALL] = {SOCK_DGRAM, ATTACK_PORT_RECALL},
};

struct server {
    struct pollfd polls[SERVED_MAX]; /* the listeners, then connections */
    size_t count;
    char remembered[REMEMBERED_MAX];
    size_t remembered_length;
};

static int listen_at(int type, uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int one = 1, fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    (void) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, (struct sockaddr *) &address, sizeof(address)) < 0)
        return -errno;
    if (type == SOCK_STREAM)
        return listen(fd, 64) < 0 ? -errno : fd;
    /* Answers come from the address that was asked: the message of IP_PKTINFO is sent back. */
    return setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &one, sizeof(one)) < 0 ? -errno : fd;
}

static void accept_connection(struct server *server)
{
    struct sockaddr_in peer;
    socklen_t size = sizeof(peer);
    char address[INET_ADDRSTRLEN];
    int fd = accept4(server->polls[TELL].fd, (struct sockaddr *) &peer, &size, SOCK_CLOEXEC);

    if (fd < 0)
        return;
    (void) inet_ntop(AF_INET, &peer.sin_addr, address, sizeof(address));
    (void) send(fd, address, strlen(address), MSG_NOSIGNAL);
    if (server->count == SERVED_MAX)
        (void) close(fd);
    else
        server->polls[server->count++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

static void answer_datagram(struct server *server, int which)
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
    ssize_t length = recvmsg(server->polls[which].fd, &message, 0);

    if (length < 0)
        return;
    if (which == REMEMBER) {
        server->remembered_length =
            (size_t) length > REMEMBERED_MAX ? REMEMBERED_MAX : (size_t) length;
        memcpy(server->remembered, bytes, server->remembered_length);
        return;
    }
    part.iov_len = (size_t) length;
    if (which == RECALL)
        part = (struct iovec){server->remembered, server->remembered_length};
    (void) sendmsg(server->polls[which].fd, &message, MSG_NOSIGNAL);
}

/* Whatever comes on a connection is thrown away; its end ends it. */
static void read_connection(struct server *server, size_t i)
{
    char bytes[512];

    if (recv(server->polls[i].fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
        return;
    (void) close(server->polls[i].fd);
    server->polls[i] = server->polls[--server->count];
}

int attack_server_run(int ready)
{
    static struct server server = {.remembered = "nothing", .remembered_length = 7};

    for (size_t i = 0; i < LISTENERS; i++) {
        int fd = listen_at(listeners[i].type, listeners[i].port);

        if (fd < 0)
            return fd;
        server.polls[server.count++] = (struct pollfd){.fd = fd, .events = POLLIN};
    }
    if (write(ready, "r", 1) != 1)
        return -errno;
    for (;;) {
        if (poll(server.polls, server.count, -1) < 0)
            continue;
        for (size_t i = server.count; i > LISTENERS; i--) {
            if (server.polls[i - 1].revents)
                read_connection(&server, i - 1);
        }
        for (int i = ECHO; i < LISTENERS; i++) {
            if (server.polls[i].revents)
                answer_datagram(&server, i);
        }
        if (server.polls[TELL].revents)
            accept_connection(&server);
    }
}
