/* The reaper: signals of PID 1, and the children nobody else waits for.
 *
 * Every process of a sandbox whose parent dies becomes a child of PID 1; its zombie would hold one
 * of the sandbox's pids. The reaper takes them all, a bounded number per turn of the loop.
 *
 * A sandboxed program may send signals to PID 1, too. They are told apart by their sender: as PID
 * 1 only signals from outside of the pid namespace count. */
#pragma once

#include <stdbool.h>

#include "net/loop.h"
#include "sys/process/sys_process.h"

struct reaper;

struct reaper_events {
    /* A child has ended; it is reaped already. */
    void (*on_child)(void *owner, pid_t pid, const struct sys_exit *exit);
    /* A signal for the agent, from somebody who may send one. */
    void (*on_signal)(void *owner, int signal);
};

/* Block the signals and start to watch; also become the reaper of orphans when not PID 1. NULL
 * with `*ret_error` (-errno). `events` is borrowed: static. */
struct reaper *reaper_new(struct loop *loop, const struct reaper_events *events, void *owner,
                          int *ret_error);

/* Stop watching and free; signals stay blocked. */
void reaper_close(struct reaper *reaper);
