/* GET /burrow/run, upgraded to WebSocket: one interactive command over one connection.
 *
 *     client ──► {"argv":["bash"],"terminal":{"columns":80,"rows":24}}
 *            ◄── {"type":"started","pid":7}
 *            ──► binary: 0, then stdin              ◄── binary: 1, then stdout; 2, then stderr
 *            ──► {"type":"resize"|"signal"|...}     ◄── {"type":"window","bytes":65536}
 *            ◄── {"type":"exit","code":0}, after which the client closes
 *
 * docs/agent-protocol.md has every message. Memory is bounded both ways: the command waits while
 * the client does not read, and the client may have RUN_WINDOW bytes of input under way that the
 * command has not taken, so that orders and the client's end are never stuck behind input. A client
 * that leaves takes the command and everything that descends from it along. */
#pragma once

#include "net/http/http_request.h"

/* Input that a client may send before it is told that some was taken. */
#define RUN_WINDOW ((size_t) 256 * 1024)
/* The longest message: the request, with room for the escapes in the kernel's 2 MB of arguments. */
#define RUN_MESSAGE_MAX ((size_t) 4 * 1024 * 1024)

enum run_channel { RUN_CHANNEL_STDIN, RUN_CHANNEL_STDOUT, RUN_CHANNEL_STDERR };

void run_handle(struct http_request *request);
