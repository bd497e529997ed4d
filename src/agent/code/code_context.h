/* Contexts: code that keeps its variables from run to run.
 *
 * A context is a language, a directory, an environment and a process (code_process.h). Runs of one
 * context wait for each other, contexts run side by side. A run that takes too long, or whose
 * client has left, is interrupted; when that does not end it within CODE_INTERRUPT_MS the process
 * is killed and the context gets a new one. A context whose process ends by itself is gone.
 *
 * Runs without a context use one per language that is made on first use. All functions belong to
 * the loop's thread. */
#pragma once

#include "agent/code/code_language.h"
#include "agent/code/code_process.h"
#include "base/list.h"

#define CODE_CONTEXTS_MAX 64
/* Runs that wait for one context. */
#define CODE_WAITING_MAX  64
#define CODE_INTERRUPT_MS 5000
/* How long an interpreter may take to start. */
#define CODE_START_MS 60000

/* The form of a UUID, as Cloudflare's clients expect. */
#define CODE_ID_SIZE 37

struct code_run;

/* Whom a context tells what becomes of a run. The run is gone with on_end or on_refused. */
struct code_run_events {
    void (*on_start)(struct code_run *run);
    void (*on_output)(struct code_run *run, enum exec_output which, const char *bytes,
                      size_t length);
    /* A result, or an error of the code. */
    void (*on_frame)(struct code_run *run, const struct code_frame *frame);
    /* After on_start. `ename` is not NULL when the run was ended from outside: then `evalue` says
     * how. */
    void (*on_end)(struct code_run *run, const char *ename, const char *evalue);
    /* Instead of on_start. */
    void (*on_refused)(struct code_run *run, enum api_code code, const char *message);
};

/* Owned by who made it; the fields below `link` are the context's. */
struct code_run {
    const struct code_run_events *events; /* static */
    void *owner;                          /* NULL: nobody listens any more */
    const char *code;                     /* borrowed until on_start has returned */
    const struct code_language *language;
    uint64_t timeout_ms; /* from its start on; 0: none */
    struct list link;
    struct code_context *context;
    bool interrupted;
    char reason[128];
};

struct code_context {
    struct list link;
    struct code_set *set;
    char id[CODE_ID_SIZE];
    const struct code_language *language;
    struct code_place place; /* owned: its strings */
    int64_t created_ms;
    int64_t used_ms;
    bool is_default; /* for runs that name no context */

    struct code_process *process; /* NULL: none now */
    struct code_run *running;     /* NULL: idle */
    struct list waiting;          /* of code_run */
    size_t waiting_count;
    struct deadline deadline; /* for the start, the run, or the reaction to an interrupt */
    bool is_ready;            /* the process may be given code */
    /* Told once, when the first process is ready or is not going to be. */
    void (*on_made)(struct code_context *context, void *owner, enum api_code code,
                    const char *failure); /* failure NULL: it is there */
    void *owner;
};

struct code_set {
    struct agent *agent;
    struct code_server *server;
    struct list contexts;
    size_t count;
};

/* For activity reports: execs that are ours, of which most wait for code, and runs under way. */
void code_count(const struct agent *agent, size_t *ret_execs, size_t *ret_running);

/* Made by the first call that needs it. */
struct code_set *code_set_of(struct agent *agent);

/* Make one and start its process. `place` is copied. NULL with a failure to answer: too many, no
 * interpreter, no process. */
struct code_context *code_context_new(struct code_set *set, const struct code_language *language,
                                      const struct code_place *place, struct api_error *error);

/* By its id; NULL: none. */
struct code_context *code_context_find(const struct code_set *set, const char *id);

/* The one for runs that name none; it is made when there is none. NULL as above. */
struct code_context *code_context_default(struct code_set *set,
                                          const struct code_language *language,
                                          struct api_error *error);

/* Kill its process and forget it; its runs are told. */
void code_context_delete(struct code_context *context);

/* Run, or wait for those before. Returns 0, or -EBUSY when too many wait. on_start or on_refused
 * may come from inside. */
int code_context_run(struct code_context *context, struct code_run *run);

/* Nobody listens any more. Returns true when the run had not started: then it is the caller's
 * again. Otherwise it is interrupted, and on_end comes as its end. */
bool code_run_leave(struct code_run *run);

/* The listener is full, and has room again. Only while it runs. */
void code_run_pause(struct code_run *run);
void code_run_resume(struct code_run *run);
