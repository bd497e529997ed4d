/* attack_network: reach what a sandbox must not reach. For tests of isolation only.
 *
 *     attack_network NAME [ARGUMENT]... [, NAME [ARGUMENT]...]...
 *         tcp ADDRESS [PORT]            connect (80) and be told the address we were seen with
 *         tcp6 ADDRESS                  the same by IPv6; `fe80::1` through eth0
 *         arrive ADDRESS                the same, where nobody need listen: being told so is enough
 *         udp ADDRESS                   a question at port 53 and its answer
 *         icmp ADDRESS                  an echo request, by a raw socket
 *         forge SOURCE ADDRESS          a datagram with a source that is not ours, by a raw socket;
 *                                       ADDRESS is asked in our own name whether it arrived
 *         forge_bound SOURCE ADDRESS    the same without one: bound to an address that is not ours
 *         many ADDRESS COUNT            so many connections at once
 *         enable_ipv6                   give eth0 an address of IPv6
 *     attack_network serve              be somebody to be reached (attack_server.h), in the
 *                                       background; returns when it listens
 *
 * Prints for each, on a line, `NAME ARGUMENT succeeded [ADDRESS]`, `... refused ETIMEDOUT` or, for
 * many, `... refused ENETUNREACH after 8`. Answers of the lab come at once, so nothing is waited
 * for longer than PATIENCE_MS. Exit status: that of the last, 0 succeeded, 1 refused, 2 usage. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "attack_server.h"
#include "base/auto.h"
#include "base/number.h"

#define PATIENCE_MS   400
#define ARGUMENTS_MAX 2
#define MANY_MAX      1024
#define SEEN_SIZE     64

enum { EXIT_SUCCEEDED, EXIT_REFUSED, EXIT_USAGE };

struct attempt {
    const char *arguments[ARGUMENTS_MAX];
    char seen[SEEN_SIZE]; /* more to say, or "" */
};

static struct sockaddr_in address_of(const char *text, uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};

    if (!text || inet_pton(AF_INET, text, &address.sin_addr) != 1)
        address.sin_family = AF_UNSPEC; /* refused by every call */
    return address;
}

static bool wait_for(int fd, short events)
{
    struct pollfd wait = {.fd = fd, .events = events};

    return poll(&wait, 1, PATIENCE_MS) > 0;
}

/* --- connections ---------------------------------------------------------------------------- */

/* A connected socket or -errno. */
static int connect_to(const struct sockaddr *address, socklen_t length)
{
    AUTO(close) int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error = 0;
    socklen_t size = sizeof(error);

    if (fd < 0 || (connect(fd, address, length) < 0 && errno != EINPROGRESS))
        return -errno;
    if (!wait_for(fd, POLLOUT))
        return -ETIMEDOUT;
    (void) getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    return error ? -error : TAKE_FD(fd);
}

static int read_answer(int fd, char ret_seen[static SEEN_SIZE])
{
    ssize_t length = wait_for(fd, POLLIN) ? recv(fd, ret_seen, SEEN_SIZE - 1, 0) : -1;

    if (length < 0)
        return errno ? -errno : -ETIMEDOUT;
    ret_seen[length] = '\0';
    return length == 0 ? -ECONNRESET : 0;
}

static int try_tcp(struct attempt *attempt)
{
    int64_t port = ATTACK_PORT_TELL;
    struct sockaddr_in address;
    AUTO(close) int fd = -EBADF;

    if (attempt->arguments[1] && number_parse(attempt->arguments[1], 1, UINT16_MAX, &port) < 0)
        return -EINVAL;
    address = address_of(attempt->arguments[0], (uint16_t) port);
    fd = connect_to((struct sockaddr *) &address, sizeof(address));
    errno = ETIMEDOUT;
    return fd < 0 ? fd : read_answer(fd, attempt->seen);
}

static int try_arrive(struct attempt *attempt)
{
    int r = try_tcp(attempt);

    return r == -ECONNREFUSED ? 0 : r;
}

static int try_tcp6(struct attempt *attempt)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6,
                                   .sin6_port = htons(ATTACK_PORT_TELL),
                                   .sin6_scope_id = if_nametoindex("eth0")};
    AUTO(close) int fd = -EBADF;

    if (!attempt->arguments[0] ||
        inet_pton(AF_INET6, attempt->arguments[0], &address.sin6_addr) != 1)
        return -EINVAL;
    fd = connect_to((struct sockaddr *) &address, sizeof(address));
    /* Nobody listens there: that we are told so means that the packet arrived. */
    return fd == -ECONNREFUSED || fd >= 0 ? 0 : fd;
}

static int try_many(struct attempt *attempt)
{
    static int fds[MANY_MAX];
    struct sockaddr_in address = address_of(attempt->arguments[0], ATTACK_PORT_TELL);
    int64_t count, i = 0;

    if (!attempt->arguments[1] || number_parse(attempt->arguments[1], 1, MANY_MAX, &count) < 0)
        return -EINVAL;
    for (; i < count; i++) {
        fds[i] = connect_to((struct sockaddr *) &address, sizeof(address));
        if (fds[i] < 0)
            break;
    }
    (void) snprintf(attempt->seen, SEEN_SIZE, "after %d", (int) i);
    for (int64_t open = 0; open < i; open++)
        (void) close(fds[open]);
    return i < count ? fds[i] : 0;
}

/* --- datagrams ------------------------------------------------------------------------------ */

static int ask(const char *where, uint16_t port, const char *question,
               char ret_answer[static SEEN_SIZE])
{
    struct sockaddr_in address = address_of(where, port);
    AUTO(close) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *) &address, sizeof(address)) < 0 ||
        send(fd, question, strlen(question), 0) < 0)
        return -errno;
    errno = ETIMEDOUT;
    return read_answer(fd, ret_answer);
}

static int try_udp(struct attempt *attempt)
{
    char answer[SEEN_SIZE];
    int r = ask(attempt->arguments[0], ATTACK_PORT_ECHO, "question", answer);

    return r < 0 ? r : strcmp(answer, "question") == 0 ? 0 : -EBADMSG;
}

static uint16_t checksum(const void *bytes, size_t length)
{
    const uint16_t *words = bytes;
    uint32_t sum = 0;

    for (size_t i = 0; i < length / 2; i++)
        sum += words[i];
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t) ~sum;
}

static long clock_number(void)
{
    struct timespec now;

    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_nsec / 1000;
}

static int try_icmp(struct attempt *attempt)
{
    struct sockaddr_in address = address_of(attempt->arguments[0], 0), from;
    /* A number of its own each time: the kernel lets the answers to an older one through. */
    struct icmphdr request = {.type = ICMP_ECHO, .un.echo.id = (uint16_t) clock_number()};
    AUTO(close) int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);

    request.checksum = checksum(&request, sizeof(request));
    if (fd < 0 ||
        sendto(fd, &request, sizeof(request), 0, (struct sockaddr *) &address, sizeof(address)) < 0)
        return -errno;
    while (wait_for(fd, POLLIN)) {
        struct {
            struct iphdr ip;
            struct icmphdr icmp;
            char rest[128];
        } answer = {0};
        socklen_t size = sizeof(from);

        if (recvfrom(fd, &answer, sizeof(answer), 0, (struct sockaddr *) &from, &size) < 0)
            return -errno;
        if (answer.icmp.type == ICMP_ECHOREPLY && from.sin_addr.s_addr == address.sin_addr.s_addr)
            return 0;
        if (answer.icmp.type == ICMP_DEST_UNREACH)
            return -EHOSTUNREACH;
    }
    return -ETIMEDOUT;
}

/* --- forged sources ------------------------------------------------------------------------- */

struct forged {
    struct iphdr ip;
    struct udphdr udp;
    char token[32];
};

/* Whether the token is what was remembered last: asked for in our own name. */
static int has_arrived(const char *where, const char *token)
{
    char answer[SEEN_SIZE];
    int r = 0;

    for (int i = 0; i < 3; i++) {
        static const struct timespec moment = {.tv_nsec = 50000000};

        (void) nanosleep(&moment, NULL);
        r = ask(where, ATTACK_PORT_RECALL, "?", answer);
        if (r < 0)
            return -EPROTO; /* the question itself must pass, or nothing was learned */
        if (strcmp(answer, token) == 0)
            return 0;
    }
    return -ETIMEDOUT;
}

static int try_forge(struct attempt *attempt)
{
    struct sockaddr_in source = address_of(attempt->arguments[0], 0);
    struct sockaddr_in address = address_of(attempt->arguments[1], ATTACK_PORT_REMEMBER);
    AUTO(close) int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
    struct forged packet = {
        .ip = {.version = 4,
               .ihl = 5,
               .ttl = 64,
               .protocol = IPPROTO_UDP,
               .saddr = source.sin_addr.s_addr,
               .daddr = address.sin_addr.s_addr},
        .udp = {.source = htons(4321),
                .dest = address.sin_port,
                .len = htons(sizeof(packet.udp) + sizeof(packet.token))},
    };

    (void) snprintf(packet.token, sizeof(packet.token), "forged-%ld", clock_number());
    if (fd < 0 ||
        sendto(fd, &packet, sizeof(packet), 0, (struct sockaddr *) &address, sizeof(address)) < 0)
        return -errno;
    return has_arrived(attempt->arguments[1], packet.token);
}

static int try_forge_bound(struct attempt *attempt)
{
    struct sockaddr_in source = address_of(attempt->arguments[0], 0);
    struct sockaddr_in address = address_of(attempt->arguments[1], ATTACK_PORT_REMEMBER);
    AUTO(close) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    char token[32];
    int one = 1;

    (void) snprintf(token, sizeof(token), "forged-%ld", clock_number());
    /* Anybody may ask for the first, only some for the second. */
    (void) setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &one, sizeof(one));
    (void) setsockopt(fd, IPPROTO_IP, IP_TRANSPARENT, &one, sizeof(one));
    if (fd < 0 || bind(fd, (struct sockaddr *) &source, sizeof(source)) < 0 ||
        sendto(fd, token, sizeof(token), 0, (struct sockaddr *) &address, sizeof(address)) < 0)
        return -errno;
    return has_arrived(attempt->arguments[1], token);
}

/* --- settings ------------------------------------------------------------------------------- */

static int write_setting(const char *path, const char *value)
{
    AUTO(close) int fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd < 0 || write(fd, value, strlen(value)) < 0 ? -errno : 0;
}

/* By the kernel's own way of making up a link-local address, which a change of the mode starts. */
static int try_enable_ipv6(struct attempt *attempt)
{
    static const struct timespec moment = {.tv_nsec = 100000000};
    int r = write_setting("/proc/sys/net/ipv6/conf/eth0/accept_dad", "0");

    (void) attempt;
    if (r == 0)
        r = write_setting("/proc/sys/net/ipv6/conf/eth0/addr_gen_mode", "0");
    if (r == 0)
        r = write_setting("/proc/sys/net/ipv6/conf/eth0/disable_ipv6", "1");
    if (r == 0)
        r = write_setting("/proc/sys/net/ipv6/conf/eth0/disable_ipv6", "0");
    (void) nanosleep(&moment, NULL);
    return r;
}

/* --- all of them ---------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*try)(struct attempt *attempt);
} attempts[] = {
    {"tcp", try_tcp},
    {"arrive", try_arrive},
    {"tcp6", try_tcp6},
    {"udp", try_udp},
    {"icmp", try_icmp},
    {"forge", try_forge},
    {"forge_bound", try_forge_bound},
    {"many", try_many},
    {"enable_ipv6", try_enable_ipv6},
};

static int try_one(char **words, size_t count)
{
    struct attempt attempt = {.seen = ""};
    size_t i = 0;
    int r;

    while (i < ARRAY_COUNT(attempts) && strcmp(attempts[i].name, words[0]) != 0)
        i++;
    if (i == ARRAY_COUNT(attempts) || count > 1 + ARGUMENTS_MAX)
        return EXIT_USAGE;
    for (size_t j = 1; j < count; j++)
        attempt.arguments[j - 1] = words[j];
    r = attempts[i].try(&attempt);
    for (size_t j = 0; j < count; j++)
        (void) printf("%s ", words[j]);
    (void) printf("%s%s%s%s\n", r < 0 ? "refused " : "succeeded", r < 0 ? strerrorname_np(-r) : "",
                  attempt.seen[0] ? " " : "", attempt.seen);
    (void) fflush(stdout);
    return r < 0 ? EXIT_REFUSED : EXIT_SUCCEEDED;
}

static int serve(void)
{
    int ends[2];
    char byte;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0 || (pid = fork()) < 0)
        return EXIT_USAGE;
    if (pid == 0) {
        for (int fd = 0; fd < 3; fd++)
            (void) close(fd); /* whoever started us waits for their end */
        _exit(-attack_server_run(ends[1]));
    }
    (void) close(ends[1]);
    return read(ends[0], &byte, 1) == 1 ? EXIT_SUCCEEDED : EXIT_REFUSED;
}

int main(int argc, char **argv)
{
    int status = EXIT_USAGE;

    if (argc == 2 && strcmp(argv[1], "serve") == 0)
        return serve();
    for (int first = 1, end = 1; first < argc; first = end + 1) {
        for (end = first; end < argc && strcmp(argv[end], ",") != 0; end++)
            ;
        status = end > first ? try_one(argv + first, (size_t) (end - first)) : EXIT_USAGE;
    }
    return status;
}
