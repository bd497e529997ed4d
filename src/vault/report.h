/* A keeper job and its report: lines of JSON that come out of a pipe, the last of which is the
 * outcome.
 *
 *     report_run(&report, loop, provider, &job, on_line, on_done, mine);
 *     -> on_line(mine, line, length)               each line but the last
 *     -> on_done(mine, NULL, outcome, length)      once, from the loop, when the job is gone
 *
 * A job that failed brings the error that its last line tells. One thread. */
#pragma once

#include <jansson.h>

#include "base/text.h"
#include "json/json_read.h"
#include "net/loop.h"
#include "provider/provider.h"

/* `line` is without its newline, borrowed, and has a NUL behind it. */
typedef void report_line(void *context, const char *line, size_t length);
/* `outcome` likewise; NULL after a failure. The report may be used again or freed. */
typedef void report_done(void *context, const struct error *failure, const char *outcome,
                         size_t length);

struct report {
    struct loop *loop;
    uv_poll_t poll;
    struct loop_task late; /* the end of one that could not begin */
    int pipe;              /* owned: the end we read; -EBADF when it is over */
    struct text line;      /* what is not a whole line yet */
    struct text last;      /* the last whole line */
    bool has_last;
    bool is_running, is_answered, is_drained, is_cancelled;
    bool failed;
    struct error failure;
    struct ending ending;
    struct trace_context trace; /* of whoever runs it; it is told as that */
    report_line *on_line;       /* may be NULL */
    report_done *on_done;
    void *context;
};

/* Run `job`, whose output is this report. Never calls back from inside the call. */
void report_run(struct report *report, struct loop *loop, struct provider *provider,
                const struct provider_disk_job *job, report_line *on_line, report_done *on_done,
                void *context);

/* Let the job end: on_done follows with ERR_CANCELLED. Nothing when none runs. */
void report_cancel(struct report *report);

/* An outcome as `{"member":{...}}`: the object inside. */
struct outcome {
    json_t *root; /* owned */
    struct json_place top, inner;
};

void outcome_done(struct outcome *outcome);

AUTO_DEFINE(outcome, struct outcome, outcome_done);

/* -1 with ERR_UPSTREAM: it is something else. */
int outcome_read(struct outcome *outcome, const char *line, size_t length, const char *member,
                 struct error *err);

/* A count in it, 0 when it is missing. */
int outcome_count(const struct outcome *outcome, const char *key, uint64_t *ret_count,
                  struct error *err);

/* A sum in it: 64 hex digits. */
int outcome_sum(const struct outcome *outcome, const char *key, uint8_t ret_sum[static 32],
                struct error *err);
