/* An exec: one command under way, as every service of the agent sees it.
 *
 *     exec_start ──► on_start ──► on_output ... ──► on_end
 *
 * Output arrives the moment it is written, stdout and stderr apart, with back-pressure: a consumer
 * that calls exec_pause lets the pipes fill and the command wait. The end comes when the command
 * has ended and its output was read; what processes it left in the background still hold open is
 * waited for only briefly (EXEC_GRACE_MS), after which their output is read and forgotten, and they
 * live on. Timeout and cancelling kill everything that descends from the command.
 *
 * An exec frees itself: no call after on_end or exec_cancel. Nothing is called back from inside
 * exec_start. All functions belong to the loop's thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/exec/launch.h"
#include "agent/exec/worker_link.h"
#include "base/list.h"
#include "net/loop.h"
#include "sys/process/sys_process.h"

/* How long output that is still open after the command's end is waited for: silence of this
 * length ends it, and so does four times as much in all. */
#define EXEC_GRACE_MS 50
/* How long a killed tree may take to disappear before on_end comes without it. */
#define EXEC_KILL_WAIT_MS 2000

enum exec_output { EXEC_STDOUT, EXEC_STDERR, EXEC_OUTPUTS };

struct exec;

/* All execs of an agent. */
struct exec_set {
    struct loop *loop;          /* borrowed */
    struct worker_link *worker; /* borrowed */
    struct list running;        /* of exec: their end was not told yet */
    struct list background;     /* of exec: only processes they left are alive */
    size_t running_count;
    size_t background_count;
    uint64_t started;      /* since the agent's start */
    int null;              /* borrowed: /dev/null, open for reading */
    int oom_kill_count_fd; /* borrowed: out_of_memory.h; negative: cannot be told */
    const char *home;      /* borrowed: the HOME that no one has chosen; NULL: the image chose it */
    const char *user;      /* borrowed: who runs what names nobody; NULL: the agent's own */
};

void exec_set_init(struct exec_set *set, struct loop *loop, struct worker_link *worker, int null,
                   int oom_kill_count_fd);

struct exec_result {
    struct sys_exit exit;    /* of the command; unknown when nobody saw it */
    bool timed_out;          /* it was killed for that */
    bool out_of_memory;      /* it was killed while the kernel killed for lack of memory */
    int error;               /* not 0: it was not run, -errno */
    enum launch_stage stage; /* where that happened */
};

struct exec_events {
    /* The command runs. Not called when it could not be started. */
    void (*on_start)(struct exec *exec, void *owner);
    /* Borrowed for the call. With a terminal everything is EXEC_STDOUT. */
    void (*on_output)(struct exec *exec, void *owner, enum exec_output which, const char *bytes,
                      size_t length);
    /* So many bytes of streamed input left for the command. Optional. */
    void (*on_input)(struct exec *exec, void *owner, size_t length);
    /* Nobody reads the streamed input any more. Optional. */
    void (*on_input_closed)(struct exec *exec, void *owner);
    /* The last call, unless there is on_gone; without that the exec is gone for the owner. */
    void (*on_end)(struct exec *exec, void *owner, const struct exec_result *result);
    /* The last call, after on_end: nothing that descends from the command is left, as far as its
     * supervisor knows. Until then exec_signal_tree, exec_kill and exec_cancel may be called.
     * Optional. */
    void (*on_gone)(struct exec *exec, void *owner);
};

struct exec_terminal {
    uint16_t columns, rows;
};

struct exec_options {
    struct launch launch; /* copied; `terminal` is set here */
    const char *input;    /* stdin, copied; NULL: /dev/null */
    size_t input_length;
    bool stream_input;                    /* stdin is what exec_write says */
    const struct exec_terminal *terminal; /* a terminal of this size, with streamed input */
    uint64_t timeout_ms;                  /* from the launch on; 0: none */
    bool as_agent;                        /* not as the user of the set: work of the agent's own */
    /* Not pipes but these as 0, 1 and 2, borrowed for the call: on_output never comes. */
    const int *descriptors;
    /* One more, as 3: a line of the owner's own, borrowed for the call. 0: none. */
    int channel;
};

/* Start. NULL with `*ret_error` (-errno) when that cannot even be tried: -EMFILE, -E2BIG,
 * -EAGAIN. `events` is borrowed: static. */
struct exec *exec_start(struct exec_set *set, const struct exec_options *options,
                        const struct exec_events *events, void *owner, int *ret_error);

void exec_pause(struct exec *exec);
void exec_resume(struct exec *exec);

/* More of the streamed input. All of it is taken and kept until the command reads it: the owner
 * bounds what is under way by counting on_input. Does nothing after exec_end_input, or when nobody
 * reads any more. */
void exec_write(struct exec *exec, const void *bytes, size_t length);

/* The streamed input ends behind what was written. At a terminal this is its end-of-file character,
 * and more may be written behind it. */
void exec_end_input(struct exec *exec);

/* Nobody wants this output any more: the command meets a closed pipe. Not for terminals, where
 * nothing happens. */
void exec_close_output(struct exec *exec, enum exec_output which);

/* Change the size of the terminal; without one nothing happens. */
void exec_resize(struct exec *exec, const struct exec_terminal *size);

/* The command itself has the foreground of its terminal, and nothing that it started: a shell at
 * its prompt. False without a terminal. */
bool exec_has_foreground(const struct exec *exec);

/* Send a signal to the command's process group; at a terminal those that keys send go to the
 * foreground's group instead, as from the keys. */
void exec_signal(struct exec *exec, int signal);

/* Send a signal to everything that descends from the command, other sessions and groups included.
 * Before on_start nothing happens. */
void exec_signal_tree(struct exec *exec, int signal);

/* The command has ended, though not all of its output was read yet: on_end comes soon. */
bool exec_is_ending(const struct exec *exec);

/* Kill everything that descends from the command; on_end comes as usual. */
void exec_kill(struct exec *exec);

/* The same, but the owner is not interested any more: no event comes after this. */
void exec_cancel(struct exec *exec);

/* The command's pid, 0 before on_start. */
pid_t exec_pid(const struct exec *exec);

/* A child of the agent was reaped: the command of an exec whose supervisor was killed may be it. */
void exec_set_reaped(struct exec_set *set, pid_t pid, const struct sys_exit *exit);

/* Kill every tree, the background ones too, without telling anybody: the agent ends. Owners may go
 * on calling, to no effect. */
void exec_set_kill_all(struct exec_set *set);
