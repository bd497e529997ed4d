/* Inside session*.c only: what a session is made of, and what its parts ask of each other. */
#pragma once

#include "agent/session/session_export.h"
#include "agent/session/session_set.h"
#include "agent/session/session_shell.h"
#include "base/pool.h"

struct session_set {
    struct list sessions; /* of session, in the order of creation */
    size_t count;
};

struct session {
    struct list link; /* in the set; in none once it was deleted */
    struct agent *agent;
    char *id;                         /* owned */
    struct session_settings settings; /* owned */

    struct session_shell *shell;     /* NULL: none, or not any more */
    struct session_command *running; /* NULL: nobody listens */
    struct list waiting;             /* of session_command */
    size_t waiting_count;
    struct list queries;   /* of session_query: they come first */
    struct list farewells; /* of session_farewell */
    struct pool *answer;   /* owned: of the shell, while it is asked */
    struct session_exports exports;
    const char *where;      /* in `answer` */
    const char **functions; /* in `answer`: asked for in the second round */
    size_t function_count;

    struct deadline deadline; /* of the running command */
    struct loop_task advance;
    uint64_t serial;
    int lost_shells; /* that ended before they could answer, in a row */
    bool ready : 1;  /* the shell can be talked to */
    bool busy : 1;   /* it is at something */
    bool asking : 1; /* which is a question of ours */
    bool dead : 1;   /* its shell has ended, and there is no other yet */
    bool deleted : 1;
};

/* session_set.c */
struct session *session_find(const struct agent *agent, const char *id);

/* Find or create. NULL with the error to answer when there are too many. */
struct session *session_obtain(struct agent *agent, const char *id, struct api_error *error);

/* Give the shell something to do at the end of this turn. */
void session_advance_soon(struct session *session);

/* session.c */
/* The shell is free: ask it what the queries want to know. */
void session_question_ask(struct session *session);

/* Its answer; NULL: it was too long. Then the shell is free, or was asked for more. */
void session_question_take(struct session *session, const struct text *sections);

/* There will be no answer. */
void session_question_forget(struct session *session);

/* Tell all queries; exactly one of the two is not NULL. */
void session_question_tell(struct session *session, const struct session_context *context,
                           struct api_error *failure);
