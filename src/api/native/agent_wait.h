/* A request that waits until a turn, a task or a team is over: 200 with it then, or 202 with how far
 * it is after AGENT_WAIT_MS. A client that leaves cancels nothing. */
#pragma once

#include "net/http/http_request.h"

#define AGENT_WAIT_MS ((uint64_t) 10 * 60 * 1000)

enum agent_wait_kind { AGENT_WAIT_TURN, AGENT_WAIT_TASK, AGENT_WAIT_TEAM };

/* Uses request->data and on_gone. */
void agent_wait_begin(struct http_request *request, enum agent_wait_kind kind, const char *id);

/* "wait" of a body: false, true, or "stream" where that is allowed. */
enum agent_wait_wish { AGENT_WAIT_NOT, AGENT_WAIT_YES, AGENT_WAIT_STREAM };
struct json_place;
struct error;
int agent_wait_read(const struct json_place *body, enum agent_wait_wish *ret_wish,
                    struct error *err);
