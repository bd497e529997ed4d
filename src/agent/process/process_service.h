/* Background processes, as clients know them: /api/process/... and RPC's processes.*.
 *
 * start answers once the process has a pid, kill once nothing of it is left. What a client learns
 * of a process whose command has just ended is the end: it waits until the output was read. */
#pragma once

#include "agent/operation.h"

struct call;

extern const struct operation_table process_operations;

/* Start a process for this call and answer it: also what /api/execute does with "background". */
void process_start_background(struct call *call);
