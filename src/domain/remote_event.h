/* What a worker elsewhere tells about sandboxes: kept in our own event log as "remote.<event>".
 *
 * A worker's word changes no status: what runs here is known better here. Its event is written to
 * the stream of the sandbox it is about (found by our id, or by name among those of the owner it
 * names by id or email), where the owner sees it; what fits no sandbox goes to the system's stream,
 * which administrators see. Signs of work (is_activity) count as use of the sandbox. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "domain/domain.h"

#define REMOTE_EVENT_SYSTEM "system" /* the stream of what belongs to no sandbox */

struct remote_event {
    const char *name;    /* "sandbox.woken" */
    const char *sandbox; /* as the worker calls it; NULL: none */
    const char *owner;   /* id or email; NULL: none */
    const char *data;    /* JSON object of at most STORE_EVENT_DATA_MAX bytes */
    const char *request; /* id of the request that brought it; NULL: none */
    bool is_activity;
};

typedef void remote_event_done(void *context, const struct error *failure);

/* Keep it; `done` when it is committed, later, exactly once. */
void remote_event_keep(struct domain *domain, const struct remote_event *event,
                       remote_event_done *done, void *context);
