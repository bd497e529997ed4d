/* Which addresses the daemon may dial on behalf of others.
 *
 * URLs of webhooks, buckets and registries come from users; a host name in them may resolve to
 * the machine itself, its network or a cloud's metadata service. So the rules look at the resolved
 * address, at the moment of connecting, and refuse everything that is not the public internet:
 * the IANA special-purpose registries, addresses that hide an IPv4 address of that kind inside an
 * IPv6 one, and the metadata services that sit at public-looking addresses. The operator may allow
 * ranges that are refused by default; what is written there wins.
 *
 * The table with the reason for each range is in address_rules.c. Pure, thread-safe while not
 * changed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/error.h"

/* A range of addresses: the first `bits` bits of `bytes`, the others being 0. */
struct cidr {
    sa_family_t family; /* AF_INET or AF_INET6 */
    uint8_t bits;
    uint8_t bytes[16]; /* network order; IPv4 uses the first four */
};

/* Read "10.0.0.0/8", "fd00::/8", or a single address. Returns 0, or -EINVAL; bits set behind the
 * prefix ("10.0.0.1/8") are refused, because the writer meant something else. */
int cidr_parse(const char *text, struct cidr *ret_cidr);

/* Whether the address of that family (4 or 16 bytes, network order) lies in the range. */
bool cidr_contains(const struct cidr *cidr, sa_family_t family, const uint8_t *bytes);

#define ADDRESS_RULES_ALLOWED_MAX 64

/* Start with {.count = 0}: everything special is refused. Copied by value. */
struct address_rules {
    struct cidr allowed[ADDRESS_RULES_ALLOWED_MAX];
    size_t count;
};

/* Allow the range `text`. Returns 0, or -1 with ERR_INVALID. */
int address_rules_allow(struct address_rules *rules, const char *text, struct error *err);

/* Allow all ranges of a list, "10.0.0.0/8,fd00::/8"; "" has none. */
int address_rules_allow_list(struct address_rules *rules, const char *list, struct error *err);

/* Whether `address` may be dialled. Returns 0, or -1 with ERR_FORBIDDEN and the reason:
 * "169.254.169.254 is link-local (cloud metadata)". */
int address_rules_check(const struct address_rules *rules, const struct sockaddr *address,
                        socklen_t length, struct error *err);
