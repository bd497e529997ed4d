/* Addresses of sockets as text:
 *
 *     127.0.0.1:8787     [::1]:8787     unix:/run/burrow/api.sock
 *
 * Numbers only: names are not resolved here. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

struct sys_address {
    socklen_t length; /* of the part of the union in use */
    union {
        struct sockaddr any; /* any.sa_family says which: AF_INET, AF_INET6, AF_UNIX */
        struct sockaddr_in ipv4;
        struct sockaddr_in6 ipv6;
        struct sockaddr_un local;
    };
};

/* Enough for every address as text, and its NUL. */
#define SYS_ADDRESS_TEXT_SIZE (sizeof("unix:@") + sizeof(((struct sockaddr_un *) 0)->sun_path))

/* Returns 0; -EINVAL for anything else than the three forms (no port, a port above 65535, a host
 * name, an IPv6 scope, an empty path); -ENAMETOOLONG for a path that does not fit into an address.
 * A path that starts with '@' is -EINVAL, because elsewhere that means an abstract name. */
int sys_address_parse(const char *text, struct sys_address *ret_address);

/* The other way. Abstract unix names become "unix:@name" with '?' for what is not printable;
 * a socket without a name is "unix:". */
void sys_address_format(const struct sys_address *address,
                        char ret_text[static SYS_ADDRESS_TEXT_SIZE]);

/* Reachable from this machine only: 127.0.0.0/8, ::1 (also as ::ffff:127.x), and unix sockets. */
bool sys_address_is_local(const struct sys_address *address);
