/* Connections into sandboxes for previews: one http_origin per exposed port in use, and a few
 * sockets in stock per sandbox, so that a proxied request makes no round trip to the launcher.
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
struct preview_wish {
    struct list link;
    struct preview_origin *origin; /* from `ready` without a failure on: the wish holds it */
    void (*ready)(struct preview_wish *wish, const struct error *failure);
    void (*cut)(struct preview_wish *wish); /* the port was closed: end tunnels; may be NULL */
    bool is_granted;
};

/* `ready` is called once, perhaps from inside. Afterwards, and to give up waiting,
 * preview_wish_end. */
void preview_wish_begin(struct preview_origins *origins, struct sandbox *sandbox, uint16_t number,
                        struct preview_wish *wish,
                        void (*ready)(struct preview_wish *wish, const struct error *failure));
void preview_wish_end(struct preview_wish *wish);

/* A second wish that holds what the first, a granted one, holds: for a tunnel that outlives its
 * request.
 */
void preview_wish_join(struct preview_wish *wish, struct preview_wish *granted);

/* Where to send the request, good for this turn and as long as the exchange lasts. */
struct http_origin *preview_wish_origin(struct preview_wish *wish);

/* Cut everything to that port. */
void preview_origins_forget(struct preview_origins *origins, const struct id *sandbox,
                            uint16_t number);

void preview_origins_close(struct preview_origins *origins, void (*done)(void *context),
                           void *context);
