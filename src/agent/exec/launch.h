/* What the agent, its worker and the supervisors say to each other.
 *
 *   agent (PID 1) ──── launch ────► worker ... becomes a supervisor ── exec ──► command
 *        ▲                                             │
 *        └────── reports ── control socket ── orders ──┘
 *
 * A launch is one SOCK_SEQPACKET message: a header, strings, and the descriptors of the command
 * and of its control socket. A launch that does not fit into a message travels in a sealed memfd.
 * The control socket is the agent's line to one supervisor for as long as anything of the command
 * lives; its end means that nothing does (or that the supervisor was killed).
 *
 * Both sides are the same executable, forked and not exec'd, so the format has no version. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/text.h"

/* Longest launch in a message; longer ones use a memfd. Well below the default socket buffer. */
#define LAUNCH_INLINE_MAX ((size_t) 32 * 1024)
/* Longest launch at all. The kernel's own limit for arguments and environment is 2 MB. */
#define LAUNCH_SIZE_MAX ((size_t) 8 * 1024 * 1024)

/* Descriptors of a launch, in this order. */
enum launch_descriptor {
    LAUNCH_CONTROL,
    LAUNCH_STDIN,
    LAUNCH_STDOUT,
    LAUNCH_STDERR,
    LAUNCH_CHANNEL, /* becomes 3; negative: none */
    LAUNCH_DESCRIPTORS,
};

struct launch {
    /* The program itself; NULL when only the shell can tell what `shell_command` means. */
    const char *const *arguments;
    /* What a shell runs with -c when there are no arguments or they name no program; or NULL. */
    const char *shell_command;
    const char *const *environment;
    const char *directory; /* where to run; NULL: where the agent runs */
    const char *user;      /* as account_find_owner knows them; NULL: the agent's own */
    bool own_home;         /* HOME is what every command finds: a `user` has another one */
    bool any_directory;    /* when `directory` is missing, $HOME or / will do */
    bool terminal;         /* stdin is a terminal: make it the controlling one */
};

/* Append the message to `bytes` (initialised; LAUNCH_SIZE_MAX as its maximum). Returns 0, or
 * -E2BIG. */
int launch_encode(const struct launch *launch, struct text *bytes);

/* Read it back. The strings point into `bytes`, the two arrays are the caller's: launch_done.
 * Returns 0, or -EBADMSG for anything that launch_encode does not write. */
int launch_decode(const char *bytes, size_t length, struct launch *ret_launch);

void launch_done(struct launch *launch);

AUTO_DEFINE(launch, struct launch, launch_done);

/* The number of an encoded launch: 0 until it is set. The worker notes it on receipt, so that the
 * agent knows which launches a killed worker had seen. */
void launch_set_serial(char *bytes, uint64_t serial);
uint64_t launch_serial(const char *bytes);

/* Send an encoded launch with its descriptors (all but the channel must be there), which stay the
 * caller's. Returns 0 or -errno:
 * -EAGAIN when a non-blocking socket is full. */
int launch_send(int socket, const char *bytes, size_t length, const int fds[LAUNCH_DESCRIPTORS]);

/* Receive one; blocks. Returns the length of the message, and in `ret_bytes` either `buffer` or
 * memory of its own (`*ret_owned`, free it); 0 when the agent is gone; -errno, and -EBADMSG for a
 * message that is none (shorter than a header), in which case its descriptors are closed. */
ssize_t launch_receive(int socket, char buffer[static LAUNCH_INLINE_MAX], const char **ret_bytes,
                       char **ret_owned, int ret_fds[LAUNCH_DESCRIPTORS]);

/* --- on the control socket ------------------------------------------------------------------ */

enum report_type {
    REPORT_STARTED, /* value: the command's pid */
    REPORT_FAILED,  /* value: -errno, detail: a launch_stage; nothing was run */
    REPORT_EXITED,  /* value and detail: value and kind of sys_exit */
};

enum launch_stage {
    LAUNCH_STAGE_FORK,      /* no process: the sandbox has no room */
    LAUNCH_STAGE_MESSAGE,   /* the launch could not be read */
    LAUNCH_STAGE_DIRECTORY, /* the working directory */
    LAUNCH_STAGE_PROGRAM,   /* the program, or every shell */
    LAUNCH_STAGE_USER,      /* no such user, or no right to become it */
};

struct launch_report {
    uint32_t type;
    int32_t value;
    int32_t detail;
};

enum order_type {
    ORDER_KILL,        /* kill everything that descends from the command */
    ORDER_SIGNAL,      /* send `value` to the command's process group */
    ORDER_SIGNAL_TREE, /* send `value` to everything that descends from the command */
    ORDER_OUTPUT,      /* two descriptors come along: read and forget what is still written there */
};

struct launch_order {
    uint32_t type;
    int32_t value;
};
