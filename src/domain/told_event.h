/* What a dialect has to tell in the log of a sandbox in the words of its clients, so that their
 * webhooks hear it: "session.message", "workflow.execution.completed".
 *
 * Nobody waits for it: a failure is logged by the store, and what it tells of has happened all the
 * same. */
#pragma once

#include "domain/caller.h"
#include "domain/domain.h"

/* `sandbox` NULL: of no sandbox, in the stream of all. `data` is a small JSON object, borrowed; when
 * it is larger than an event may be, nothing is told. */
void told_event_add(struct domain *domain, const struct caller *caller, const struct id *owner,
                    const struct id *sandbox, const char *type, const char *data);
