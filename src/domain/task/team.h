/* Teams: several tasks that belong together.
 *
 * Members are tasks. With `shared` "fork" and a repository it is checked out once, in a sandbox that
 * is gone afterwards, and each member's sandbox is a fork of that one. At most `parallel` members
 * work at a time. The state is done (all are), failed (none is done), partial, or cancelled. */
#pragma once

#include "domain/task/task.h"

#define TEAM_MEMBERS_MAX  16
#define TEAM_PARALLEL     4
#define TEAM_PARALLEL_MAX TEAM_MEMBERS_MAX
#define TEAM_ROLE_MAX     64

#define TEAM_STATES(X)                                                                             \
    X(RUNNING, "running")                                                                          \
    X(DONE, "done")                                                                                \
    X(PARTIAL, "partial")                                                                          \
    X(FAILED, "failed")                                                                            \
    X(CANCELLED, "cancelled")

enum team_state {
#define X(name, text) TEAM_##name,
    TEAM_STATES(X)
#undef X
        TEAM_STATE_COUNT
};

const char *team_state_text(enum team_state state);
/* TEAM_STATE_COUNT: none has that name. */
enum team_state team_state_from_text(const char *text);
bool team_state_is_over(enum team_state state);

/* What a team of so many members in these states is: pure. */
enum team_state team_state_of(const enum task_state *members, size_t count, bool is_cancelled);

struct team {
    struct id id, owner;
    enum team_state state;
    unsigned int parallel;
    bool is_shared;    /* members are forks of one checkout */
    bool cancels;      /* the others, when one fails */
    const char *title; /* never NULL */
    int64_t created_ms, ended_ms;
    struct harness_usage usage; /* of all members */
    const struct task *members; /* in the order they were given */
    size_t member_count;
};

typedef void team_done(void *context, const struct error *failure, const struct team *team);

/* `object`: {"members":[{"role", "text", ...}], "git", "parallel", "onFailure", "shared", "title"} and
 * what members have in common: members of a task. ERR_INVALID names the field. */
void team_create(struct domain *domain, const struct caller *caller,
                 const struct json_place *object, team_done *done, void *context);
void team_read(struct domain *domain, const struct caller *caller, const char *id, team_done *done,
               void *context);

typedef void team_list_done(void *context, const struct error *failure, const struct team *teams,
                            size_t count, const char *next);
/* Without their members. */
void team_list(struct domain *domain, const struct caller *caller, const char *after, size_t limit,
               team_list_done *done, void *context);

/* All members that are not over; answered when the team is. */
void team_cancel(struct domain *domain, const struct caller *caller, const char *id,
                 team_done *done, void *context);

/* Told once when it is over; as turn_wait_begin. */
struct team_wait;
struct team_wait *team_wait_begin(struct domain *domain, const struct caller *caller,
                                  const char *id, team_done *done, void *context);
void team_wait_end(struct team_wait *wait);
