/* Calls that come by plain HTTP: POST with a JSON object as body, or GET and DELETE without one.
 *
 * Replies are JSON, events are server-sent events (`data: {...}`), bytes are the body. A client
 * that leaves is gone. The session is the body's sessionId, else that of `Authorization: Bearer`
 * (unless that is the agent's token), `X-Session-Id`, `?session` or `?sessionId`, else the default
 * one. */
#pragma once

#include "agent/operation.h"
#include "net/http/http_request.h"

/* Answer the request with this operation. */
void call_http_handle(struct http_request *request, const struct operation *operation);

/* The arguments that the route's {names} and the query give, as a new object. */
json_t *call_http_arguments(const struct http_match *match, struct url_span query);
