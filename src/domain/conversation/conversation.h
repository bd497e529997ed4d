/* Conversations: threads with a coding agent in a sandbox. Never called sessions: those are shells.
 *
 *     conversation ──► turns, one at a time (turn.h) ──► log of what was said (turn_follow.h)
 *                                             └────────► what the agent asks (ask.h)
 *
 * All of them are in memory, and kept in the store; their turns are only in memory while they are
 * not over. A conversation belongs to its sandbox and goes with it, unless it is a task's: then it
 * stays as long as the task is kept. What goes, goes in slices behind the answer.
 *
 * Answers come exactly once, from the loop, never from inside a call. */
#pragma once

#include "base/list.h"
#include "base/table.h"
#include "domain/caller.h"
#include "domain/domain.h"
#include "domain/harness.h"
#include "domain/sandbox/sandbox.h"

#define CONVERSATION_TITLE_MAX  256
#define CONVERSATION_NAME_MAX   128                   /* of a provider, a model, an agent */
#define CONVERSATION_PLACE_MAX  ((size_t) 256 * 1024) /* of config, permission, command together */
#define CONVERSATION_MODELS_MAX ((size_t) 4096)
#define CONVERSATION_LIST_MAX   1000
#define CONVERSATION_ASK_MS     ((uint64_t) 10 * 60 * 1000) /* that a permission is waited for */
#define CONVERSATION_ASK_MS_MAX ((uint64_t) 24 * 3600 * 1000)

/* What one is begun with. Texts may be NULL. */
struct conversation_spec {
    const char *title;
    const char *provider, *model; /* of turns that say nothing; both or none */
    const char *agent;            /* which of OpenCode's agents, likewise */
    const char *kind;             /* of the agent server: "opencode" (NULL), "claude", ... */
    const char *folder, *config, *command, *permission; /* of harness_place */
    /* The agent has it already, begun by somebody else: "ses_..."; NULL: it begins one. */
    const char *agent_session;
    uint64_t ask_ms; /* how long a permission or question waits; 0: CONVERSATION_ASK_MS */
};

struct conversation {
    struct table_link by_id;
    struct list link; /* all, oldest first */

    struct id id, owner;
    struct id sandbox; /* empty: not made yet (a task's) */
    struct id task;    /* empty: none */
    char *title;       /* owned, never NULL */
    char *kind;        /* owned, never NULL */
    char *place;       /* owned, never NULL: JSON of what is in a harness_place */
    char *provider;    /* owned; these three may be NULL */
    char *model, *agent;
    char *agent_session; /* owned; NULL: it has not begun. The agent's own id */
    uint64_t ask_ms;
    int64_t created_ms, updated_ms;

    /* The domain's own: conversation_internal.h. */
    struct conversation_work *work;
};

/* NULL on failure; borrowed for the call. */
typedef void conversation_done(void *context, const struct error *failure,
                               struct conversation *conversation);

/* ERR_INVALID, ERR_FORBIDDEN, ERR_QUOTA, ERR_UNAVAILABLE: this daemon drives no agents. The agent is
 * not started before the first turn. */
void conversation_create(struct domain *domain, const struct caller *caller,
                         struct sandbox *sandbox, const struct conversation_spec *spec,
                         conversation_done *done, void *context);

/* By id; `sandbox` NULL: of any. NULL with ERR_NOT_FOUND. */
struct conversation *conversation_find(const struct domain *domain, const struct caller *caller,
                                       const struct id *sandbox, const char *id, struct error *err);

/* The one in which the agent itself says `agent_session` ("ses_..."); of several the newest. NULL:
 * none. */
struct conversation *conversation_find_session(const struct domain *domain,
                                               const struct caller *caller,
                                               const struct id *sandbox, const char *agent_session);

/* Of a sandbox, oldest first: as many as there are, at most CONVERSATION_LIST_MAX behind `after`
 * (NULL: from the start). Returns whether there are more. */
bool conversation_list(const struct domain *domain, const struct caller *caller,
                       const struct id *sandbox, const struct id *after, size_t limit,
                       void (*each)(void *context, struct conversation *conversation),
                       void *context);

/* ERR_CONFLICT while a turn of it is not over; and of a task's. */
typedef void conversation_gone(void *context, const struct error *failure);
void conversation_delete(struct domain *domain, const struct caller *caller,
                         struct conversation *conversation, conversation_gone *done, void *context);

/* Whether agents can be driven here at all: ERR_UNAVAILABLE with the reason. */
int conversation_check_harness(const struct domain *domain, struct error *err);

/* What this sandbox's agent server would be started with for a new conversation of this spec, for
 * those who start it themselves (harness.ensure). Texts are borrowed from `spec` and `models`, an empty
 * one of at least CONVERSATION_MODELS_MAX. */
struct harness_place conversation_place_of(const struct sandbox *sandbox,
                                           const struct conversation_spec *spec,
                                           struct text *models);

/* The routes of its policy by which models are reached, as harness_place.models has them; nothing
 * when there are none. */
void conversation_models(const struct sandbox *sandbox, struct text *models);
