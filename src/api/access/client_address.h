/* Where a request really comes from.
 *
 * The peer of the connection, unless that is a proxy the operator named (setting trusted-proxies):
 * then the last address of X-Forwarded-For that is no such proxy. Everybody can write that header,
 * so from all others it is not looked at. The same holds for X-Forwarded-Proto.
 *
 * An address is whom to count tries of and what to write into the audit log, never a proof: a proxy
 * on this machine that says nothing of its clients makes all of them come from loopback. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "net/address_rules.h"
#include "net/http/http_request.h"

#define TRUSTED_PROXIES_MAX 32
#define CLIENT_ADDRESS_SIZE 64
#define FORWARDED_HOPS_MAX  32 /* entries that are looked at, from the last one */

struct trusted_proxies {
    struct cidr ranges[TRUSTED_PROXIES_MAX];
    size_t count;
    bool is_unix; /* whoever comes over a unix socket is one */
};

/* "10.0.0.0/8,::1,unix", or "" for none. Returns 0, or -1 with ERR_INVALID. */
int trusted_proxies_read(struct trusted_proxies *proxies, const char *text, struct error *err);

struct client_address {
    char text[CLIENT_ADDRESS_SIZE];    /* without its port; "unix" for the local socket */
    char network[CLIENT_ADDRESS_SIZE]; /* whose tries are counted together: of IPv6 the /64 */
    bool is_secure;                    /* TLS, up to the proxy when there is one */
};

/* Whether a client_address.text was of that client_address.network. */
bool client_address_is_of(const char *text, const char *network);

void client_address_find(const struct trusted_proxies *proxies, const struct http_request *request,
                         struct client_address *ret_address);
