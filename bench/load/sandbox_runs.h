/* The commands of sandbox-load themselves; their table is load/sandbox_commands.h. Each takes the
 * session and the numbers of its line, and prints its line of JSON. What fails ends the program. */
#pragma once

#include "load/sandbox_commands.h"

typedef void sandbox_run(struct sandbox_session *session, struct sandbox_crowd *crowd,
                         const uint64_t *numbers);

sandbox_run sandbox_run_cold;
sandbox_run sandbox_run_exec;
sandbox_run sandbox_run_pooled;
sandbox_run sandbox_run_sustained;
sandbox_run sandbox_run_idle;
