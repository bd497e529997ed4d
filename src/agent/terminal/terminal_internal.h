/* Inside terminal*.c only: what a terminal and its viewers are, and what they ask of each other. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/exec/exec.h"
#include "agent/session/session.h"
#include "agent/terminal/terminal.h"
#include "agent/terminal/terminal_ring.h"
#include "base/list.h"
#include "base/text.h"
#include "net/loop.h"
#include "net/websocket/websocket_http.h"

struct terminal_set {
    struct list terminals;
    size_t count;
};

struct terminal {
    struct list link;
    struct agent *agent;       /* borrowed */
    char *session;             /* owned */
    char *shell;               /* owned; NULL: the usual one */
    struct exec_terminal size; /* at the start */
    struct session_query query;
    struct exec *exec; /* NULL: not launched yet, or over */
    struct terminal_ring ring;
    struct list viewers;
    struct deadline tick;
    uint64_t asked_at;       /* loop_now() of session_ask */
    uint64_t input_taken_at; /* loop_now() when the shell last took input, or got the first */
    size_t input_waiting;    /* bytes the shell has not taken */
    bool asking;             /* session_ask is under way */
    bool started;            /* the shell runs */
    bool ending;             /* nobody new joins */
    bool output_paused;
};

/* Freed when its WebSocket is released. */
struct terminal_viewer {
    struct list link;
    struct terminal *terminal; /* NULL: it is over, or was left */
    struct websocket *ws;
    struct text control;  /* a text message as far as it came */
    uint64_t position;    /* in the ring: what was sent */
    uint64_t sent_then;   /* bytes that had left at the last tick */
    uint64_t relieved_at; /* loop_now() when `stalled_ms` was last reduced */
    uint64_t stalled_ms;  /* how long it held the terminal up, less what is forgiven */
    bool ready;           /* it was greeted */
    bool slow;            /* not waited for */
    bool input_paused;
};

/* --- terminal.c ------------------------------------------------------------------------------- */

/* Output may have to stop or go on: viewers moved. */
void terminal_check_output(struct terminal *terminal);

/* Keys of a viewer. */
void terminal_type(struct terminal *terminal, struct terminal_viewer *viewer, const char *bytes,
                   size_t length);

/* A viewer has left. */
void terminal_left(struct terminal *terminal);

/* --- terminal_viewer.c ------------------------------------------------------------------------ */

/* Answer the upgrade. NULL: the request was answered otherwise. */
struct terminal_viewer *terminal_viewer_new(struct http_request *request);

void terminal_viewer_join(struct terminal_viewer *viewer, struct terminal *terminal);

/* The shell runs: what it showed so far, and "ready". */
void terminal_viewer_greet(struct terminal_viewer *viewer);

/* Send what it has not seen, as far as it reads. */
void terminal_viewer_pump(struct terminal_viewer *viewer);

/* Whether the terminal must wait for it. */
bool terminal_viewer_lags(const struct terminal_viewer *viewer);

/* `elapsed_ms` have passed: see who is slow. */
void terminal_viewer_tick(struct terminal_viewer *viewer, uint64_t elapsed_ms);

/* The last words, `message` (a JSON object), behind all output; and close. */
void terminal_viewer_end(struct terminal_viewer *viewer, const struct text *message,
                         unsigned int code, const char *reason);
