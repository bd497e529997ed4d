/* A supervisor: one small process per command, parent and reaper of all that descends from it.
 *
 * It starts the command in a session of its own and reports over the control socket. As a
 * subreaper it also becomes the parent of whatever the command leaves behind, daemons that called
 * setsid included; so it can kill the whole tree on order, and it lives until the last of them is
 * gone. When the agent disappears the tree is killed.
 *
 * Where supervisors come from: agent/exec/worker.h. The process must be a subreaper, have no
 * children, block SIGCHLD and ignore SIGPIPE. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "agent/exec/launch.h"

#define SUPERVISOR_OUTPUTS 2

struct supervisor {
    int control;                         /* owned; negative once the agent is gone */
    int signals;                         /* borrowed: a signalfd for SIGCHLD */
    int left_output[SUPERVISOR_OUTPUTS]; /* owned: pipes that nobody else reads any more */
    pid_t command;                       /* 0 once it was reaped */
    bool killing;
    int round_ms; /* until the next round of killing */
};

/* Start the command of an encoded launch as our child and report that, or why not. Takes `fds`
 * over, also on failure. Returns 0 or -errno. The pid is noted in `note` before the command runs:
 * it may kill us before we can report anything. */
int supervisor_start(struct supervisor *supervisor, int signals, const char *bytes, size_t length,
                     int fds[LAUNCH_DESCRIPTORS], _Atomic pid_t *note);

/* Wait for the end for at most `timeout_ms`, or until `other` is readable or the agent gives an
 * order. Returns whether nothing is left of the command: then the process is as it was before. */
bool supervisor_wait(struct supervisor *supervisor, int other, int timeout_ms);

/* Watch over the tree until nothing is left of it, and exit. */
_Noreturn void supervisor_run(struct supervisor *supervisor);

/* Close what is owned. */
void supervisor_done(struct supervisor *supervisor);
