/* A request whose body is one JSON object, or nothing, which counts as {}.
 *
 *     static int read_create(struct http_request *request, const struct json_place *body,
 *                            struct error *err) { ... }
 *
 *     json_body_take(request, read_create);
 *
 * Bounded by the route's own body_limit. Uses request->data and on_gone until `read` is called. */
#pragma once

#include "base/error.h"
#include "json/json_read.h"
#include "net/http/http_request.h"

/* `body` is borrowed for the call: what is to last is copied into the request's pool. Goes on with
 * the request (answers it, or begins a visit) and returns 0, or returns -1 with the error that is
 * to be answered. */
typedef int json_body_read(struct http_request *request, const struct json_place *body,
                           struct error *err);

void json_body_take(struct http_request *request, json_body_read *read);

/* The same with bytes that are there already. */
void json_body_read_bytes(struct http_request *request, const char *bytes, size_t length,
                          json_body_read *read);

/* The same for dialects that have one answer to all that is no JSON, nothing included. */
void json_body_read_or_say(struct http_request *request, const char *bytes, size_t length,
                           json_body_read *read, const char *complaint);
