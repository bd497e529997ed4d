/* Network namespaces for sandboxes: making and ending one is a tenth of all the work for a short
 * sandbox, and most of those never send a packet.
 *
 *     network_spares_take ──► the sandbox lives and dies ──► network_spares_give
 *              ▲                                                   │ as new
 *              └──────────────────── kept ◄────────────────────────┘
 *
 * Each has loopback, up, and belongs to nobody (sys_namespace_make_network): root of a sandbox has
 * no rights over it, so it can change no address, setting or filter. What root and others may do
 * there instead of by a capability is to listen on any port.
 *
 * Nothing of who had it may be seen in it, so one is kept only
 *
 *     - when the launcher that gave it saw the sandbox's last process end;
 *     - when nobody outside was ever given a socket in it, and it never had a link;
 *     - when everything that the kernel counts in it is what it was when it was new: packets,
 *       attempts, sockets that are left, flow labels. Who tried to connect anywhere, has used it.
 *
 * All others end. What is the same for those who have it one after the other is its number.
 * One thread; nothing is left when the launcher ends. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* So many are kept. */
#define NETWORK_SPARES_MAX 16

/* Twice of what this kernel has to say. Where it is more, none is kept. */
#define NETWORK_LOOK_SIZE 10000

/* Everything that is counted in a namespace, as text. */
struct network_look {
    size_t length; /* 0: unknown */
    char text[NETWORK_LOOK_SIZE];
};

struct network_spares {
    int home;                    /* borrowed: the caller's own namespace, where it always is */
    int fds[NETWORK_SPARES_MAX]; /* owned */
    size_t count;
    struct network_look fresh; /* of a new one */
};

/* One as new, the caller's descriptor. Returns 0 or -errno. */
int network_spares_take(struct network_spares *spares, int *ret_network);

/* One whose processes are gone. True: it is kept, and so is the descriptor. False: that is still
 * the caller's. */
bool network_spares_give(struct network_spares *spares, int network);

/* Let go of all. */
void network_spares_clear(struct network_spares *spares);
