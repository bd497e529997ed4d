/* The uplink: the pair of links between host and router, and the pair of addresses on it. */
#pragma once

#include "launcher/network/router_internal.h"

/* "10.66.0.0/16": an IPv4 network. -EINVAL for anything else, host bits that are set included. */
int router_uplink_parse_range(const char *text, struct in_addr *ret_network,
                              unsigned int *ret_prefix);

/* Make sure that there is an uplink and note its addresses in the router. A new one gets the first
 * pair of `range` that no address and no route of the host (but the default one) covers. */
int router_uplink_ensure(struct router *router, const char *range, struct error *err);
