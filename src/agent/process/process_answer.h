/* What the answers about background processes have in common. Inside process_*.c only. */
#pragma once

#include "agent/call.h"
#include "agent/process/process_set.h"

struct json_writer;

/* The process that the argument "id" names; NULL when the call was failed for that. */
struct process *process_of_call(struct call *call);

/* Fail with "Process '<id>' <reason>" and the id as context. */
void process_fail(struct call *call, enum api_code code, const char *id, const char *reason);

/* "exitCode", and how it came to that: "signal", "timedOut", "outOfMemory". The code is null when
 * nobody knows it. */
void process_add_exit(struct json_writer *json, const struct process *process);

/* Answer now, or when the process has ended if its command has. */
void process_answer(struct call *call, struct process *process,
                    void (*answer)(struct call *call, struct process *process));

/* process_logs.c, process_stream.c */
void process_logs(struct call *call);
void process_stream(struct call *call);
