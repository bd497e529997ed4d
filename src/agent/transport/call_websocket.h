/* Calls that come by WebSocket: GET /ws and /api/ws, many requests and answers over one connection.
 *
 * Messages are those of call_websocket_message.h. A request means what the same one means by plain
 * HTTP: routes, arguments, sessions (call_http.h), errors and their statuses. Events come as
 * `stream` messages, each with the JSON of one event as its data, and a response without a body
 * behind them. Raw bytes come as `stream` messages with the event "bytes", base64 in their data,
 * and a response whose body is the JSON head. An answer that breaks off is an error STREAM_ERROR.
 *
 * {"type":"cancel","id"} ends a call without an answer; closing the connection ends all of them.
 *
 * Memory. While the client does not read, streams wait (call_is_full), finished answers are kept,
 * and what the client still sends is not read once it would have to be answered at once. Answers
 * kept or being collected have CALL_WEBSOCKET_HELD_MAX bytes in all; one that does not fit any more
 * becomes an error. */
#pragma once

#include "net/http/http_request.h"

/* The longest message of a client. */
#define CALL_WEBSOCKET_MESSAGE_SIZE_MAX ((size_t) 48 * 1024 * 1024)
/* Calls under way on one connection; more are refused with a 503 to be tried again. */
#define CALL_WEBSOCKET_CALLS_MAX 256
/* JSON answers that are being collected, of one connection: beyond this only one of them goes on.
 */
#define CALL_WEBSOCKET_SHARED_MAX ((size_t) 64 * 1024 * 1024)
#define CALL_WEBSOCKET_HELD_MAX   ((size_t) 128 * 1024 * 1024)

void call_websocket_handle(struct http_request *request);
