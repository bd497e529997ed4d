/* Passing an agent's answer on as it is: JSON, events, bytes, as they come and with back-pressure.
 * Only good ones: an error of the agent's is answered as ours, in the dialect of the route.
 *
 * Of its head the agent has the status and, from a short list, the type of the content; nothing
 * else it says reaches the client. */
#pragma once

#include "api/agent/agent_call.h"

/* Ask, and answer the visit's request. Uses visit->data. */
void agent_pass(struct visit *visit, const struct agent_request *request);

/* The same for a file: of any type, with the headers of ranges and versions; browsers are told to
 * treat it as a foreign page without scripts. */
void agent_pass_file(struct visit *visit, const struct agent_request *request);

/* The same for an upload: the request's own body is sent along. */
void agent_pass_upload(struct visit *visit, const struct agent_request *request);
