/* Workflows: nodes that are done one after the other, as far as they depend on each other, and once each.
 *
 *     queued ──► running ◄──► paused (by wish, or an approval is waited for)
 *                   └────────────► complete, errored, terminated
 *
 * An execution is a row: what is drawn, what set it off, and what every node gave. It survives restarts:
 * what was done is not done again, and a task that a node asked for is found by its key. A node whose
 * way was not taken is skipped; one that fails ends the execution, unless a connection of the type
 * "error", or an error-handler, follows it.
 *
 * Executions that are not over are in memory. Answers come exactly once, from the loop, never from
 * inside a call; what they are given is borrowed for the call. */
#pragma once

#include <jansson.h>

#include "domain/caller.h"
#include "domain/domain.h"

#define WORKFLOW_SPEC_MAX  ((size_t) 256 * 1024) /* what is drawn, and what set it off */
#define WORKFLOW_STEPS_MAX ((size_t) 512 * 1024) /* what all nodes gave */
#define WORKFLOW_NAME_MAX  128
#define WORKFLOW_KEPT_MS   ((int64_t) 30 * 24 * 3600 * 1000) /* after its end */

#define WORKFLOW_STATES(X)                                                                         \
    X(QUEUED, "queued")                                                                            \
    X(RUNNING, "running")                                                                          \
    X(PAUSED, "paused")                                                                            \
    X(COMPLETE, "complete")                                                                        \
    X(ERRORED, "errored")                                                                          \
    X(TERMINATED, "terminated")

enum workflow_state {
#define X(name, text) WORKFLOW_##name,
    WORKFLOW_STATES(X)
#undef X
        WORKFLOW_STATE_COUNT
};

const char *workflow_state_text(enum workflow_state state);
bool workflow_state_is_over(enum workflow_state state);

/* Append a sentence to `errors` for everything that is wrong with it. */
void workflow_check(json_t *workflow, json_t *errors);

struct workflow_spec {
    const char *name;         /* of the execution, unique per owner */
    const char *workflow_id;  /* may be NULL */
    const char *trigger_type; /* "manual", "webhook", ... */
    json_t *workflow;         /* as drawn; borrowed, as the next */
    json_t *trigger;          /* data; may be NULL */
};

struct workflow_shown {
    struct id id;
    const char *name;
    enum workflow_state state;
    json_t *steps;     /* by node: {"success", "data"} or {"success", "error"} */
    const char *error; /* NULL: none */
};

typedef void workflow_done(void *context, const struct error *failure,
                           const struct workflow_shown *shown);

/* Answered when it is kept. ERR_INVALID: it cannot run, the message says the first reason;
 * ERR_CONFLICT: there is one of that name; ERR_FORBIDDEN, ERR_QUOTA, ERR_TOO_LARGE. */
void workflow_start(struct domain *domain, const struct caller *caller,
                    const struct workflow_spec *spec, workflow_done *done, void *context);

/* By the name of the execution, among the caller's own; or by id. ERR_NOT_FOUND. */
void workflow_read(struct domain *domain, const struct caller *caller, const char *name,
                   workflow_done *done, void *context);

enum workflow_wish {
    WORKFLOW_PAUSE,     /* nothing more is begun; what is under way ends */
    WORKFLOW_RESUME,    /* and what waits for an approval is approved */
    WORKFLOW_TERMINATE, /* tasks under way are cancelled */
};

/* ERR_NOT_FOUND; ERR_CONFLICT: it is over. */
void workflow_change(struct domain *domain, const struct caller *caller, const char *name,
                     enum workflow_wish wish, workflow_done *done, void *context);
