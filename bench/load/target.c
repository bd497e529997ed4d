#include "load/target.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <string.h>
#include <sys/un.h>

#include "base/auto.h"
#include "base/number.h"

#define SOURCE_ADDRESSES 8
#define LOOPBACK_NET     0x7f000000u

static int parse_unix(const char *path, struct target *ret)
{
    struct sockaddr_un *address = (struct sockaddr_un *) &ret->address;
    size_t length = strlen(path);

    if (length == 0 || length >= sizeof(address->sun_path))
        return -EINVAL;
    address->sun_family = AF_UNIX;
    memcpy(address->sun_path, path, length + 1);
    ret->address_length = sizeof(*address);
    return 0;
}

static int parse_tcp(const char *text, struct target *ret)
{
    struct sockaddr_in *address = (struct sockaddr_in *) &ret->address;
    char host[INET_ADDRSTRLEN] = "";
    const char *colon = strrchr(text, ':');
    int64_t port = 0;

    if (!colon || (size_t) (colon - text) >= sizeof(host))
        return -EINVAL;
    memcpy(host, text, (size_t) (colon - text));
    if (number_parse(colon + 1, 1, UINT16_MAX, &port) < 0)
        return -EINVAL;
    address->sin_family = AF_INET;
    address->sin_port = htons((uint16_t) port);
    ret->address_length = sizeof(*address);
    return inet_pton(AF_INET, host, &address->sin_addr) == 1 ? 0 : -EINVAL;
}

int target_parse(const char *text, struct target *ret)
{
    struct target target = {.text = text};
    int r =
        strncmp(text, "unix:", 5) == 0 ? parse_unix(text + 5, &target) : parse_tcp(text, &target);

    if (r == 0)
        *ret = target;
    return r;
}

/* 127.0.0.1 to .8 in turn; only when the server itself is on loopback. */
static int bind_source(int fd, const struct target *target, unsigned turn)
{
    const struct sockaddr_in *server = (const struct sockaddr_in *) &target->address;
    uint32_t source = LOOPBACK_NET + 1 + turn % SOURCE_ADDRESSES;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(source)};
    int on = 1;

    if ((ntohl(server->sin_addr.s_addr) & 0xff000000u) != LOOPBACK_NET)
        return 0;
    /* The port is chosen at connect: a port is then only taken per pair of addresses. */
    if (setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on)) < 0 ||
        bind(fd, (struct sockaddr *) &address, sizeof(address)) < 0)
        return -errno;
    return 0;
}

int target_connect(const struct target *target, unsigned turn)
{
    AUTO(close) int fd = socket(target->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;

    if (fd < 0)
        return -errno;
    if (target->address.ss_family == AF_INET) {
        int r = bind_source(fd, target, turn);

        if (r < 0)
            return r;
        if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
            return -errno;
    }
    if (connect(fd, (const struct sockaddr *) &target->address, target->address_length) < 0)
        return -errno;
    return TAKE_FD(fd);
}

int target_unblock(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return -errno;
    return 0;
}

void target_reset(int fd)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};

    /* A socket that cannot be reset is closed the slow way, which costs only a port. */
    (void) setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    (void) fd_close(fd);
}
