/* A run session: one command in a sandbox, joined to our own stdin, stdout, stderr and signals.
 *
 *     stdin ──► window ──► WebSocket to the agent ──► sinks ──► stdout, stderr
 *
 * Nothing is held beyond what is under way: stdin is read as far as the agent's window allows,
 * and while stdout or stderr is stuck the agent is not read, so that the command waits.
 *
 *     run_session_new ──► on_end, once ──► run_session_close ──► on_closed, once
 *
 * All functions belong to the loop's thread; none calls back from inside. */
#pragma once

#include "cli/run/run_message.h"
#include "net/http/http_client.h"
#include "net/loop.h"

struct run_session;

struct run_session_events {
    /* The command has ended, or could not be run, and all its output is written. */
    void (*on_end)(void *context, const struct run_outcome *outcome);
    void (*on_closed)(void *context);
    void *context;
};

struct run_session_options {
    struct loop *loop; /* borrowed */
    const char
        *address; /* of the agent: "unix:/..."; borrowed for the call. Or, through a daemon: */
    struct http_origin *origin; /* borrowed until it is closed; NULL: the agent itself, as above */
    const char *target;         /* with an origin: its path */
    const struct http_header *headers; /* with an origin: Host first; borrowed for the call */
    size_t header_count;
    const struct run_message_request *request; /* borrowed for the call */
    int input, output, errors;                 /* borrowed: 0, 1 and 2 */
    int terminal;                              /* borrowed: whose size is told; negative: none */
    struct run_session_events events;
};

/* Start it. NULL with ERR_INVALID (address), ERR_TOO_LARGE (the command), or ERR_INTERNAL. */
struct run_session *run_session_new(const struct run_session_options *options, struct error *err);

/* A signal came to us: the command gets it. SIGWINCH tells the terminal's new size instead. */
void run_session_signal(struct run_session *session, int number);

/* Leave: a command that still runs is killed with all that descends from it. */
void run_session_close(struct run_session *session);
