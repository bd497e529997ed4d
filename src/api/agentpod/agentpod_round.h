/* A round: one message to the agent of a sandbox, from the prompt to the mirrored workspace.
 *
 *     session? ──► the conversation of it ──► turn ──► its end ──► event session.message, sync ──► answer
 *        └─ none: a new one, or, for the pair "Initialize session" / "Task <id>", one without a turn
 *
 * A client that leaves gets no answer; a turn that was begun goes on, and what comes after it is done
 * all the same. */
#pragma once

#include "api/agent/visit.h"
#include "domain/conversation/turn.h"

enum agentpod_round_kind {
    AGENTPOD_ROUND_MESSAGE,  /* answered in the worker's shape, when the workspace is mirrored */
    AGENTPOD_ROUND_OPENCODE, /* in OpenCode's own, when the turn is over */
};

/* What is asked for; copied. Texts may be NULL. */
struct agentpod_round_spec {
    enum agentpod_round_kind kind;
    const char *session; /* "ses_..."; NULL: a new one */
    const char *title;   /* of a new one */
    const char *config;  /* OpenCode's, for a new one */
    bool is_bare;        /* only make the session */
    struct turn_spec turn;
};

/* The agent server is ready. Answers the request. */
void agentpod_round_begin(struct visit *visit, const struct agentpod_round_spec *spec);
