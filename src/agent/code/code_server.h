/* The fork server: one warmed Python per agent, that becomes a new context by forking.
 *
 * Started with the first context, ended CODE_SERVER_IDLE_MS after the last; a dead one is replaced
 * by the next that is needed, and so is one that was stopped. Contexts outlive it. All functions
 * belong to the loop's thread. */
#pragma once

#include "agent/code/code_launch.h"

/* Without contexts it is kept so long. */
#define CODE_SERVER_IDLE_MS 300000
/* One that does not even read what it is asked for so long is killed. */
#define CODE_SERVER_STALL_MS 10000

struct code_server;

struct code_server *code_server_new(struct agent *agent);

/* Become a context with these (borrowed). What goes wrong after this shows as the end of the
 * channel. Returns 0 or -errno. */
int code_server_fork(struct code_server *server, const int fds[static CODE_DESCRIPTORS]);

/* Whether it is an exec now. */
bool code_server_has_exec(const struct code_server *server);

/* One context more, or fewer. */
void code_server_hold(struct code_server *server);
void code_server_let_go(struct code_server *server);
