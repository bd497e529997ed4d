/* Tasks: one prompt with a sandbox of its own, whose result is kept.
 *
 *     queued ──► preparing ──► running ──► done, failed, cancelled
 *                sandbox, files, checkout,    the answer, what it cost, what changed in the
 *                snapshot                     workspace; then the sandbox is kept, put to sleep
 *                                             or destroyed (cleanup)
 *
 * Its conversation is there from the start, and has its log: what is prepared is told there, too.
 * Preparing is done again from its start after a restart: each step finds what the last try has
 * done. The turn is begun under a key of its own, so it is prompted once.
 *
 * The snapshot from before makes it possible to undo a task: its sandbox's disk becomes what it was.
 *
 * Tasks that are not over are in memory; all are rows. Answers come exactly once, from the loop,
 * never from inside a call; what they are given is borrowed for the call. */
#pragma once

#include "domain/conversation/turn.h"
#include "domain/vault.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define TASK_FILES_MAX   64
#define TASK_SPEC_MAX    ((size_t) 512 * 1024)
#define TASK_LIST_MAX    1000
#define TASK_KEY_MAX     TURN_KEY_MAX
#define TASK_ASK_MS      ((uint64_t) 2 * 60 * 1000) /* that its permissions wait */
#define TASK_CHANGES_MAX ((size_t) 256 * 1024)      /* of the list that is kept */
#define TASK_KEPT_MS     ((int64_t) 30 * 24 * 3600 * 1000)

#define TASK_STATES(X)                                                                             \
    X(QUEUED, "queued")                                                                            \
    X(PREPARING, "preparing")                                                                      \
    X(RUNNING, "running")                                                                          \
    X(WAITING, "waiting") /* its turn waits for an answer */                                       \
    X(DONE, "done")                                                                                \
    X(FAILED, "failed")                                                                            \
    X(CANCELLED, "cancelled")

enum task_state {
#define X(name, text) TASK_##name,
    TASK_STATES(X)
#undef X
        TASK_STATE_COUNT
};

const char *task_state_text(enum task_state state);
enum task_state task_state_from_text(const char *text);
bool task_state_is_over(enum task_state state);

enum task_cleanup { TASK_KEEP, TASK_SLEEP, TASK_DESTROY };
const char *task_cleanup_text(enum task_cleanup cleanup);

/* What is wished for: JSON of the API and of rows. Texts are borrowed, of `document` when it was read
 * (then the spec may be used as long as it is not done), and may be NULL. */
struct task_spec {
    const char *text;                                         /* the prompt; or */
    const char *parts;                                        /* a JSON array of parts */
    const char *provider, *model;                             /* both or none */
    const char *agent, *kind, *config, *command, *permission; /* of conversation_spec */
    const char *backend; /* "local"; "docker", "cloudflare", "burrow" are other names of it */
    const char *title;
    const char *sandbox;          /* works in this one, which then is not cleaned up; id or name */
    const char *sandbox_name;     /* of the one that is made; NULL: "task-" and the id */
    const char *image, *template; /* it is made of */
    const char *git_url, *git_branch;
    int64_t git_depth; /* 0: all of it */
    const char
        *folder;    /* where it works; of a checkout the folder of that; NULL: /workspace/NAME */
    json_t *files;  /* array of {"path", "content" | "base64"}, or NULL */
    json_t *env;    /* object, or NULL */
    json_t *egress; /* what its sandbox may reach: a sandbox's member "egress"; or NULL */
    uint64_t timeout_ms, ask_ms; /* 0: no end; TASK_ASK_MS */
    enum task_cleanup cleanup;
    const char *key; /* idempotency: of one owner and key there is one task */

    json_t *document; /* owned, may be NULL */
    char *texts[3];   /* owned, may be NULL: parts, config, permission, where they were values */
};

#define TASK_SPEC_INIT                                                                             \
    {                                                                                              \
        .cleanup = TASK_SLEEP                                                                      \
    }

void task_spec_done(struct task_spec *spec);
AUTO_DEFINE(task_spec, struct task_spec, task_spec_done);

/* Read one: the members of an object of the API. `more` names members that others read, NULL behind
 * the last; may be NULL. 0, or -1 with ERR_INVALID that names the field. */
int task_spec_read(const struct json_place *object, const char *const *more,
                   struct task_spec *ret_spec, struct error *err);
/* As it is read again. -1: it is larger than TASK_SPEC_MAX, or not UTF-8. */
int task_spec_write(const struct task_spec *spec, struct text *out, struct error *err);

struct task {
    struct id id, owner, conversation;
    struct id sandbox;  /* empty: not made yet */
    struct id turn;     /* empty: not begun */
    struct id team;     /* empty: none */
    struct id schedule; /* empty: none */
    struct id snapshot; /* from before; empty: there is none */
    enum task_state state;
    enum task_cleanup cleanup;
    bool owns_sandbox;                      /* it was made for this task */
    const char *role;                       /* in its team; may be NULL */
    const char *title;                      /* never NULL */
    const char *text;                       /* the prompt as people read it */
    const char *git_url;                    /* without credentials; may be NULL */
    const char *key;                        /* may be NULL */
    const char *answer;                     /* "" while there is none */
    const char *provider, *model;           /* may be NULL */
    const char *error_code, *error_message; /* "": none */
    /* JSON {"changes":[{"added"|"changed"|"removed":PATH}...],"totals","truncated","patch"}; NULL: not
     * known. `patch` is git's, of what was checked out. */
    const char *changes;
    struct harness_usage usage;
    int64_t created_ms, started_ms, ended_ms; /* 0: not yet */
    int64_t deadline_ms;                      /* 0: none */
};

typedef void task_created(void *context, const struct error *failure, const struct task *task,
                          bool is_new);
typedef void task_done(void *context, const struct error *failure, const struct task *task);

/* Answered when it is kept. ERR_INVALID, ERR_FORBIDDEN (needs a key that may make sandboxes, or, with
 * `sandbox`, enter it), ERR_NOT_FOUND, ERR_QUOTA, ERR_UNAVAILABLE. */
void task_create(struct domain *domain, const struct caller *caller, const struct task_spec *spec,
                 task_created *done, void *context);

/* By id, or by its key with `by_key`. ERR_NOT_FOUND. */
void task_read(struct domain *domain, const struct caller *caller, const char *id, bool by_key,
               task_done *done, void *context);

struct task_filter {
    const struct id *owner; /* administrators may ask for one; NULL: all that are seen */
    const struct id *team, *schedule;
    const char *after; /* cursor of the last page; NULL: from the newest */
    size_t limit;
};
typedef void task_list_done(void *context, const struct error *failure, const struct task *tasks,
                            size_t count, const char *next);
void task_list(struct domain *domain, const struct caller *caller, const struct task_filter *filter,
               task_list_done *done, void *context);

/* In every state; what is over stays. Answered when it is over. */
void task_cancel(struct domain *domain, const struct caller *caller, const char *id,
                 task_done *done, void *context);

/* Only of one that is over (ERR_CONFLICT); its log goes with it, its sandbox stays. */
void task_delete(struct domain *domain, const struct caller *caller, const char *id,
                 task_done *done, void *context);

/* Roll its sandbox's disk back to before it. ERR_CONFLICT: it is not over, its sandbox or snapshot is
 * gone. */
void task_undo(struct domain *domain, const struct caller *caller, const char *id, task_done *done,
               void *context);

/* Told once when it is over; as turn_wait_begin. */
struct task_wait;
struct task_wait *task_wait_begin(struct domain *domain, const struct caller *caller,
                                  const char *id, task_done *done, void *context);
void task_wait_end(struct task_wait *wait);

struct task_counters {
    size_t live;
    uint64_t done, failed, cancelled;
};
void task_count(const struct domain *domain, struct task_counters *ret_counters);
