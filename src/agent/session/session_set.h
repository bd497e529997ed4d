/* All sessions of an agent: created on use, one command at a time each, and side by side.
 *
 *     session_run ──► on_start ──► on_output ... ──► on_end
 *
 * A session has an id, what it starts with (directory, variables, a timeout for its commands) and,
 * once it is used, a shell. When its shell ends the session stays, and the next command gets a
 * fresh shell. Deleting it ends everything.
 *
 * Nothing is called back from inside a function of this header. All of them belong to the loop's
 * thread. */
#pragma once

#include "agent/environment.h"
#include "agent/exec/exec.h"
#include "agent/session/session.h"

/* Sessions at a time, and commands that wait in one of them. */
#define SESSIONS_MAX        1000
#define SESSION_WAITING_MAX 256

struct agent;
struct session;
struct session_set;
struct session_command;

/* For the agent: an empty set, kept until the end. */
struct session_set *session_set_new(void);

enum session_outcome {
    SESSION_ENDED,      /* with an exit status */
    SESSION_TERMINATED, /* the shell has ended, by the command or otherwise */
    SESSION_DESTROYED,  /* the session was deleted */
    SESSION_TIMED_OUT,  /* the command goes on, and the shell with it */
    SESSION_FAILED,     /* there is no shell to be had */
};

struct session_result {
    enum session_outcome outcome;
    int status;              /* of SESSION_ENDED */
    struct exec_result exec; /* of the shell: SESSION_TERMINATED, SESSION_FAILED */
    uint64_t timeout_ms;     /* that has passed */
};

struct session_command_events {
    void (*on_start)(struct session_command *command);
    /* Borrowed for the call. */
    void (*on_output)(struct session_command *command, enum exec_output which, const char *bytes,
                      size_t length);
    /* The last call. */
    void (*on_end)(struct session_command *command, const struct session_result *result);
};

/* A command waiting or running. The owner fills in the first part and keeps it alive, strings
 * included, until on_end or session_abandon. */
struct session_command {
    const char *text;
    const char *directory;                    /* for this command only; NULL: where the shell is */
    const struct environment_change *changes; /* for this command only; with a text each */
    size_t change_count;
    uint64_t timeout_ms; /* from its start; 0: the session's, or COMMAND_TIMEOUT_MS */
    const struct session_command_events *events;
    void *owner;

    struct list link; /* from here on: the session's own */
    struct session *session;
    unsigned int attempts;
};

/* Run it when its turn comes; unknown sessions are created. Returns 0, or -1 with the error to
 * answer when there is no room for one more. */
int session_run(struct agent *agent, const char *id, struct session_command *command,
                struct api_error *error);

/* Nobody is interested any more: it is taken out of the queue, or runs on for itself. */
void session_abandon(struct session_command *command);

/* Let a running command's output wait. */
void session_pause(struct session_command *command);
void session_resume(struct session_command *command);

/* The pid of the shell that runs it, or 0. */
pid_t session_command_pid(const struct session_command *command);

/* --- sessions by themselves ------------------------------------------------------------------ */

struct session_settings {
    const char *directory;                    /* NULL: the usual one */
    const struct environment_change *changes; /* beyond what every command gets */
    size_t change_count;
    uint64_t timeout_ms; /* of its commands; 0: none */
};

/* Make one; all is copied. A session of that id whose shell has ended is replaced. Returns 0, or -1
 * with SESSION_ALREADY_EXISTS or the limit. Its shell starts with the first use. */
int session_create(struct agent *agent, const char *id, const struct session_settings *settings,
                   struct api_error *error);

/* Somebody who waits until nothing is left of a deleted session. */
struct session_farewell {
    void (*on_gone)(struct session_farewell *farewell);
    struct list link; /* the session's own */
};

/* Delete it: its shell and what descends from it are killed, its commands end with
 * SESSION_DESTROYED. From now on the id is free. Returns whether there is such a session; only then
 * on_gone comes, unless the farewell is forgotten with session_farewell_forget. */
bool session_delete(struct agent *agent, const char *id, struct session_farewell *farewell);
void session_farewell_forget(struct session_farewell *farewell);

/* The next id after `id` (NULL: the first), in the order of creation; NULL: none. Borrowed until a
 * session is deleted. */
const char *session_next(const struct agent *agent, const char *id);

/* The settings of a session, borrowed; NULL: there is none. */
const struct session_settings *session_settings(const struct agent *agent, const char *id);

enum session_state {
    SESSION_ASLEEP, /* no shell: it is what its settings say */
    SESSION_FREE,
    SESSION_BUSY,
};

enum session_state session_state(const struct agent *agent, const char *id);

/* Shells that wait for something to do: they run, but that is no activity. */
size_t session_idle_count(const struct agent *agent);
