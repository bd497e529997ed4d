/* `burrow serve` as root: a launcher with the daemon as its child, instead of a daemon alone.
 *
 *     burrow serve --data DATA                                       root
 *       = burrow-launcher serve --data DATA ... -- burrow serve ...   root, makes sandboxes
 *           └── burrow serve --data DATA/daemon ...                  the daemon, user `burrow`
 *
 * The daemon is given every setting as a flag, so that it reads neither the file nor the variables
 * that root read: it may not be able to. */
#pragma once

#include <stdbool.h>

#include "programs/burrow/settings.h"

/* The descriptor with the launcher at its other end; set by the launcher for its daemon. */
#define LAUNCHER_VARIABLE "BURROW_LAUNCHER_FD"

/* The folder of the agents' sockets; set by the launcher, too. */
#define AGENTS_VARIABLE "BURROW_AGENTS"

/* Whether this process should become the launcher: it is root, has none, and wants sandboxes. */
bool serve_root_is_wanted(const struct settings *settings);

/* Become it. Returns -1 with what is missing and what to do; does not return otherwise. */
int serve_root(const struct settings *settings, struct error *err);
