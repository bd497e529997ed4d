/* A repository that ought to be in a folder of a sandbox: the first two steps of a walk (visit_walk.h).
 *
 *     look for it ──► a finished clone of that URL ──► left alone: is_there
 *          └────────► anything else ────────────────► cloned by the agent, which says what is wrong
 *
 * So it can be asked for again and again. Credentials in the URL go to the agent, which keeps them
 * from git's arguments and configuration, and nowhere else: `shown` has none. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/agent/visit_walk.h"
#include "base/pool.h"
#include "json/json_read.h"

#define REPOSITORY_URL_MAX    ((size_t) 8192)
#define REPOSITORY_BRANCH_MAX ((size_t) 1024)
#define REPOSITORY_FOLDER_MAX ((size_t) 4096)

struct repository {
    const char *url;    /* NULL: none is asked for. All in the request's pool */
    const char *shown;  /* the URL for answers: repository_shown */
    const char *branch; /* NULL: the repository's own */
    const char *folder; /* absolute */
    int64_t depth;      /* 0: everything */
    bool is_there;      /* it was there already: from repository_take_look on */
};

/* The URL without user and password, in the pool; the same pointer when it has none. */
const char *repository_shown(const char *url, struct pool *pool);

/* How the fields of a request are called that speak of it. `depth` may be NULL. */
struct repository_fields {
    const char *url, *branch, *folder, *depth;
};

/* All may be left out; then `url` and `folder` are NULL. 0, or -1 with ERR_INVALID. */
int repository_read(struct repository *repository, const struct json_place *body,
                    const struct repository_fields *fields, struct pool *pool, struct error *err);

/* A walk that has a repository, and the steps that come first in its table. */
struct repository_walk {
    struct visit_walk walk;
    struct repository repository;
};

bool repository_ask_look(struct visit_walk *walk, struct agent_request *request);
int repository_take_look(struct visit_walk *walk, const struct agent_reply *reply,
                         struct error *err);
bool repository_ask_clone(struct visit_walk *walk, struct agent_request *request);

#define REPOSITORY_STEPS                                                                           \
    {"look for the repository", .ask = repository_ask_look, .take = repository_take_look},         \
    {                                                                                              \
        "clone the repository", .ask = repository_ask_clone                                        \
    }
