/* Inside session_shell*.c only: what a shell is made of, and what its parts ask of each other. */
#pragma once

#include "agent/session/session_shell.h"
#include "agent/watch.h"
#include "net/loop.h"

#define SESSION_SHELL_READ_SIZE ((size_t) 64 * 1024)
/* Reads per event: fair to others, as in exec_stdio.c. */
#define SESSION_SHELL_READS 4

/* Pipes between us and the shell: what it gets is closed here once it has it. */
enum line { LINE_INPUT, LINE_STDOUT, LINE_STDERR, LINE_CHANNEL, LINES };

struct shell_line {
    struct watch watch;
    struct session_shell *shell;
};

/* Facts are noted where they are met; `settle` alone decides what follows from them. */
struct session_shell {
    struct agent *agent;
    const struct session_shell_events *events;
    void *owner;
    struct exec *exec;        /* NULL once it has ended */
    const char **environment; /* owned, until it has started */
    char *directory;          /* owned, until it has started */
    size_t candidate;
    int theirs[LINES]; /* owned, until it has started */
    struct shell_line lines[LINES];
    struct deadline doubt; /* whether a script that runs will ever report */
    uint64_t doubt_ms;
    int handles; /* lines and the deadline, open or closing */

    struct text script;      /* what is not written yet, from `sent` on */
    size_t sent;             /* of the script */
    uint64_t written;        /* to the pipe, since the start */
    uint64_t written_before; /* when the last script began */
    uint64_t serial;
    struct text answer;    /* what came through the channel since the script began */
    unsigned int sections; /* still to come before the report */
    int status;
    size_t left[EXEC_OUTPUTS]; /* to be read before the report or the end is told */
    struct exec_result result;
    struct loop_task settle;
    pid_t pid;
    bool busy : 1;     /* a script runs */
    bool reported : 1; /* it is done, its output perhaps not read */
    bool spoiled : 1;  /* the answer was too long */
    bool paused : 1;
    bool ended : 1;
    bool untouched : 1;
    bool killed : 1;
    bool over : 1; /* the owner was told */
};

/* --- session_shell.c ----------------------------------------------------------------------------
 */

/* Decide what follows from the facts, at the end of this turn. */
void session_shell_settle_soon(struct session_shell *shell);

/* --- session_shell_output.c ---------------------------------------------------------------------
 */

/* What it writes is there. */
void session_shell_output_ready(struct watch *watch);

/* Read output from now on, or stop: what is wanted has changed. */
void session_shell_watch_outputs(struct session_shell *shell);

/* Note how much has been written so far: so much belongs before the report or the end. */
void session_shell_count_output(struct session_shell *shell);

/* Most output is short: then what was counted is all there already, and no further turn is needed.
 * Reads it. */
void session_shell_read_left(struct session_shell *shell);

bool session_shell_has_output_left(const struct session_shell *shell);

/* --- session_shell_report.c ---------------------------------------------------------------------
 */

/* Read what came through the channel: sections, and the report behind them. */
void session_shell_read_channel(struct session_shell *shell);
void session_shell_channel_ready(struct watch *watch);

/* --- session_shell_input.c ----------------------------------------------------------------------
 */

/* Give the shell as much of the script as it takes. */
void session_shell_write(struct session_shell *shell);
void session_shell_input_ready(struct watch *watch);

/* Bytes it was given and has not read, or -errno. */
int session_shell_unread_input(const struct session_shell *shell);

/* Look whether it still is at its script; one that is not is killed. */
void session_shell_doubt_due(struct deadline *deadline);
