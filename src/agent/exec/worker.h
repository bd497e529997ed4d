/* The worker: the process that waits, in the sandbox's work groups, for the next command.
 *
 * PID 1 forks the first one, which moves itself into the groups; so no command costs a cgroup move,
 * and no bomb can silence PID 1. A worker that gets a launch starts the command and supervises it.
 * When the command takes longer than a moment, or another launch arrives, the worker leaves a copy
 * of itself in its place and stays the command's supervisor for good:
 *
 *     PID 1 ─┬─ supervisor ── command ...      once a worker
 *            ├─ supervisor ── command ...
 *            └─ worker                         the youngest copy
 *
 * So there is one process between PID 1 and a command, hardly ever made while somebody waits, and
 * for short commands not made at all. All copies are children of PID 1. A worker holds no state:
 * when somebody inside kills it, its socket closes and PID 1 makes another. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#define WORKER_NOTES 128

/* Memory that the agent shares with its workers: what it needs to know of one that was killed
 * before it could report. Notes and not messages, because nobody needs to wake up for them. */
struct worker_notes {
    _Atomic uint64_t received; /* serial of the last launch that was received */
    _Atomic pid_t worker;      /* who waits for the next */
    struct worker_note {
        _Atomic uint64_t serial;
        _Atomic pid_t pid;    /* of the command, before it runs; 0: none yet */
    } commands[WORKER_NOTES]; /* of the launches last received, by their serial */
};

struct worker_settings {
    int socket; /* where launches come from; blocking */
    struct worker_notes *notes;
    const int *groups; /* open cgroup.procs files to join, borrowed */
    size_t group_count;
    struct rlimit open_files; /* what commands get: the agent raised its own */
};

/* Serve launches; call in a child made by _Fork. Closes every other descriptor above 2. Exits when
 * the groups cannot be joined (nothing may run outside of them), and when the agent is gone. */
_Noreturn void worker_run(const struct worker_settings *settings);
