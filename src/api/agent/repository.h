/* A repository that ought to be in a folder of a sandbox: two steps of a walk (visit_walk.h).
 *
 *     look for it ──► a finished clone of that URL ──► left alone: is_there
 *          └────────► anything else ────────────────► cloned by the agent, which says what is wrong
 *
 * So it can be asked for again and again. Credentials in the URL go to the agent, which keeps them
 * from git's arguments and configuration, and nowhere else: `shown` has none. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/agent/agent_call.h"
#include "base/pool.h"

#define REPOSITORY_URL_MAX    ((size_t) 8192)
#define REPOSITORY_BRANCH_MAX ((size_t) 1024)
#define REPOSITORY_FOLDER_MAX ((size_t) 4096)

struct repository {
    const char *url;    /* NULL: none is wished for. All in the request's pool */
    const char *shown;  /* the URL for answers: repository_shown */
    const char *branch; /* NULL: the repository's own */
    const char *folder; /* absolute */
    int64_t depth;      /* 0: everything */
    bool is_there;      /* it was there already: from repository_take_look on */
};

/* The URL without user and password, in the pool; the same pointer when it has none. */
const char *repository_shown(const char *url, struct pool *pool);

/* Fill in the question whether it is there; false when no repository is wished for. */
bool repository_ask_look(const struct repository *repository, struct pool *pool,
                         struct agent_request *request);
int repository_take_look(struct repository *repository, const struct agent_reply *reply,
                         struct error *err);

/* Fill in the wish for a clone; false when it is not needed. */
bool repository_ask_clone(const struct repository *repository, struct pool *pool,
                          struct agent_request *request);
