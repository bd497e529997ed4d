/* A shell session: our terminal joined to the terminal of a session in a sandbox.
 *
 *     keys ──► WebSocket ──► the session's terminal ──► screen
 *
 * The terminal there outlives the connection. When that is lost (the daemon was restarted, the
 * network went away) it is made again, for up to SHELL_SESSION_PATIENCE_MS, and the terminal
 * replays what it showed: the screen is cleared before. Meanwhile Ctrl-C leaves.
 *
 * The memory belongs to the client's pool, and closing the client closes what is left. */
#pragma once

#include <stdbool.h>

#include "cli/client/client.h"

#define SHELL_SESSION_PATIENCE_MS 120000

struct shell_session_options {
    struct client *client; /* borrowed */
    const char *sandbox;   /* its name, borrowed like all texts */
    const char *session;   /* whose terminal */
    int input, output;     /* borrowed: 0 and 1 */
};

struct shell_session_result {
    int status;     /* the shell's exit status */
    bool was_open;  /* there was a terminal */
    bool has_ended; /* its shell has; else we left and it goes on */
};

/* Run it to its end. Blocks, and serves signals and the terminal meanwhile. Returns 0, or -1 with
 * the reason: it could not be opened, or stayed lost. */
int shell_session_run(const struct shell_session_options *options,
                      struct shell_session_result *ret_result, struct error *err);
