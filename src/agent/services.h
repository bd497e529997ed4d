/* The tables of the agent: Cloudflare's container API as operations (operation.h), and plain routes
 * for what is no operation, /burrow/... for the control plane among them. */
#pragma once

#include "agent/operation.h"
#include "net/http/http_route.h"

struct agent;

/* Fill in the mount; `agent` becomes the handlers' context. */
void services_mount(struct http_mount *ret_mount, struct agent *agent);

/* The operation behind a method and a raw path, for requests that come by a WebSocket. NULL with
 * `err`: no such route, or one that is no operation. */
const struct operation *services_match(const struct agent *agent, const char *method,
                                       struct url_span path, struct pool *pool,
                                       struct http_match *ret_match, struct error *err);

/* The operation that RPC calls so ("files.readFile"), or NULL. */
const struct operation *services_find_rpc(const char *name);
