/* A transparent reverse proxy: one request goes to an origin, its response comes back.
 *
 * Streams both bodies with back-pressure; passes every header in order but those that belong to one
 * hop (RFC 9110 7.6.1 and what Connection names); turns a 101 into a tunnel; says who asked in
 * X-Forwarded-For, -Proto and -Host, in place of whatever the client claimed there. */
#pragma once

#include <stdbool.h>

#include "net/http_client.h"
#include "net/http_request.h"

struct http_proxy_options {
    const char *target;  /* path and query to ask for; NULL: the client's own */
    const char *host;    /* Host to ask for; NULL: the client's own */
    bool keep_forwarded; /* the client is a proxy we trust: add to its X-Forwarded-For */
    /* Whether a header of the request, or of the response, is passed on; NULL: all. */
    bool (*pass_request_header)(const struct http_header *header);
    bool (*pass_reply_header)(const struct http_header *header);
};

/* Take over `request`: it is answered by the origin, or with 502, 503 or 504 in its dialect. The
 * origin must outlive the exchange; closing it answers 499. `options` is borrowed for the call. */
void http_proxy(struct http_request *request, struct http_origin *origin,
                const struct http_proxy_options *options);
