/* A code process: one interpreter that runs code for one context, and our ends of its channel and
 * its output.
 *
 *     code_process_start ──► on_ready ──► on_output, on_frame ... ──► on_end
 *
 * What was written before a frame was sent is told before the frame is. All functions belong to the
 * loop's thread; nothing is called back from inside code_process_start. */
#pragma once

#include "agent/code/code_frame.h"
#include "agent/code/code_launch.h"
#include "agent/code/code_server.h"

struct code_process;

struct code_process_events {
    void (*on_ready)(struct code_process *process, void *owner);
    /* Borrowed for the call. Nothing comes while paused. */
    void (*on_output)(struct code_process *process, void *owner, enum exec_output which,
                      const char *bytes, size_t length);
    /* A result, an error or an end. Borrowed for the call. */
    void (*on_frame)(struct code_process *process, void *owner, const struct code_frame *frame);
    /* The last call: it has ended, or never began, and is gone for the owner. `error`: -errno of
     * what kept it from starting; 0 when that is not known, or it was ready before. */
    void (*on_end)(struct code_process *process, void *owner, int error);
};

/* NULL with `*ret_error` (-errno) when that cannot even be tried. `server` is for Python, `events`
 * is static. */
struct code_process *code_process_start(struct agent *agent, struct code_server *server,
                                        enum code_interpreter interpreter,
                                        const struct code_place *place,
                                        const struct code_process_events *events, void *owner,
                                        int *ret_error);

/* Give it a line to read; a newline is added. */
void code_process_send(struct code_process *process, const char *line, size_t length);

/* Read no more output and frames, and again. */
void code_process_pause(struct code_process *process);
void code_process_resume(struct code_process *process);

/* SIGINT to its process group, as from a terminal. */
void code_process_interrupt(struct code_process *process);

/* Whether it is an exec of its own now, and no child of the server's. */
bool code_process_has_exec(const struct code_process *process);

/* Kill it and what descends from it. No event comes after this. */
void code_process_kill(struct code_process *process);
