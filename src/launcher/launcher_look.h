/* Launchers that run on this host, found in /proc: for who looks at their work without being one.
 *
 * A program in a sandbox may call itself anything. It is not in our user namespace, so it is none.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Whether the process whose folder in `proc` (a descriptor of /proc) has this name is a launcher,
 * be it at work or only looking or holding a unit. */
bool launcher_look_is(int proc, const char *pid);

/* The one that serves a daemon on that folder (`burrow-launcher serve --data DATA`), or 0. */
pid_t launcher_look_find(int proc, const char *data);
