/* What the files of domain/task share. */
#pragma once

#include "base/text.h"
#include "domain/conversation/conversation_internal.h"
#include "domain/domain_internal.h"
#include "domain/sequence.h"
#include "domain/task/task.h"

struct tasks {
    struct table live; /* of live_task.by_id */
    struct list all;   /* of live_task.link, oldest first */
    struct task_counters counters;
    bool is_recovered;
    uint64_t sweep_ns; /* when old ones are looked for next */
    bool is_sweeping;
};

/* One that is not over. */
struct live_task {
    struct table_link by_id;
    struct list link;
    struct domain *domain;
    struct task task; /* its texts are owned here */
    struct task_spec spec;
    unsigned int place; /* among the members of its team */
    struct caller caller;
    struct conversation *conversation; /* a reference */
    struct sequence sequence;
    struct sandbox_use use;
    bool is_using;
    bool is_kept;                             /* its row is there */
    bool is_held;                             /* its team has not let it go yet */
    bool is_going;                            /* its sequence runs */
    bool is_recovered;                        /* from before a restart: steps may have been done */
    bool is_cancelled;                        /* it shall end; then */
    const char *cancel_code, *cancel_message; /* static */
    bool is_ended;                            /* its end is being kept */
    uint64_t end_ns; /* keeping its end is tried again then; 0: not waiting */
    enum task_state end;
    struct task_call *call; /* to its sandbox's agent */
    struct turn_wait *turn_wait;
    size_t file;       /* the next to be written */
    struct id base;    /* the sandbox that its own is a fork of; empty: none */
    struct text lines; /* of the diff */
    size_t line_count;
    json_t *totals; /* owned */
    bool is_cut, has_compared;
    char *patch;       /* owned */
    struct list waits; /* of struct task_wait */
    struct share_claim claim;
    unsigned int references;
};

/* One of a team, or of a schedule. */
struct task_order {
    struct id team, schedule;
    unsigned int place;
    const char *role;
    bool is_held; /* until task_release */
};

/* Into the transaction of somebody else, or its own; NULL: refused. In memory at once. */
struct live_task *task_prepare(struct domain *domain, const struct caller *caller,
                               const struct task_spec *spec, const struct task_order *order,
                               struct store_transaction *rows, struct error *err);
void task_prepared(struct live_task *live);
void task_dropped(struct live_task *live);
/* A team lets it go; `base` may be NULL. */
void task_release(struct live_task *live, const struct id *base);

struct live_task *task_live(const struct domain *domain, const char *id);
void live_task_ref(struct live_task *live);
void live_task_unref(struct live_task *live);

void task_put_row(struct store_transaction *rows, const struct live_task *live, bool is_new);
/* Borrows from the row; `pool` gets what is in JSON there. */
void task_from_row(const struct store_value *row, struct pool *pool, struct task *ret_task);
struct live_task *task_load_row(struct domain *domain, const struct store_value *row);
void task_own(struct task *task);
void task_disown(struct task *task);
/* The row's state of one whose turn waits. */
enum task_state task_state_now(const struct live_task *live);

void task_add_event(struct live_task *live, struct store_transaction *rows, const char *type);
void task_say(struct live_task *live, const char *step);

/* Begin, or go on after a restart. */
void task_go(struct live_task *live);
void task_stop(struct live_task *live, const char *code, const char *message);
void task_tick_one(struct live_task *live);
void task_end_keep(struct live_task *live);
void tasks_run_closing(struct domain *domain);
/* The members of teams: told when one of theirs is over (team.c). */
void team_member_over(struct domain *domain, const struct task *task);

/* --- its sandbox's agent (task_call.c) --------------------------------------------------------- */

typedef void task_called(struct live_task *live, const struct error *failure, const char *text);
void task_call_begin(struct live_task *live, enum inside_operation operation, const char *json,
                     uint64_t timeout_ms, task_called *done);
/* Its answer is of no interest any more. */
void task_call_leave(struct live_task *live);

/* --- steps (task_steps.c) ---------------------------------------------------------------------- */

extern const struct sequence_table task_sequence, task_base_sequence;
/* Of a team's checkout: its context is a live task that nobody else knows (team.c). */
void team_base_ready(void *context, const struct error *failure);
struct live_task *live_task_new(struct domain *domain, const struct caller *caller);
int task_copy_spec(const struct task_spec *spec, struct task_spec *ret_spec, struct error *err);
struct caller task_caller_of(const struct id *owner);
/* task_create for a schedule. */
void task_create_scheduled(struct domain *domain, const struct caller *caller,
                           const struct task_spec *spec, const struct id *schedule,
                           task_created *done, void *context);
void task_step_done(struct live_task *live, const struct error *failure);
void task_finish(void *context, const struct error *failure);
/* The name of the folder that a repository is checked out into. */
const char *task_folder(const struct task_spec *spec, struct text *out);
/* Without user and password. */
void task_git_shown(const char *url, struct text *out);

/* --- what becomes of its sandbox (task_cleanup.c) --------------------------------------------- */

/* As its policy says, unless somebody else's sandbox was used. */
void task_clean_up(struct domain *domain, const struct task *task);
/* Of those that ended just before the daemon did: nobody else would. */
void tasks_recovered(struct domain *domain);
