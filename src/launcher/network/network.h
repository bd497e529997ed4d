/* The network of one sandbox.
 *
 * `none`: loopback only, brought up by the child itself with network_loopback_up.
 *
 * `nat`: a link to the router (router.h). What belongs to a sandbox follows from its slot
 * (network_slot.h): slot 7 has address 10.66.0.7, link s7 and, when it has rules of its own, chain
 * s7; the link's index is the slot's mark and marks the sandbox's connections. Joining costs about
 * 0.35 ms; in the firewall it is one number added to one set.
 *
 *     network_attach                  after clone, before the child goes on
 *     network_set_policy              rules of its own (network_policy.h); optional
 *     ... the sandbox runs; a restarted launcher finds it again with network_adopt ...
 *     the sandbox's last process ends and its namespace with it; the kernel deletes the link, which
 *     takes some 30 ms of its time and none of ours
 *     network_finish until it returns 1
 *
 * The slot stays taken until network_finish has seen the link gone and has removed mark and rules,
 * so no later sandbox inherits rules or connections. Functions return -1 with an error unless they
 * say otherwise. For a program with one thread, in the host's network namespace. */
#pragma once

#include "base/id.h"
#include "launcher/network/network_slot.h"
#include "launcher/network/router.h"

struct network {
    struct network_slot slot;
    struct in_addr address;
};

/* Bring up `lo` in the network namespace of the caller. For the child between clone and exec:
 * allocates nothing, -errno. About 50 microseconds. ::1 works too. */
int network_loopback_up(void);

/* Join the sandbox to the router: take a slot, make the link, set up both its ends. `inside` is the
 * sandbox's network namespace (sys_namespace_open of its first process), borrowed. ERR_CONFLICT
 * when the sandbox has a network already, ERR_UNAVAILABLE when no slot is free. On failure nothing
 * is left. */
int network_attach(struct router *router, const struct id *id, int inside,
                   struct network *ret_network, struct error *err);

/* The network of a sandbox that was attached before, perhaps by another program. ERR_NOT_FOUND when
 * it has none. Does not say that the sandbox lives. */
int network_adopt(struct router *router, const struct id *id, struct network *ret_network,
                  struct error *err);

typedef void network_function(void *context, const struct network *network);

/* All of them: after a restart those whose sandbox is gone need network_finish. The callback must
 * not attach or finish. */
int network_list(struct router *router, network_function *call, void *context, struct error *err);

struct network_statistics {
    uint64_t received_bytes; /* by the sandbox, headers included */
    uint64_t received_packets;
    uint64_t sent_bytes;
    uint64_t sent_packets;
};

/* About 30 microseconds. ERR_NOT_FOUND when the link is gone. */
int network_statistics(struct router *router, const struct network *network,
                       struct network_statistics *ret_statistics, struct error *err);

/* How many connections the sandbox has through the router, or -1. Walks the whole table of
 * connections, 10 ms here: for a child process, or seldom. */
int network_connections(struct router *router, const struct network *network, struct error *err);

/* Judge the sandbox's existing connections by the rules again: call it after network_set_policy on
 * a running sandbox, otherwise only new connections are judged. 0.2 ms, more with many connections.
 */
int network_recheck(struct router *router, const struct network *network, struct error *err);

/* Cut the sandbox off at once, while it lives or because its namespace will not die. Deleting a
 * link blocks for about 30 ms: call it in a child process. No error when it is gone. */
int network_cut(struct router *router, const struct network *network, struct error *err);

/* Returns 1 when everything of the sandbox's network is gone and its slot free, 0 when the kernel
 * has not yet deleted the link: call again later, never in a tight loop. Also 1 when somebody else
 * has finished it before. About 50 microseconds. */
int network_finish(struct router *router, const struct network *network, struct error *err);
