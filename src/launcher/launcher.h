/* A whole launcher: site, residents, janitor, and either a daemon of its own (`serve`) or one
 * conversation with whoever started it (`once`).
 *
 *     serve   starts the daemon and starts it again; sandboxes go on when the launcher ends
 *     once    ends with its conversation, and with it everything that was made in it
 *
 * Signals: SIGTERM and SIGINT end it (`once` leaves SIGINT to its client, who gets it from the same
 * terminal). */
#pragma once

#include "base/log.h"
#include "launcher/site.h"

#define LAUNCHER_SERVE_INSTANCE "serve"
#define LAUNCHER_ONCE_PREFIX    "once-"

struct launcher_options {
    struct site_options site;
    uid_t user; /* the daemon's; `once`: the caller's */
    gid_t group;
    const char *const *daemon; /* serve: its command; NULL: once */
    int socket;                /* once: the conversation, taken */
    const char *const *binds;  /* once: "NAME=DIR" ..., NULL at the end, or NULL */
    uint64_t sandboxes;        /* alive at once, to look at the host's limits for */
    bool nat;                  /* open the router now instead of when it is first needed */
};

/* Run until it is over. Returns the exit status, or -1 with `err` when it cannot start. */
int launcher_run(const struct launcher_options *options, struct log *log, struct error *err);
