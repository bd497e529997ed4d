/* A tunnel: two streams joined, bytes copied both ways with back-pressure.
 *
 * What an upgrade through the proxy becomes. Each side's end is passed on once everything before it
 * was; when both have ended, or one fails, both are closed. Frames of WebSockets go through unread;
 * only where each ends is known, so that the client can be told why it is sent away. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/http/http_server.h"
#include "net/stream.h"

struct tunnel;

/* Somebody who wants to know when a tunnel ends, or to end it. */
struct tunnel_watch {
    struct tunnel *tunnel; /* from tunnel_start on */
    /* Bytes that came from each side so far, what was pending included. */
    uint64_t from_client, from_upstream;
    /* Once, when the tunnel is gone; `watch` is not used any more. */
    void (*ended)(struct tunnel_watch *watch);
};

struct tunnel_options {
    struct http_server
        *server;  /* the tunnel is its guest, and is cut when it drains; may be NULL */
    void *caller; /* taken: of http_guest_caller; may be NULL */
    struct tunnel_watch *watch; /* borrowed until its `ended`; may be NULL */
    bool is_websocket;          /* what goes through are frames */
};

/* Join two heap streams, which become the tunnel's. The pending bytes came from each side already
 * and are sent to the other first. Frees itself. */
void tunnel_start(struct stream *client, const char *client_pending, size_t client_length,
                  struct stream *upstream, const char *upstream_pending, size_t upstream_length,
                  const struct tunnel_options *options);

/* Cut both sides; `ended` follows later, unless nobody watches any more. */
void tunnel_cut(struct tunnel *tunnel);

/* Nobody is to be told any more. */
void tunnel_forget(struct tunnel *tunnel);

/* The same, and the client of a WebSocket is told why (1008), if no frame to it is half sent. */
void tunnel_expel(struct tunnel *tunnel, const char *reason);
