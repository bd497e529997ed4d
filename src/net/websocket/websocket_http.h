/* WebSockets over our HTTP server and client: the handshake done, the connection owned.
 *
 * Both functions give a `struct websocket` that owns its stream and frees itself after on_released
 * (which need not be set). websocket_http_data gives back the caller's pointer in any event. */
#pragma once

#include "base/error.h"
#include "net/http/http_client.h"
#include "net/http/http_request.h"
#include "net/websocket/websocket.h"
#include "net/websocket/websocket_handshake.h"

/* Answer an upgrade request: 101, and the request is over. Returns the
 * open WebSocket, or NULL with `err` filled (nothing was sent; the request goes on, answer it with
 * http_reply_error). A draining server closes it with 1001. */
struct websocket *websocket_accept(struct http_request *request,
                                   const struct websocket_options *options,
                                   const struct websocket_events *events, void *data,
                                   struct error *err);

#define WEBSOCKET_REFUSAL_MAX ((size_t) 16 * 1024)

struct websocket_dial {
    const char *target;
    const char *host;
    const struct http_header *headers; /* further ones, borrowed for the call */
    size_t header_count;
    struct websocket_options options; /* role is set here */
    const struct websocket_events *events;
    void *data;
    /* Optional: the peer answered something else, with this body (at most WEBSOCKET_REFUSAL_MAX
     * bytes of it, borrowed, NUL-terminated); on_failure follows at once. */
    void (*on_refused)(int status, const char *body, size_t length, void *data);
    /* Exactly one of these is called, later. */
    void (*on_open)(struct websocket *ws, void *data);
    void (*on_failure)(const struct error *error, void *data);
};

/* Connect to a WebSocket of an origin. `dial` is copied. */
void websocket_connect(struct http_origin *origin, const struct websocket_dial *dial);

void *websocket_http_data(const struct websocket *ws);
