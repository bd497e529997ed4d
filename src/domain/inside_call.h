/* Asking a sandbox's agent, with bounded patience: an agent that does not answer holds up nothing.
 *
 * The answer comes once: the agent's, or ERR_UPSTREAM_TIMEOUT from the first tick after the
 * patience is over, or ERR_UNAVAILABLE when the domain closes. What the agent says later is
 * dropped. When there is nobody to ask, `done` is called from inside, with ERR_NOT_IMPLEMENTED, or
 * ERR_UNAVAILABLE while the domain opens or closes. */
#pragma once

#include "domain/domain_internal.h"

/* How long a sandbox may keep its sleep, stop or wake waiting; and its beginning: there shells are
 * started, and the agent itself is new. */
#define INSIDE_PATIENCE_MS       2000
#define INSIDE_BEGIN_PATIENCE_MS 10000

enum inside_question {
    INSIDE_ACTIVITY,
    INSIDE_QUIESCE,
    INSIDE_RESUME,
    INSIDE_SAVE,
    INSIDE_RESTORE,
    INSIDE_ENVIRONMENT,
    INSIDE_START_PROCESS,
    INSIDE_WAY_OUT,
};

struct inside_answer {
    struct inside_activity activity; /* of INSIDE_ACTIVITY */
    const char *text;                /* of INSIDE_SAVE, borrowed for the call; else NULL */
};

typedef void inside_call_done(void *context, const struct error *failure,
                              const struct inside_answer *answer);

/* `text` for INSIDE_RESTORE, INSIDE_ENVIRONMENT, INSIDE_WAY_OUT and INSIDE_START_PROCESS (the
 * command); borrowed for the call. */
void inside_ask(struct domain *domain, const struct id *sandbox, enum inside_question question,
                const char *text, inside_call_done *done, void *context);

/* Connections to it are of no use any more. */
void inside_forget(struct domain *domain, const struct id *sandbox);

void inside_tick(struct domain *domain);

/* Answer all of them: the domain closes. */
void inside_abandon(struct domain *domain);
