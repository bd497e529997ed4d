/* A request that waits for an answer which cannot be called back: of the domain or the store. The
 * client may leave meanwhile, and then the answer must find nobody.
 *
 *     sandbox_stop(domain, caller, sandbox, on_stopped, pending_new(request));
 *
 *     static void on_stopped(void *context, const struct error *failure, struct sandbox *sandbox)
 *     {
 *         struct http_request *request = pending_take(context);
 *
 *         if (!request)
 *             return;                      the client is gone
 *         ...
 *     }
 *
 * Uses request->data and request->on_gone. */
#pragma once

#include "net/http/http_request.h"

struct pending;

/* One per request at a time. */
struct pending *pending_new(struct http_request *request);

/* The request, or NULL when its client is gone. `pending` is gone either way. */
struct http_request *pending_take(struct pending *pending);

/* The same, and a failure is answered: NULL then, too. */
struct http_request *pending_take_good(struct pending *pending, const struct error *failure);

/* For what has nothing to show: 204, or the failure. */
void pending_end(struct pending *pending, const struct error *failure);
