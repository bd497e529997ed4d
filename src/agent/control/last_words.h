/* What the agent would say if it died now: GET /burrow/last-words, for whoever wonders why.
 *
 *     {"success":true,"entrypoint":{"state":"ended","status":1,"reason":null},"log":["..."],...}
 *
 * The entrypoint's state is "none", "running" or "ended"; the log's lines are the latest ones,
 * oldest first, without those about requests. The ends of the worker are among them. The answer has
 * at most LAST_WORDS_MAX bytes. */
#pragma once

#include "agent/operation.h"

struct agent;

#define LAST_WORDS_MAX ((size_t) 16 * 1024)

extern const struct operation_table last_words_operations;

/* Start to listen to the agent's log. */
void last_words_begin(struct agent *agent);

/* The entrypoint ended. `reason` (may be NULL) is copied. */
void last_words_entrypoint(struct agent *agent, int status, const char *reason);
