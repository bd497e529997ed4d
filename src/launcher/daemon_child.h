/* The daemon as the launcher's child: started without privileges, watched, started again.
 *
 * It gets its end of a new conversation as descriptor DAEMON_SOCKET_FD and finds in its environment
 *
 *     BURROW_LAUNCHER_FD=3
 *     BURROW_AGENTS=/run/burrow/serve/agents
 *
 * in place of what had these names; of the launcher's own environment it gets what a table names
 * (BURROW_* and a few that libraries read), and nothing else. When it dies the next one is started after a pause that doubles
 * from DAEMON_PAUSE_MIN_MS to DAEMON_PAUSE_MAX_MS and begins anew once it lived for
 * DAEMON_STEADY_MS. A daemon that exits by itself with 0 was asked to end, and one that exits with
 * DAEMON_REFUSED will not do better the next time: then `over` is called. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/log.h"
#include "launcher/loop/event_loop.h"
#include "sys/process/sys_process.h"

#define DAEMON_SOCKET_FD    3
#define DAEMON_REFUSED      2
#define DAEMON_PAUSE_MIN_MS 100
#define DAEMON_PAUSE_MAX_MS 10000
#define DAEMON_STEADY_MS    10000

struct daemon_child {
    struct event_loop *loop;
    struct log *log;
    const char *const *command; /* borrowed; NULL at the end, an absolute path first */
    const char *agents;         /* borrowed */
    uid_t user;
    gid_t group;
    void *context;
    void (*conversation)(void *context, int fd); /* of a new daemon; takes the descriptor */
    void (*over)(void *context, int status);     /* exit status for the launcher */

    pid_t pid;
    int pidfd; /* owned */
    bool is_stopping;
    uint64_t started_ns;
    uint64_t pause_ms;
    struct event_source exit;
    struct event_timer restart;
};

/* All fields up to `over` are filled. Returns 0, or -1: it cannot be started at all. */
int daemon_child_start(struct daemon_child *daemon, struct error *err);

/* Ask it to end; `over` follows when it has. The second time it is killed. */
void daemon_child_stop(struct daemon_child *daemon);

/* Its conversation broke: it cannot go on. Kill it, so that the next one is started. */
void daemon_child_kill(struct daemon_child *daemon);

void daemon_child_done(struct daemon_child *daemon);
