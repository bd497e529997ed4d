/* The shell of a session: one process that goes on from command to command.
 *
 *     start ──► on_start ──► session_shell_run ──► on_output ... ──► on_report ──► run ... on_end
 *
 * One thing at a time: what is run next waits for the report of the last. A report is passed on
 * when all output written before it was; output that comes while nothing runs is that of background
 * jobs. The end comes when the shell is gone and what it wrote was passed on; after a kill, when
 * everything that descends from it is gone.
 *
 * A shell frees itself: no call after on_end. Nothing is called back from inside a function of this
 * header. All functions belong to the loop's thread. */
#pragma once

#include "agent/exec/exec.h"
#include "agent/session/session_script.h"
#include "base/text.h"

struct agent;
struct session_shell;

/* Longest script: a command of 1 MiB in which every byte takes four, and its variables. */
#define SESSION_SCRIPT_MAX ((size_t) 16 * 1024 * 1024)
/* Longest answer in sections. */
#define SESSION_ANSWER_MAX ((size_t) 8 * 1024 * 1024)

struct session_shell_events {
    /* It runs, and knows its dialect. Not called when there is no shell, or no room for one. */
    void (*on_start)(struct session_shell *shell, void *owner);
    void (*on_output)(struct session_shell *shell, void *owner, enum exec_output which,
                      const char *bytes, size_t length);
    /* What was run is done. `sections` holds what was asked for, each with a NUL behind it;
     * borrowed. NULL: it is not whole. */
    void (*on_report)(struct session_shell *shell, void *owner, int status,
                      const struct text *sections);
    /* `untouched`: the shell never read what was to be run last. */
    void (*on_end)(struct session_shell *shell, void *owner, const struct exec_result *result,
                   bool untouched);
};

struct session_shell_options {
    const char *const *environment; /* copied */
    const char *directory;          /* copied; when it is missing, $HOME or / will do */
};

/* Start bash, or sh where there is none. NULL with `*ret_error` (-errno) when that cannot even be
 * tried. `events` is borrowed: static. */
struct session_shell *session_shell_start(struct agent *agent,
                                          const struct session_shell_options *options,
                                          const struct session_shell_events *events, void *owner,
                                          int *ret_error);

/* Let it run a script, of its dialect and with this serial; the text is taken. `sections`: how many
 * come before the report. */
void session_shell_run(struct session_shell *shell, struct text *script, uint64_t serial,
                       unsigned int sections);

/* Let output wait, and commands with it. */
void session_shell_pause(struct session_shell *shell);
void session_shell_resume(struct session_shell *shell);

/* Kill it and everything that descends from it. */
void session_shell_kill(struct session_shell *shell);

enum session_dialect session_shell_dialect(const struct session_shell *shell);

/* 0 before on_start. */
pid_t session_shell_pid(const struct session_shell *shell);
