/* Quiet for a moment: no new work, none under way, so that the control plane can freeze or copy the
 * sandbox between two commands instead of inside one.
 *
 *     POST /burrow/quiesce {timeoutMs?, holdMs?}  ->  {"quiet":true,"running":0}
 *     POST /burrow/resume                         ->  {"success":true}
 *
 * Work is what operations with `starts_work` do, from the call to its answer. What goes on by
 * itself (background processes, terminals, shells that wait for their next command) is no work in
 * this sense: freezing does not hurt it. When the work under way does not end within `timeoutMs`,
 * the answer is {"quiet":false,"running":n} and new work is accepted again. A quiet agent accepts
 * it again after `holdMs` at the latest: nobody may be left to tell it to.
 *
 * All functions belong to the loop's thread; none blocks. */
#pragma once

#include <stdbool.h>

#include "agent/call.h"
#include "agent/operation.h"
#include "net/http/http_request.h"

#define QUIESCE_TIMEOUT_DEFAULT 5000
#define QUIESCE_TIMEOUT_MAX     60000
#define QUIESCE_HOLD_DEFAULT    30000
#define QUIESCE_HOLD_MAX        600000

extern const struct operation_table quiesce_operations;

/* For transports, before operation->run: whether this call must not run now. Then it was answered
 * with 503 CONTAINER_UNAVAILABLE and is gone. */
bool quiesce_refuses(struct call *call);

/* The same for plain routes that start something. */
bool quiesce_refuses_request(struct http_request *request);

/* For call.c: the call ends, in whatever way. */
void quiesce_call_ends(struct call *call);
