/* A backup job: one request about an archive, from its turn to its answer.
 *
 *     backup_job_queue ──► begin ──► ... ──► backup_job_end ──► the next one's begin
 *
 * Jobs of an agent run one after another: they read and replace whole folders. A client that leaves
 * takes its job out of the queue; one that runs already is told by `stop`, and ends as if it had
 * failed. Only on the loop's thread. */
#pragma once

#include "agent/api_error.h"
#include "agent/call.h"
#include "agent/tool.h"
#include "base/list.h"
#include "base/pool.h"

struct backup_job;
struct backup_set;

#define BACKUP_QUEUE_MAX 64
#define BACKUP_REPLY_MAX ((size_t) 4 * 1024 * 1024)

struct backup_kind {
    size_t size; /* of the struct that begins with a backup_job */
    /* Its turn has come. */
    void (*begin)(struct backup_job *job);
    /* Its client left while it runs: come to an end soon. NULL: it ends when its tool is killed. */
    void (*stop)(struct backup_job *job);
    /* Free what is not in its pool. Optional. */
    void (*done)(struct backup_job *job);
};

struct backup_job {
    const struct backup_kind *kind; /* borrowed: static */
    struct agent *agent;            /* borrowed */
    struct call *call;              /* NULL: the client left */
    struct pool pool;               /* what lives as long as the job */
    struct tool tool;
    struct text reply; /* a good answer, when it did not fail */
    struct api_error failure;
    bool failed;

    struct list link; /* private */
    struct backup_set *set;
    struct loop_task start;
    struct loop_task free;
};

/* A new job for the call. */
struct backup_job *backup_job_new(struct call *call, const struct backup_kind *kind);

/* Free it before it was queued. */
void backup_job_drop(struct backup_job *job);

/* Let it have its turn, or fail its call with RESOURCE_BUSY. */
void backup_job_queue(struct backup_job *job);

/* What an error's context says. */
struct backup_context {
    const char *folder, *archive;     /* NULL: left out */
    const struct exec_result *result; /* of the tool; NULL: it is not about the tool */
};

/* Note why it cannot succeed; the first reason stays. */
void backup_job_fail(struct backup_job *job, enum api_code code,
                     const struct backup_context *context, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The tool could not run, or complained: "mksquashfs failed: ...". `package` has the program. */
void backup_job_fail_tool(struct backup_job *job, enum api_code code, const char *program,
                          const char *package, const struct backup_context *context);

/* Answer, free the job, and begin the next. */
void backup_job_end(struct backup_job *job);
