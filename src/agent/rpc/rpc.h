/* capnweb over a WebSocket: GET /rpc. One session (rpc_session.h) per connection. */
#pragma once

#include "net/http/http_request.h"

void rpc_handle(struct http_request *request);
