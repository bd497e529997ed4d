/* The agent: what its services share, and its life from the first listener to the last word. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/exec/exec.h"
#include "agent/exec/reaper.h"
#include "agent/exec/worker_link.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "net/http/http_route.h"
#include "net/http/http_server.h"
#include "net/loop.h"

/* Of the messages between control plane and agent; an upgraded daemon meets old agents. */
#define AGENT_PROTOCOL 1

/* Where commands run when nobody says otherwise. */
#define AGENT_DIRECTORY "/workspace"

struct agent_options {
    const struct clock *clock;      /* borrowed */
    struct log *log;                /* borrowed, may be NULL */
    const char *const *environment; /* borrowed: the agent's own */
    const char *const *listen;      /* borrowed: addresses, NULL at the end; may be NULL */
    int listen_fd;                  /* a listening socket, taken over; negative: none */
    const int *groups;              /* borrowed: cgroup.procs files for commands */
    size_t group_count;
    int oom_kill_count_fd;         /* out_of_memory.h, taken over; negative: cannot be told */
    const char *token;             /* borrowed; NULL: everybody who can connect may ask */
    const char *const *entrypoint; /* borrowed: a command to supervise; NULL: none */
};

struct process_set;
struct file_watch_set;
struct services;
struct backup_set;
struct session_set;
struct quiesce;
struct diagnostics;
struct terminal_set;

struct code_set;

struct agent {
    struct loop loop;
    const struct clock *clock;
    struct log *log;
    const char *token;
    const char *version;            /* what /api/version says; borrowed */
    const char **environment;       /* owned: what commands start from */
    const char **first_environment; /* owned: the same, before anybody changed it */
    const char *workspace;          /* AGENT_DIRECTORY, or what $BURROW_WORKSPACE says; borrowed */
    /* Where commands and sessions begin: AGENT_DIRECTORY, or what the image wants and the launcher
     * says in $BURROW_DIRECTORY; borrowed. */
    const char *directory;
    const char *home;           /* for who has no other; borrowed; NULL: the image's, for all */
    const char *user;           /* of the image, in $BURROW_USER; borrowed; NULL: our own */
    const char **image_command; /* owned: image_command.h; NULL: the image names none */
    struct worker_link *worker;
    struct reaper *reaper;
    struct exec_set execs;
    struct services *services;  /* of services.c */
    struct backup_set *backups; /* made on first use */
    struct session_set *sessions;
    struct process_set *processes;
    struct quiesce *quiesce; /* made on first use */
    struct diagnostics *diagnostics;
    struct terminal_set *terminals;      /* made on first use */
    struct code_set *code;               /* made on first use */
    struct file_watch_set *file_watches; /* made on first use */
    struct http_router *router;
    struct http_server *server;
    struct text scratch; /* an event being written */
    uint64_t born;       /* loop_now() at the start */
    uint64_t last_work;  /* loop_now() when the last command began or ended */
    int null;            /* owned: /dev/null */

    struct exec *entrypoint; /* NULL: none, or it has ended */
    bool has_entrypoint;
    bool stopping;
    int exit_status;
};

/* Run until told to stop. Returns the exit status of the program, or -1 with a sentence. Uses the
 * process as a whole: signals, children, descriptor limit. */
int agent_run(const struct agent_options *options, struct error *err);

/* Answer 200 with a JSON body. Ends the request. */
void agent_reply_json(struct http_request *request, const struct text *body);

/* Note that there was work: what activity reports are made of. */
void agent_note_work(struct agent *agent);
