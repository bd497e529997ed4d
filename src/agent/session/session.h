/* Sessions, as the other services of the agent see them.
 *
 * A session is a shell that goes on from command to command. Some services start where it is and
 * with what it exports: background processes, terminals, git. They ask for its context. */
#pragma once

#include <limits.h>

#include "agent/api_error.h"
#include "agent/operation.h"
#include "base/list.h"
#include "net/loop.h"

struct agent;

struct session_context {
    const char *directory;
    const char *const *environment; /* "NAME=text", NULL at the end; exported functions too */
};

/* A question on its way. The owner keeps it alive until on_context or session_forget. */
struct session_query {
    /* Exactly one of `context` (borrowed for the call) and `failure` is not NULL. */
    void (*on_context)(struct session_query *query, const struct session_context *context,
                       struct api_error *failure);
    struct list link; /* from here on: the session's own */
    struct agent *agent;
    struct loop_task task;
};

/* Ask where a session is and what it exports; unknown sessions are created. The answer comes when
 * its shell is free: a command that runs in it is waited for. For CALL_NO_SESSION it is what
 * commands without a session get. Never answers from inside. */
void session_ask(struct agent *agent, const char *id, struct session_query *query);

/* No answer, please. Safe at any time after session_ask. */
void session_forget(struct session_query *query);

/* Where a session is now, for relative paths: at once, without creating one. For unknown sessions
 * where a new one would be. */
void session_directory(const struct agent *agent, const char *id, char ret_path[static PATH_MAX]);

/* Sessions, as clients and the control plane see them: /api/session/..., utils.createSession and
 * its like, and /burrow/sessions, which takes what sessions are made of from one agent to the next.
 *
 * create answers once the session's shell runs, delete once nothing of it is left. */

extern const struct operation_table session_operations;
