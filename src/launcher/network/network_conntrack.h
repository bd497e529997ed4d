/* The connections of one sandbox in the router's connection tracking, told apart by their mark: the
 * router's rules mark each with the index of the link it came from.
 *
 * Both functions walk the whole table of the machine (with 262,144 buckets, forgetting takes 0.2 ms
 * and counting 10 ms). `netfilter` is a socket opened in the router namespace. */
#pragma once

#include <stdint.h>

#include "launcher/network/nft.h"

/* Forget all connections with this mark (not 0). Packets of such a connection are judged by the
 * rules again; those that are still allowed go on. Returns 0 or -errno. */
int network_conntrack_flush(struct nft *netfilter, uint32_t mark);

/* How many there are, or -errno. */
int network_conntrack_count(struct nft *netfilter, uint32_t mark);
