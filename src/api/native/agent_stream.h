/* The log of a conversation, as server-sent events or over a WebSocket, from any point: of all of
 * it, of one turn, of a task. Each event is one item (domain/conversation/turn_follow.h); its type is
 * the item's kind, its id the item's sequence, where it has one. */
#pragma once

#include "domain/conversation/conversation.h"
#include "net/http/http_request.h"

/* Answers the request. `turn` and `task` NULL: all; `after` -1: what the request says (Last-Event-ID,
 * ?after=), else from the start. Uses request->data and on_gone. */
void agent_stream_begin(struct http_request *request, struct conversation *conversation,
                        const struct id *turn, const struct id *task);
