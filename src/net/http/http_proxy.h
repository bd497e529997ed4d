/* A transparent reverse proxy: one request goes to an origin, its response comes back.
 *
 * Streams both bodies with back-pressure; passes every header in order but those that belong to one
 * hop (RFC 9110 7.6.1 and what Connection names) and, of replies, orders to a web server in front of
 * us (X-Accel-Redirect, X-Sendfile and their like); turns a 101 into a tunnel; says who asked in
 * X-Forwarded-For, -Proto and -Host, in place of whatever the client claimed there. Who that is may
 * be told by the caller, who knows whether a proxy in front of us is believed. */
#pragma once

#include <stdbool.h>

#include "net/http/http_client.h"
#include "net/http/http_request.h"
#include "net/tunnel.h"

struct http_proxy_options {
    const char *target; /* path and query to ask for; NULL: the client's own */
    const char *host;   /* Host to ask for; NULL: the client's own */
    const char *client; /* address of whoever asked; NULL: the peer, as it is connected */
    bool is_secure;     /* with `client`: whether it came over TLS */
    /* Whether a header of the request, or of the response, is passed on; NULL: all. */
    bool (*pass_request_header)(const struct http_header *header);
    bool (*pass_reply_header)(const struct http_header *header);
    /* What is passed on instead of a header: another one, from the request's pool, or NULL for
     * none. Asked after the two above; NULL: as it is. */
    const struct http_header *(*edit_request_header)(struct http_request *request,
                                                     const struct http_header *header);
    const struct http_header *(*edit_reply_header)(struct http_request *request,
                                                   const struct http_header *header);
    /* For upgrades: an answer that is no 101 is not passed on; `refusal` says what is told instead.
     * NULL: it is passed on. */
    void (*refusal)(int status, struct error *ret_error);
    const struct http_header *extra; /* further headers of the request, borrowed for the call */
    size_t extra_count;
    /* A 101 is about to become a tunnel, after which the request is gone: who is to know when that
     * ends (its `ended` also comes when the tunnel could not be made). NULL: nobody. */
    struct tunnel_watch *(*watch_tunnel)(struct http_request *request);
};

/* Take over `request`: it is answered by the origin, or with 502, 503 or 504 in its dialect. Uses
 * request->data, on_gone and on_drain; on_ended and ended_data stay the caller's. The origin must
 * outlive the exchange; closing it answers 499. `options` is borrowed for the call. */
void http_proxy(struct http_request *request, struct http_origin *origin,
                const struct http_proxy_options *options);

/* Whether a header concerns one hop only, framing included, and is never passed on by any proxy.
 * `connection` is the joined value of Connection, or NULL. */
bool http_proxy_is_for_one_hop(const struct http_header *header, const char *connection);
