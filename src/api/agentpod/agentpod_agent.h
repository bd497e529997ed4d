/* The agent server of the sandbox that a request visits: started unless it is there, and waited for.
 *
 *     ready ──► `ready` is called
 *     not in time ──► 504 agent_not_ready; the sandbox stays, and so does the server that starts
 *     it cannot be ──► 502 with the last it said */
#pragma once

#include "api/agent/visit.h"

struct agentpod_start {
    const char *folder; /* NULL: the sandbox's own */
    const char *config; /* OpenCode's, JSON; NULL: what is in its folder */
    void (*ready)(struct visit *visit);
    /* There can be none (ERR_UPSTREAM, ERR_UNAVAILABLE): whoever can do without goes on. NULL: that
     * is answered, too. */
    void (*without)(struct visit *visit, const struct error *why);
};

/* From the visit's `ready` on, while nothing else is under way. Failures are answered. Uses
 * request->data. */
void agentpod_agent_start(struct visit *visit, const struct agentpod_start *start);

/* Whether it is there now, without asking it. */
bool agentpod_agent_is_ready(const struct api *api, const struct id *sandbox);

/* Whether the failure of a turn or a start means that the server was not there in time. */
void agentpod_agent_translate(const struct error *failure, struct error *ret_error);
