/* Starting an interpreter with its executor as standard input. */
#pragma once

#include "agent/agent.h"
#include "agent/code/code_language.h"
#include "agent/exec/exec.h"

/* What an interpreter is connected with, in this order. */
enum code_descriptor { CODE_CHANNEL, CODE_STDOUT, CODE_STDERR, CODE_DESCRIPTORS };

struct code_place {
    const char *directory;          /* where code runs */
    bool any_directory;             /* when that is missing, $HOME or / will do */
    const char *const *environment; /* complete */
};

/* Start it there; the descriptors are borrowed. Of the events on_start and on_end come. NULL with
 * `*ret_error` (-errno) as from exec_start. */
struct exec *code_launch(struct agent *agent, const struct code_program *program,
                         const struct code_place *place, const int fds[static CODE_DESCRIPTORS],
                         const struct exec_events *events, void *owner, int *ret_error);
