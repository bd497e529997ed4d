/* The last lines of the agent's log and the state of the entrypoint: GET /burrow/last-words, which the
 * daemon asks when a sandbox ended and nobody knows why.
 *
 *     {"success":true,"entrypoint":{"state":"ended","status":1,"reason":null},"log":["..."],...}
 *
 * The entrypoint's state is "none", "running" or "ended"; the log's lines are the latest ones,
 * oldest first, without those about requests. The ends of the worker are among them. The answer has
 * at most DIAGNOSTICS_MAX bytes. */
#pragma once

#include "agent/operation.h"

struct agent;

#define DIAGNOSTICS_MAX ((size_t) 16 * 1024)

extern const struct operation_table diagnostics_operations;

/* Start to listen to the agent's log. */
void diagnostics_begin(struct agent *agent);

/* The entrypoint ended. `reason` (may be NULL) is copied. */
void diagnostics_entrypoint(struct agent *agent, int status, const char *reason);
