/* Network namespaces for sandboxes: making and ending one is a tenth of all the work for a short
 * sandbox, and most of those never send a packet.
 *
 *     network_spares_take ──► the sandbox lives and dies ──► network_spares_give
 *              ▲                                                   │
 *              └── looked at ◄── rests for a moment ◄──────────────┘
 *
 * Each has loopback, up, and belongs to nobody (sys_namespace_make_network): root of a sandbox has
 * no rights over it, so it can change no address, setting or filter. What root and others may do
 * there instead of by a capability is to listen on any port.
 *
 * Nothing of who had it may be seen in it, so one is used again only
 *
 *     - when the launcher that gave it saw the sandbox's last process end;
 *     - when nobody outside was ever given a socket in it, and it never had a link;
 *     - when everything that the kernel counts in it is what it is in a new one: packets, attempts,
 *       sockets that are left, flow labels, routes. Who tried to connect anywhere, has used it.
 *
 * It is looked at after a rest, because some of what was done there shows later: the kernel tells
 * others of groups that were joined and left some hundredths of a second after the last process
 * ended, and counts closed sockets for as long. Cached routes are dropped.
 *
 * All others end. What is the same for those who have it one after the other is its number, its
 * cookie and its age. One thread; nothing is left when the launcher ends. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* So many are kept, about 50 kB each; that is also how many can be used again in one rest: a
 * thousand a second. Those that nobody wanted for a while are let go. */
#define NETWORK_SPARES_MAX     256
#define NETWORK_SPARES_REST_MS 250
#define NETWORK_SPARES_KEEP_MS 10000

/* Twice of what this kernel has to say. Where it is more, none is used again. */
#define NETWORK_LOOK_SIZE 10000

/* Everything that is counted in a namespace, as text. */
struct network_look {
    size_t length; /* 0: unknown */
    char text[NETWORK_LOOK_SIZE];
};

struct network_spare {
    int fd;             /* owned */
    uint64_t rested_ns; /* from then on it can be looked at */
};

struct network_spares {
    int home; /* borrowed: the caller's own namespace, where it always is */
    struct network_spare spares[NETWORK_SPARES_MAX]; /* a ring, the oldest first */
    size_t first, count;
    bool has_counters, has_model;
    int counters;               /* owned: where this thread's namespace is counted */
    struct network_spare model; /* nobody's; to learn what a new one looks like */
    struct network_look fresh;
    unsigned int refused; /* in a row */
};

/* One as new, the caller's descriptor. Returns 0 or -errno. */
int network_spares_take(struct network_spares *spares, int *ret_network);

/* One whose processes are gone. True: it is kept, and so is the descriptor. False: that is still
 * the caller's. */
bool network_spares_give(struct network_spares *spares, int network);

/* Let go of those that nobody wanted for NETWORK_SPARES_KEEP_MS; for every few seconds. */
void network_spares_age(struct network_spares *spares);

/* Let go of all. */
void network_spares_clear(struct network_spares *spares);
