/* How the programs of run_record.h are started: a shell command, its variables, in a body of POST
 * /api/process/start. The prompt is in $BURROW_PROMPT, so that it is no argument of a shell. Pure. */
#pragma once

#include "base/error.h"
#include "base/text.h"
#include "domain/harness.h"

#define RUN_PROMPT_MAX  ((size_t) 120 * 1024) /* a variable of a process holds 128 kB */
#define RUN_START_MAX   ((size_t) 1024 * 1024)
#define RUN_PROCESS_MAX 64

/* The process of a turn: the same name again after a restart. */
void run_start_process(const struct id *turn, char ret_process[static RUN_PROCESS_MAX]);

/* 0, or -1 with ERR_INVALID or ERR_TOO_LARGE. */
int run_start_write(const struct harness_prompt *prompt, struct text *body, struct error *err);
