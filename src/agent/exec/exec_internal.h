/* Inside exec*.c only: what an exec is made of, and what its parts ask of each other. */
#pragma once

#include "agent/exec/exec.h"
#include "agent/watch.h"
#include "net/byte_queue.h"

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
    struct trace_context trace; /* of whoever started it; start and end are told as that */

    struct worker_errand errand;
    struct text message;           /* the encoded launch, until a supervisor reports */
    int given[LAUNCH_DESCRIPTORS]; /* owned: what the command gets, until a supervisor reports */

    struct exec_pipe control;
    struct exec_pipe output[EXEC_OUTPUTS];
    struct exec_pipe input;
    struct byte_queue input_bytes; /* not written yet */
    int terminal_control;          /* borrowed from `output`: negative without a terminal */
    int terminal;                  /* owned: the program's side; negative: none, or not any more */

    struct deadline deadline;
    struct deadline orphan_look;
    struct loop_task settle;
    struct exec_result result;
    enum exec_timer timer;
    uint64_t early_signals; /* bits: for the command, before it ran */
    uint64_t oom_kills;     /* in the group, before it started */
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
    bool input_streamed : 1; /* by exec_write */
    bool input_ended : 1;    /* close stdin behind input_bytes */
    bool line_open : 1;      /* terminal: the last byte of input was no newline */
    bool over : 1;           /* the owner was told, or does not care */
    bool cancelled : 1;      /* the owner does not care */
    bool kept : 1;           /* cancelled behind the owner's back: the memory stays */
    bool launch_again : 1;   /* once the control socket's handle is closed */
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

/* A copy of a descriptor, or -errno. */
int exec_duplicate(int fd);

/* Watch stdout and stdin that are one thing: both are taken when they could be. 0 or -errno. */
int exec_open_both(struct exec *exec, int *output, int *input);

/* exec_terminal.c */
/* Make a terminal of that size: our side watched as output and input, theirs in exec->given.
 * Returns 0 or -errno. */
int exec_open_terminal(struct exec *exec, const struct exec_terminal *size);

/* Append the terminal's end-of-file character to the input. */
void exec_end_line(struct exec *exec);

/* Send a signal as the terminal's keys do. Returns false when there is no terminal, or no such
 * key. */
bool exec_signal_terminal(struct exec *exec, int signal);

/* Watch `*fd`, which becomes the pipe's. Returns 0 or -errno. */
int exec_pipe_open(struct exec *exec, struct exec_pipe *pipe, int *fd,
                   void (*on_ready)(struct watch *watch), void (*on_gone)(struct watch *watch));

/* Nothing more comes through it. */
void exec_pipe_over(struct exec_pipe *pipe);

/* Read output, unless paused. */
void exec_watch_outputs(struct exec *exec);

/* Write input, if there is any to write or its end to tell. */
void exec_watch_input(struct exec *exec);
