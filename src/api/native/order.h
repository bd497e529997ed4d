/* A request whose work goes on when its client leaves: the answer is kept for its return, where it
 * sent an Idempotency-Key.
 *
 *     snapshot_make(domain, caller, sandbox, &options, made, order_new(request));
 *
 *     static void made(void *context, const struct error *failure, ...)
 *     {
 *         ... write the body, unless it failed
 *         order_end(context, failure, 201, &body);
 *     } */
#pragma once

#include "base/error.h"
#include "base/text.h"
#include "domain/caller.h"
#include "net/http/http_request.h"

struct order;

/* Uses request->data and on_gone. */
struct order *order_new(struct http_request *request);

/* Who asked; also when it left. */
const struct caller *order_caller(const struct order *order);

/* Answer, or keep the answer. The order is gone. `body` is JSON, and not looked at on failure. */
void order_end(struct order *order, const struct error *failure, int status,
               const struct text *body);
