/* What the files of domain/workflow share. */
#pragma once

#include "domain/domain_internal.h"
#include "domain/retention.h"
#include "domain/task/task.h"
#include "domain/workflow/workflow.h"
#include "share/share.h"

struct workflows {
    struct list all; /* of workflow_run.link: those that are not over */
    struct retention old;
    bool is_recovered;
};

/* An execution in memory. */
struct workflow_run {
    struct list link;
    struct domain *domain;
    struct id id, owner;
    char *name, *workflow_id, *error; /* owned; error may be NULL */
    enum workflow_state state;
    json_t *graph, *trigger; /* owned */
    json_t *steps;           /* owned: results by node */
    json_t *marks;           /* owned: of nodes under way: {"attempt"}, {"wakeAt"}, {"approval"} */
    json_t *news;            /* owned: nodes done since the last commit */
    const char *event;       /* static: what else is to be told; NULL: nothing */
    int64_t created_ms, updated_ms, ended_ms;
    struct list asks; /* of workflow_ask: tasks under way */
    struct share_claim claim;
    bool is_kept; /* its row is there */
    bool is_keeping;
    bool is_dirty; /* it changed since */
    bool is_advancing;
    uint64_t retry_ns; /* monotonic: keeping failed, and is tried again then; 0: not waiting */
    bool is_gone;      /* its owner is: freed as soon as nothing is under way */
};

struct workflow_run *workflow_run_find(const struct domain *domain, const struct caller *caller,
                                       const char *name);
struct workflow_run *workflow_run_new(struct domain *domain);
void workflow_run_free(struct workflow_run *run);

/* workflow_row.c */
void workflow_put(struct store_transaction *rows, const struct workflow_run *run);
/* The row of one; 0, or -1 with ERR_INTERNAL. */
int workflow_from_row(struct workflow_run *run, const struct store_value *row, struct error *err);
/* How much JSON it is; for limits. */
size_t workflow_json_size(json_t *value);

/* workflow_run.c: do what can be done, and keep it. */
void workflow_advance(struct workflow_run *run);
/* A node that has a mark: its task is asked for, whether there is one or not. */
void workflow_ask_again(struct workflow_run *run, const char *id);
void workflow_record(struct workflow_run *run, const char *node, json_t *data, const char *error);
void workflow_finish(struct workflow_run *run, enum workflow_state state, const char *error);
void workflow_keep(struct workflow_run *run);

/* workflow_ask.c: a node that an agent does. */
void workflow_ask_begin(struct workflow_run *run, json_t *node, json_t *parameters);
void workflow_asks_cancel(struct workflow_run *run);
void workflow_asks_leave(struct workflow_run *run);
