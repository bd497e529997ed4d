/* The listening TCP ports of this network namespace, from /proc/net/tcp and tcp6. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Ports that are looked at; a machine with more has a problem that a list does not solve. */
#define PORT_TABLE_MAX   1024
#define PORT_COMMAND_MAX 256

struct port_entry {
    uint64_t inode; /* of the socket */
    uint16_t port;
    bool is_ipv6;
    union {
        struct in_addr ipv4;
        struct in6_addr ipv6;
    };
    pid_t pid;     /* 0: not known */
    char *command; /* owned; NULL: not known */
};

struct port_table {
    struct port_entry *entries; /* owned */
    size_t count;
    bool truncated; /* there were more than PORT_TABLE_MAX */
};

/* Returns 0, or -errno when /proc/net/tcp cannot be read. Stops at the first socket that does not
 * listen, for the kernel writes those that do first: thousands of connections cost nothing. */
int port_table_read(struct port_table *ret_table);

void port_table_done(struct port_table *table);

/* One line of the file. Returns 1 and the entry for a socket that listens, 0 for another one, or
 * -EINVAL for what is no such line (the heading). */
int port_table_parse(const char *line, bool is_ipv6, struct port_entry *ret_entry);

/* The inode in "socket:[123]", the target of a link in /proc/PID/fd; 0 for any other text. */
uint64_t port_table_parse_link(const char *target, size_t length);
