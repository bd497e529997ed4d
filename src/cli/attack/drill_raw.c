/* What no client of HTTP does: connections that say nothing, or half a thing, or nonsense. */
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/memory.h"
#include "cli/attack/drill_assault.h"

#define CONNECTIONS 400
#define PIPELINED   200
#define ROUND_NS    100000000

static const char half[] = "GET /burrow/v1/whoami HTTP/1.1\r\nHost: localhost\r\nX-Half: ";
static const char nonsense[] = "\x16\x03\x01 BREW / HTP/9\r\n\r\n\r\n{}\r\n";
static const char whole[] = "GET /burrow/v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n";

/* A connection to the daemon; -1 when it cannot be had. */
static int raw_connect(const struct addrinfo *address)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -1;
    if (connect(fd, address->ai_addr, address->ai_addrlen) < 0 && errno != EINPROGRESS)
        return fd_close(fd), -1;
    return fd;
}

static void raw_say(int fd, enum drill_raw kind)
{
    if (kind == DRILL_RAW_HEAD)
        (void) send(fd, half, sizeof(half) - 1, MSG_NOSIGNAL);
    else if (kind == DRILL_RAW_GARBAGE)
        (void) send(fd, nonsense, sizeof(nonsense) - 1, MSG_NOSIGNAL);
    for (int i = 0; kind == DRILL_RAW_UNREAD && i < PIPELINED; i++)
        (void) send(fd, whole, sizeof(whole) - 1, MSG_NOSIGNAL);
}

/* The daemon's address, of "host:port" or "[address]:port". NULL: there is none, as of a unix socket. */
static struct addrinfo *raw_find(const struct client *client)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    const char *port = strrchr(client->host, ':');
    struct addrinfo *found = NULL;
    char host[256];

    if (!port)
        return NULL;
    (void) snprintf(host, sizeof(host), "%.*s", (int) (port - client->host), client->host);
    if (host[0] == '[' && strlen(host) > 1) {
        memmove(host, host + 1, strlen(host));
        host[strlen(host) - 1] = '\0';
    }
    return getaddrinfo(host, port + 1, &hints, &found) == 0 ? found : NULL;
}

unsigned int drill_raw_run(const struct client *client, enum drill_raw kind,
                           struct drill_counts *counts, unsigned int seconds)
{
    static const struct timespec round = {.tv_nsec = ROUND_NS};
    AUTO(free) int *fds = mem_alloc_array(CONNECTIONS, sizeof(int));
    struct addrinfo *address = raw_find(client);
    unsigned int opened = 0;

    if (!address)
        return 0;
    for (unsigned int i = 0; i < CONNECTIONS; i++)
        fds[i] = -EBADF;
    for (unsigned int turn = 0; turn < seconds * 10; turn++) {
        for (unsigned int i = 0; i < CONNECTIONS; i++) {
            /* Those that were said something wrong are closed by the daemon: there are new ones. */
            if (turn > 0 && kind == DRILL_RAW_GARBAGE)
                fds[i] = fd_close(fds[i]);
            if (fds[i] < 0 && (fds[i] = raw_connect(address)) >= 0)
                opened++;
            if (fds[i] >= 0 && (turn == 1 || (turn > 1 && kind == DRILL_RAW_GARBAGE)))
                raw_say(fds[i], kind);
        }
        counts->good = opened;
        counts->is_ready = turn > 1;
        (void) nanosleep(&round, NULL);
    }
    freeaddrinfo(address);
    return opened;
}
