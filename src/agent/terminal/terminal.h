/* GET /ws/pty: a shell at a terminal, one per session, with any number of viewers.
 *
 *     connect ──► the first one makes the terminal, where the session is and with what it exports
 *             ◄── binary: what it showed so far (up to 256 KiB, one message, if there is any)
 *             ◄── {"type":"ready"}
 *             ──► binary: keys                                 ◄── binary: output
 *             ──► {"type":"resize","cols":80,"rows":24}        ◄── {"type":"error","message":"..."}
 *             ◄── {"type":"exit","code":0}, close 1000
 *
 * Viewers come and go, the terminal stays until its shell ends or its session is deleted; who
 * connects then gets a new one. A session whose shell is busy with a command for longer than
 * TERMINAL_CONTEXT_MS is not waited for: the terminal starts with the usual environment where the
 * session is.
 *
 * Flow. The shell waits for viewers that read, at TERMINAL_PACE bytes a second or faster. One that
 * is slower uses up its patience of TERMINAL_STALL_MS (which comes back, at a twentieth of the
 * speed) and is then left behind: it skips what it missed and is told {"type":"skipped","bytes":n}.
 * Without viewers nothing waits. Keys that nobody reads stop the viewers that type, not the others;
 * after TERMINAL_INPUT_STUCK_MS without progress these are closed.
 *
 * All functions belong to the loop's thread; none blocks. */
#pragma once

#include "net/http/http_request.h"

struct agent;

#define TERMINAL_MAX            64
#define TERMINAL_CONTEXT_MS     3000
#define TERMINAL_PACE           ((uint64_t) 256 * 1024)
#define TERMINAL_STALL_MS       2000
#define TERMINAL_INPUT_MAX      ((size_t) 64 * 1024) /* keys on their way to the shell */
#define TERMINAL_INPUT_STUCK_MS 60000

void terminal_handle(struct http_request *request);

/* Terminals that nobody looks at and whose shell waits at its prompt: they run, but that is no
 * activity. (A loop of nothing but the shell's own commands looks the same; what it writes is
 * activity, as all output of a terminal is.) */
size_t terminal_idle_count(const struct agent *agent);

/* The session is gone: so is its terminal, with everything that runs there. */
void terminal_session_deleted(struct agent *agent, const char *session);
