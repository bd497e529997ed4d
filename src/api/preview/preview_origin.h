/* Connections into sandboxes for previews: one http_origin per exposed port in use, and a few
 * sockets at hand per sandbox, so that a proxied request makes no round trip to the launcher.
 *
 * The sockets are made inside the sandbox's network namespace and die with that run of it: what was
 * made for an earlier run is thrown away. At most PREVIEW_ORIGINS_MAX; the least recently used goes
 * first. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/list.h"
#include "domain/domain.h"
#include "domain/sandbox/sandbox.h"
#include "net/http/http_client.h"
#include "net/loop.h"

#define PREVIEW_ORIGINS_MAX     1024
#define PREVIEW_CONNECTIONS_MAX 512 /* to one port */
#define PREVIEW_WAITING_MAX     256 /* requests that wait for sockets, per port */

struct preview_origins;
struct preview_origin;

struct preview_origins *preview_origins_new(struct loop *loop, struct domain *domain);

/* A request that wants to reach a port; in its pool. */
struct preview_lease {
    struct list link;
    struct preview_origin *origin; /* from `ready` without a failure on: the lease holds it */
    void (*ready)(struct preview_lease *lease, const struct error *failure);
    void (*cut)(struct preview_lease *lease); /* the port was closed: end tunnels; may be NULL */
    bool is_granted;
};

/* `ready` is called once, perhaps from inside. Afterwards, and to give up waiting,
 * preview_lease_end. */
void preview_lease_begin(struct preview_origins *origins, struct sandbox *sandbox, uint16_t number,
                         struct preview_lease *lease,
                         void (*ready)(struct preview_lease *lease, const struct error *failure));
void preview_lease_end(struct preview_lease *lease);

/* A second lease that holds what the first, a granted one, holds: for a tunnel that outlives its
 * request.
 */
void preview_lease_join(struct preview_lease *lease, struct preview_lease *granted);

/* Where to send the request, good for this turn and as long as the exchange lasts. */
struct http_origin *preview_lease_origin(struct preview_lease *lease);

/* Cut everything to that port. */
void preview_origins_forget(struct preview_origins *origins, const struct id *sandbox,
                            uint16_t number);

void preview_origins_close(struct preview_origins *origins, void (*done)(void *context),
                           void *context);
