#include "sys/network/sys_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define UNIX_PREFIX "unix:"

#define LOOPBACK_IPV4_NET 127

static int parse_port(const char *text, uint16_t *ret_port)
{
    unsigned int port = 0;

    if (!*text)
        return -EINVAL;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return -EINVAL;
        port = port * 10 + (unsigned int) (*text - '0');
        if (port > UINT16_MAX)
            return -EINVAL;
    }
    *ret_port = (uint16_t) port;
    return 0;
}

static int parse_unix(const char *path, struct sys_address *ret_address)
{
    size_t length = strlen(path);

    if (length == 0 || *path == '@')
        return -EINVAL;
    if (length >= sizeof(ret_address->local.sun_path))
        return -ENAMETOOLONG;
    *ret_address = (struct sys_address){
        .length = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + length + 1),
        .local = {.sun_family = AF_UNIX},
    };
    memcpy(ret_address->local.sun_path, path, length + 1);
    return 0;
}

static int parse_host(int family, const char *text, size_t length, void *ret_address)
{
    char host[INET6_ADDRSTRLEN];

    if (length >= sizeof(host))
        return -EINVAL;
    memcpy(host, text, length);
    host[length] = '\0';
    return inet_pton(family, host, ret_address) == 1 ? 0 : -EINVAL;
}

static int parse_ipv6(const char *text, struct sys_address *ret_address)
{
    struct sys_address address = {.length = sizeof(address.ipv6),
                                  .ipv6 = {.sin6_family = AF_INET6}};
    const char *end = strchr(text, ']');
    uint16_t port;

    if (!end || end[1] != ':' || parse_port(end + 2, &port) < 0 ||
        parse_host(AF_INET6, text + 1, (size_t) (end - text - 1), &address.ipv6.sin6_addr) < 0)
        return -EINVAL;
    address.ipv6.sin6_port = htons(port);
    *ret_address = address;
    return 0;
}

static int parse_ipv4(const char *text, struct sys_address *ret_address)
{
    struct sys_address address = {.length = sizeof(address.ipv4), .ipv4 = {.sin_family = AF_INET}};
    const char *colon = strchr(text, ':');
    uint16_t port;

    if (!colon || parse_port(colon + 1, &port) < 0 ||
        parse_host(AF_INET, text, (size_t) (colon - text), &address.ipv4.sin_addr) < 0)
        return -EINVAL;
    address.ipv4.sin_port = htons(port);
    *ret_address = address;
    return 0;
}

int sys_address_parse(const char *text, struct sys_address *ret_address)
{
    if (strncmp(text, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0)
        return parse_unix(text + strlen(UNIX_PREFIX), ret_address);
    return *text == '[' ? parse_ipv6(text, ret_address) : parse_ipv4(text, ret_address);
}

/* The kernel gives names without a NUL when they fill the field, and abstract ones begin with it.
 */
static void format_unix(const struct sys_address *address,
                        char ret_text[static SYS_ADDRESS_TEXT_SIZE])
{
    size_t offset = offsetof(struct sockaddr_un, sun_path);
    size_t length = address->length > offset ? address->length - offset : 0;
    const char *name = address->local.sun_path;
    bool abstract = length > 0 && !name[0];
    size_t at = strlen(UNIX_PREFIX);

    memcpy(ret_text, UNIX_PREFIX, at);
    if (abstract)
        ret_text[at++] = '@';
    for (size_t i = abstract; i < length && i < sizeof(address->local.sun_path); i++) {
        if (!abstract && !name[i])
            break;
        ret_text[at++] = name[i] >= ' ' && name[i] < 0x7f ? name[i] : abstract ? '?' : name[i];
    }
    ret_text[at] = '\0';
}

void sys_address_format(const struct sys_address *address,
                        char ret_text[static SYS_ADDRESS_TEXT_SIZE])
{
    char host[INET6_ADDRSTRLEN] = "";

    switch (address->any.sa_family) {
    case AF_INET:
        (void) inet_ntop(AF_INET, &address->ipv4.sin_addr, host, sizeof(host));
        (void) snprintf(ret_text, SYS_ADDRESS_TEXT_SIZE, "%s:%u", host,
                        ntohs(address->ipv4.sin_port));
        break;
    case AF_INET6:
        (void) inet_ntop(AF_INET6, &address->ipv6.sin6_addr, host, sizeof(host));
        (void) snprintf(ret_text, SYS_ADDRESS_TEXT_SIZE, "[%s]:%u", host,
                        ntohs(address->ipv6.sin6_port));
        break;
    case AF_UNIX:
        format_unix(address, ret_text);
        break;
    default:
        (void) snprintf(ret_text, SYS_ADDRESS_TEXT_SIZE, "unknown");
    }
}

bool sys_address_is_local(const struct sys_address *address)
{
    const struct in6_addr *ipv6 = &address->ipv6.sin6_addr;

    switch (address->any.sa_family) {
    case AF_UNIX:
        return true;
    case AF_INET:
        return ntohl(address->ipv4.sin_addr.s_addr) >> 24 == LOOPBACK_IPV4_NET;
    case AF_INET6:
        return IN6_IS_ADDR_LOOPBACK(ipv6) ||
               (IN6_IS_ADDR_V4MAPPED(ipv6) && ipv6->s6_addr[12] == LOOPBACK_IPV4_NET);
    default:
        return false;
    }
}
