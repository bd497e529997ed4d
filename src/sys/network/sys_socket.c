#include "sys/network/sys_socket.h"

#include <fcntl.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/auto.h"
#include "sys/file/sys_file.h"
#include "sys/sys_call.h"

/* How often the lock on a socket's directory is tried, and how long between. */
#define LOCK_TRIES    100
#define LOCK_PAUSE_MS 10

static int set_option(int fd, int level, int option, int value)
{
    int result = sys_call_fault();

    return result ? result : sys_call_result(setsockopt(fd, level, option, &value, sizeof(value)));
}

int sys_socket_create(const struct sys_address *address)
{
    int type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
    int result = sys_call_fault();

    return result ? result : sys_call_result(socket(address->any.sa_family, type, 0));
}

static int bind_to(int fd, const struct sys_address *address)
{
    int result = sys_call_fault();

    return result ? result : sys_call_result(bind(fd, &address->any, address->length));
}

static int listen_tcp(int fd, const struct sys_address *address, int backlog)
{
    int result = set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);

    if (result == 0 && address->any.sa_family == AF_INET6)
        result = set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    if (result == 0)
        result = bind_to(fd, address);
    return result == 0 ? sys_call_result(listen(fd, backlog)) : result;
}

int sys_socket_listen_on(int fd, const struct sys_address *address, int backlog)
{
    return listen_tcp(fd, address, backlog);
}

/* Does a dead listener's file occupy the path? Returns 0 when it may be removed. */
static int check_stale(const struct sys_address *address)
{
    AUTO(close) int fd = -EBADF;
    struct stat status;
    int result;

    if (lstat(address->local.sun_path, &status) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISSOCK(status.st_mode))
        return -EADDRINUSE;
    fd = sys_socket_create(address);
    if (fd < 0)
        return fd;
    result = sys_socket_connect(fd, address);
    /* Anything but a clear refusal (a full queue, another socket type) means somebody is there. */
    return result == -ECONNREFUSED || result == -ENOENT ? 0 : -EADDRINUSE;
}

static int bind_over_stale(int fd, const struct sys_address *address)
{
    int result = bind_to(fd, address);

    if (result != -EADDRINUSE)
        return result;
    result = check_stale(address);
    if (result < 0)
        return result;
    if (unlink(address->local.sun_path) < 0 && errno != ENOENT)
        return -errno;
    return bind_to(fd, address);
}

static int lock_directory_of(const char *path)
{
    const struct timespec pause = {.tv_nsec = LOCK_PAUSE_MS * 1000000L};
    char parent[sizeof(((struct sockaddr_un *) 0)->sun_path)];
    AUTO(close) int fd = -EBADF;
    const char *name;
    int result = sys_file_split(path, parent, sizeof(parent), &name);

    if (result < 0)
        return result;
    fd = sys_file_open(AT_FDCWD, parent, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return fd;
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return TAKE_FD(fd);
        if (errno != EWOULDBLOCK && errno != EINTR)
            return -errno;
        (void) nanosleep(&pause, NULL); /* shorter after a signal, which is fine */
    }
    return -EADDRINUSE;
}

static int listen_unix(int fd, const struct sys_address *address, int backlog, mode_t mode)
{
    AUTO(close) int lock = lock_directory_of(address->local.sun_path);
    int result;

    if (lock < 0)
        return lock;
    /* The file takes the socket's own mode minus the umask. Nobody can connect before listen, so
     * there is time to give back what the umask took. */
    if (fchmod(fd, mode) < 0)
        return -errno;
    result = bind_over_stale(fd, address);
    if (result < 0)
        return result;
    if (chmod(address->local.sun_path, mode) < 0)
        result = -errno;
    if (result == 0)
        result = sys_call_fault();
    if (result == 0)
        result = sys_call_result(listen(fd, backlog));
    if (result < 0)
        (void) unlink(address->local.sun_path); /* ours, and of no use */
    return result;
}

int sys_socket_listen(const struct sys_address *address, int backlog, mode_t mode)
{
    AUTO(close) int fd = sys_socket_create(address);
    int result;

    if (fd < 0)
        return fd;
    if (address->any.sa_family == AF_UNIX)
        result = listen_unix(fd, address, backlog, mode);
    else
        result = listen_tcp(fd, address, backlog);
    return result < 0 ? result : TAKE_FD(fd);
}

int sys_socket_connect(int fd, const struct sys_address *address)
{
    int result = sys_call_fault();

    if (result == 0)
        result = sys_call_result(connect(fd, &address->any, address->length));
    /* An interrupted connect goes on by itself (connect(2)); calling again would say EALREADY. */
    return result == -EINTR ? -EINPROGRESS : result;
}

int sys_socket_accept(int fd, struct sys_address *ret_peer)
{
    struct sys_address peer = {0};
    int result;

    do {
        peer.length = sizeof(peer) - offsetof(struct sys_address, any);
        result = sys_call_fault();
        if (result == 0)
            result =
                sys_call_result(accept4(fd, &peer.any, &peer.length, SOCK_CLOEXEC | SOCK_NONBLOCK));
    } while (result == -EINTR || result == -ECONNABORTED);
    if (result >= 0 && ret_peer)
        *ret_peer = peer;
    return result;
}

int sys_socket_pair(int type, int ret_fds[static 2])
{
    int result = sys_call_fault();

    return result ? result : sys_call_result(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ret_fds));
}

int sys_socket_error(int fd)
{
    int error = 0;
    socklen_t length = sizeof(error);

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
        return -errno;
    return -error;
}

int sys_socket_set_nodelay(int fd, bool on)
{
    return set_option(fd, IPPROTO_TCP, TCP_NODELAY, on);
}

int sys_socket_local_address(int fd, struct sys_address *ret_address)
{
    struct sys_address address = {.length = sizeof(address) - offsetof(struct sys_address, any)};

    if (getsockname(fd, &address.any, &address.length) < 0)
        return -errno;
    *ret_address = address;
    return 0;
}

int sys_socket_peer_address(int fd, struct sys_address *ret_address)
{
    struct sys_address address = {.length = sizeof(address) - offsetof(struct sys_address, any)};

    if (getpeername(fd, &address.any, &address.length) < 0)
        return -errno;
    *ret_address = address;
    return 0;
}

bool sys_socket_is_own(const struct sys_address *address)
{
    AUTO(close) int fd = socket(address->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sys_address source = {.length = sizeof(source.ipv6)};

    if (sys_address_is_local(address))
        return true;
    if (fd < 0 || connect(fd, &address->any, address->length) < 0 ||
        getsockname(fd, &source.any, &source.length) < 0 ||
        source.any.sa_family != address->any.sa_family)
        return false;
    if (address->any.sa_family == AF_INET)
        return source.ipv4.sin_addr.s_addr == address->ipv4.sin_addr.s_addr;
    return address->any.sa_family == AF_INET6 &&
           memcmp(&source.ipv6.sin6_addr, &address->ipv6.sin6_addr, sizeof(struct in6_addr)) == 0;
}
