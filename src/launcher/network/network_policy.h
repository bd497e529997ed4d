/* What one sandbox may reach, where that differs from the default.
 *
 * Without a policy a sandbox reaches the internet by TCP, UDP and ICMP, and no private network. A
 * policy is a list of rules, looked at in order, the first that matches decides; then either the
 * default decides or everything else is refused (`only_listed`). Refused connections fail at once.
 *
 *     {.allow = true, .to = {0x0a010200, 24}, .protocol = NETWORK_TCP, .ports = {443, 443}}
 *
 * No rule opens other sandboxes, the host's own addresses, loopback, link-local addresses (with the
 * metadata services of clouds) or multicast: the daemon, which sends policies, may have been taken
 * over.
 *
 * It becomes a chain of the router's table, named after the sandbox's slot and reached by a map
 * from its address. (Not a set of address, network and port: sets of ranges refuse ranges that
 * overlap, forget the order, and are copied whole by the kernel at every change.) Setting one costs
 * about 0.2 ms for ten rules. */
#pragma once

#include <stdbool.h>

#include "launcher/network/network.h"
#include "model/network_rule.h"

#define NETWORK_RULES_MAX 128

struct network_policy {
    const struct network_rule *rules;
    size_t count;
    bool only_listed;     /* refuse what no rule allows */
    bool no_names;        /* refuse questions to our name server too */
    uint32_t connections; /* most at once; 0: the router's default */
};

/* Replace the sandbox's policy. New connections are judged by it from now on, existing ones after
 * network_recheck; the count of `connections` begins anew. ERR_INVALID for more than
 * NETWORK_RULES_MAX rules or an impossible one. */
int network_set_policy(struct router *router, const struct network *network,
                       const struct network_policy *policy, struct error *err);

/* Back to the default. No error when there is none. */
int network_clear_policy(struct router *router, const struct network *network, struct error *err);
