/* Background processes: commands that go on while clients come and go, with their logs.
 *
 *     starting ──► running ──► completed | failed | killed | error
 *         └───────────────────────────────────► killed | error
 *
 * A process is a shell command with a supervisor of its own (exec.h). It starts where its session
 * is, with what the session exports. It has ended when the command has and its output was read.
 * What it left behind lives on, like a daemon after its start script, but still belongs to it: to
 * kill a process is to kill everything that descends from it.
 *
 * All processes of an agent are in its set, the finished ones too until there are too many or too
 * large ones. All functions belong to the loop's thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/api_error.h"
#include "agent/exec/exec.h"
#include "agent/process/process_log.h"
#include "agent/session/session.h"
#include "agent/variables.h"
#include "base/pool.h"

struct agent;

#define PROCESS_ID_MAX ((size_t) 256)
/* The kernel takes no longer argument. */
#define PROCESS_COMMAND_MAX ((size_t) 128 * 1024)
/* Bytes of all commands together, and how many processes there may be. */
#define PROCESS_COMMANDS_MAX ((size_t) 2 * 1024 * 1024)
#define PROCESS_LIVE_MAX     ((size_t) 2048)
#define PROCESS_FINISHED_MAX ((size_t) 256)
/* From SIGTERM to SIGKILL, and from there to giving up on what cannot be killed. */
#define PROCESS_TERM_WAIT_MS 5000
#define PROCESS_KILL_WAIT_MS 3000
/* How long a process that cleans up after itself is remembered: who waited for it may still ask. */
#define PROCESS_CLEANUP_MS 5000

enum process_status {
    PROCESS_STARTING,
    PROCESS_RUNNING,
    PROCESS_COMPLETED, /* with exit status 0 */
    PROCESS_FAILED,    /* with another, or by a signal */
    PROCESS_KILLED,    /* by us, or by SIGTERM or SIGKILL of whomever */
    PROCESS_ERROR,     /* not run, or nobody knows how it ended */
    PROCESS_STATUSES,
};

struct process_set {
    struct agent *agent;   /* borrowed */
    struct list processes; /* of process, in the order of their start */
    struct process_log_store logs;
    size_t live_count;
    size_t finished_count;
    size_t command_bytes;
};

struct process {
    struct list link;
    struct process_set *set;
    const char *id;      /* owned, as `command` and `session` */
    const char *command; /* for the shell */
    const char *session;
    enum process_status status;
    pid_t pid; /* 0: never ran */
    int64_t started_ms;
    int64_t ended_ms; /* 0: not yet */
    struct exec_result result;
    struct process_log log;
    struct api_error *failure; /* borrowed, while its end is told: its session could not be had */

    /* Inside process_set.c only. */
    struct list watchers;
    struct exec *exec; /* NULL: not started yet, or nothing is left of it */
    struct session_query query;
    struct pool launch; /* what is needed until the start */
    struct variables variables;
    const char *directory; /* in `launch`; NULL: the session's */
    uint64_t timeout_ms;
    struct deadline deadline;
    unsigned int references;
    bool asking : 1;    /* the query is under way */
    bool killing : 1;   /* SIGTERM was sent */
    bool killed : 1;    /* ... before its end */
    bool forced : 1;    /* SIGKILL was sent */
    bool forgotten : 1; /* not in the set any more */
    bool cleans_up : 1; /* to be forgotten soon after its end */
};

struct process_set *process_set_new(struct agent *agent);

struct process_request {
    const char *id; /* NULL: make one */
    const char *command;
    const char *session;
    const char *directory; /* NULL: the session's; may be relative to that */
    struct variables variables;
    uint64_t timeout_ms; /* 0: none */
    bool cleans_up;
};

/* Start one; everything of the request is copied. It is PROCESS_STARTING at first, nothing is told
 * from inside. A finished process of the same id is forgotten. NULL with the error to answer: the
 * id is in use or none, there are too many. */
struct process *process_start(struct process_set *set, const struct process_request *request,
                              struct api_error *error);

/* Borrowed, or NULL. */
struct process *process_find(const struct process_set *set, const char *id);

const char *process_status_text(enum process_status status);

bool process_has_ended(const struct process *process);

/* It has not ended, but its command has: PROCESS_ENDED comes soon. */
bool process_is_ending(const struct process *process);

/* Something of it is alive, perhaps only what it left behind. */
bool process_is_alive(const struct process *process);

/* What clients see of its end: exit status, 128 + signal, 124 for a timeout; -1: unknown. */
int process_exit_code(const struct process *process);

/* SIGTERM to everything that descends from it, SIGKILL later to what is left. PROCESS_GONE tells
 * when that is done. Does nothing when nothing is alive, or the second time. */
void process_kill(struct process *process);

/* Kill the processes of a session. */
void process_session_deleted(struct agent *agent, const char *session);

/* --- watching -------------------------------------------------------------------------------- */

enum process_event {
    PROCESS_STARTED, /* it has a pid */
    PROCESS_OUTPUT,  /* the log has grown */
    PROCESS_ENDED,   /* its status is final, its log complete */
    PROCESS_GONE,    /* nothing of it is alive, or it cannot be killed; after PROCESS_ENDED */
};

struct process_watcher {
    void (*on_event)(struct process_watcher *watcher, enum process_event event);
    struct list link; /* from here on: the process's own */
    struct process *process;
};

/* Hear of a process; keeps it alive, though perhaps forgotten, until process_unwatch. on_event may
 * unwatch. It tells nothing of what was before. */
void process_watch(struct process *process, struct process_watcher *watcher);
void process_unwatch(struct process_watcher *watcher);
