/* Inside exec*.c only: what an exec is made of, and what its parts ask of each other. */
#pragma once

#include "agent/exec.h"
#include "agent/watch.h"

/* What the deadline is for. */
enum exec_timer { TIMER_TIMEOUT, TIMER_GRACE, TIMER_KILL };

struct exec_pipe {
    struct watch watch;
    struct exec *exec;
    bool done; /* nothing more will come, or is to be written */
};

/* Facts are noted where they are met; `settle` alone decides what follows from them. */
struct exec {
    struct list link;
    struct exec_set *set;
    const struct exec_events *events;
    void *owner;

    struct worker_errand errand;
    struct text message;           /* the encoded launch, until a supervisor reports */
    int given[LAUNCH_DESCRIPTORS]; /* owned: what the command gets, until a supervisor reports */

    struct exec_pipe control;
    struct exec_pipe output[EXEC_OUTPUTS];
    struct exec_pipe input;
    char *input_bytes; /* owned */
    size_t input_length, input_sent;

    struct deadline deadline;
    struct deadline orphan_look;
    struct loop_task settle;
    struct exec_result result;
    enum exec_timer timer;
    uint64_t grace_end; /* loop_now() at which even lively output is given up; 0: no grace yet */
    pid_t pid;
    unsigned int attempts;
    unsigned int looks;
    int handles;            /* open or closing: pipes and deadlines */
    bool outcome_known : 1; /* exit status, failure, or known to be unknowable */
    bool orphaned : 1;      /* the supervisor is dead, the outcome not known */
    bool kill_wanted : 1;   /* the tree must be gone before the end is told */
    bool wait_over : 1;     /* grace, or the wait for killed processes, has passed */
    bool paused : 1;
    bool over : 1;         /* the owner was told, or does not care */
    bool launch_again : 1; /* once the control socket's handle is closed */
    bool destroyed : 1;
};

/* exec.c */
/* Decide what follows from the facts, at the end of this turn. */
void exec_settle_soon(struct exec *exec);
void exec_handle_gone(struct exec *exec);

/* exec_stdio.c */
/* Make stdin, stdout and stderr: our ends watched (but not yet for anything), theirs in
 * exec->given. Returns 0 or -errno; then what was made is cleaned up with the exec. */
int exec_open_stdio(struct exec *exec, const struct exec_options *options);

/* Watch `*fd`, which becomes the pipe's. Returns 0 or -errno. */
int exec_pipe_open(struct exec *exec, struct exec_pipe *pipe, int *fd,
                   void (*on_ready)(struct watch *watch), void (*on_gone)(struct watch *watch));

/* Nothing more comes through it. */
void exec_pipe_over(struct exec_pipe *pipe);

/* Read output, unless paused; write input. */
void exec_watch_outputs(struct exec *exec);
