/* A tunnel: two streams joined, bytes copied both ways with back-pressure.
 *
 * What an upgrade through the proxy becomes. Each side's end is passed on once everything before it
 * was; when both have ended, or one fails, both are closed. */
#pragma once

#include <stddef.h>

#include "net/http/http_server.h"
#include "net/stream.h"

struct tunnel;

/* Somebody who wants to know when a tunnel ends, or to end it. */
struct tunnel_watch {
    struct tunnel *tunnel; /* from tunnel_start on */
    /* Once, when the tunnel is gone; `watch` is not used any more. */
    void (*ended)(struct tunnel_watch *watch);
};

/* Join two heap streams, which become the tunnel's. The pending bytes came from each side already
 * and are sent to the other first. The tunnel is a guest of `server` (may be NULL): a draining
 * server cuts it. `watch` may be NULL and is borrowed until its `ended`. Frees itself. */
void tunnel_start(struct stream *client, const char *client_pending, size_t client_length,
                  struct stream *upstream, const char *upstream_pending, size_t upstream_length,
                  struct http_server *server, struct tunnel_watch *watch);

/* Cut both sides; `ended` follows later. */
void tunnel_cut(struct tunnel *tunnel);
