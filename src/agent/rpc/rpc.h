/* capnweb over a WebSocket: GET /rpc. One session (rpc_session.h) per connection. */
#pragma once

#include "agent/operation.h"
#include "net/http/http_request.h"

void rpc_handle(struct http_request *request);

/* tunnels.*: addresses on the internet for ports of the sandbox. They are the control plane's; the
 * agent has no way out of its own, says so, and lists none. */

extern const struct operation_table rpc_tunnels_operations;
