/* A burrow-launcher of our own: `burrow-launcher once`, for one program and as long as it lives.
 *
 *     struct launcher_process launcher = LAUNCHER_PROCESS_INIT;
 *
 *     if (launcher_process_start(&options, &launcher, &err) < 0) ...
 *     local.conversation = TAKE_FD(launcher.conversation);
 *     local.agents = launcher.agents;
 *     ... provider_open fails: launcher_process_explain says what the launcher has to do with it
 *     ... provider_close
 *     launcher_process_end(&launcher, timeout, &err);
 *
 * When the conversation ends, the launcher kills and deletes every sandbox it made, and exits. So
 * nothing is left also when this program dies. It runs in a session of its own: a Ctrl-C is for us,
 * and the launcher has to outlive us by its cleaning. What it has to say it says on our stderr.
 *
 * Needs root, as the launcher does; it says so itself. */
#pragma once

#include <limits.h>
#include <sys/types.h>

#include "base/auto.h"
#include "base/error.h"

struct launcher_process_bind {
    const char *name;   /* as in provider_bind.source */
    const char *folder; /* of the host */
};

#define LAUNCHER_PROCESS_BINDS_MAX 16

struct launcher_process_options {
    const char *program; /* NULL: burrow-launcher beside this program, else in PATH */
    const char *data;    /* these NULL: the launcher's defaults */
    const char *run;
    const char *cgroup;
    const char *user;
    const char *network;   /* name of the router's link and tables */
    const char *pool_size; /* of a disk pool that is to be made: "2G" */
    const char *log_level; /* of what it writes to our stderr */
    const struct launcher_process_bind *binds;
    size_t bind_count;
};

/* Where the launcher keeps its sockets unless told otherwise. */
#define LAUNCHER_PROCESS_RUN "/run/burrow"

struct launcher_process {
    int conversation; /* owned: for provider_local_new */
    int pidfd;        /* owned */
    pid_t pid;
    char agents[PATH_MAX]; /* folder of the agents' sockets */
};

#define LAUNCHER_PROCESS_INIT                                                                      \
    {                                                                                              \
        .conversation = -EBADF, .pidfd = -EBADF                                                    \
    }

/* Start it. Returns 0, or -1: ERR_NOT_FOUND (no such program), ERR_INVALID (an option is too long,
 * or too many binds), ERR_INTERNAL. Returns once the program runs; whether the launcher is content
 * shows when the provider is opened. */
int launcher_process_start(const struct launcher_process_options *options,
                           struct launcher_process *ret_process, struct error *err);

/* After the provider failed or was lost: if the launcher has ended, or does within `timeout_ms`,
 * `err` becomes a sentence about that; else it stays. Blocks that long. */
void launcher_process_explain(struct launcher_process *process, int timeout_ms, struct error *err);

/* Close the conversation if it is still ours, and wait until the launcher has cleaned up and is
 * gone. -1 with ERR_UPSTREAM_TIMEOUT (it goes on cleaning without us), or ERR_UPSTREAM: it failed.
 * Releases everything in any case. May be called again. Blocks. */
int launcher_process_end(struct launcher_process *process, int timeout_ms, struct error *err);
