/* Schedules: tasks that begin by themselves, when a cron expression says so.
 *
 * When it is time, a task is begun under a key made of the schedule and the time, and the next time is
 * kept then: whatever dies in between, each time has one task. Times that passed while the daemon was
 * not there (or that its clock jumped over) are missed: `missed` says what becomes of them. A clock
 * that is put back has the next time found anew.
 *
 * All of them are in memory. Answers come exactly once, from the loop, never from inside a call. */
#pragma once

#include "domain/task/cron.h"
#include "domain/task/task.h"

#define SCHEDULE_NAME_MAX 63
#define SCHEDULE_LATE_MS  ((int64_t) 60 * 1000) /* a time that is later than that was missed */

/* What happens when it is time and the task of the last time is not over. */
enum schedule_overlap { OVERLAP_SKIP, OVERLAP_ALLOW, OVERLAP_REPLACE, OVERLAP_COUNT };
/* What happens to times that were missed: nothing, or one task for all of them. */
enum schedule_missed { MISSED_SKIP, MISSED_ONCE, MISSED_COUNT };

const char *schedule_overlap_text(enum schedule_overlap overlap);
const char *schedule_missed_text(enum schedule_missed missed);

struct task_schedule {
    struct list link; /* all, in the order they were made */
    struct id id, owner;
    struct id last_task;      /* empty: none */
    char *name, *cron, *zone; /* owned */
    char *spec;               /* owned: JSON of the task, with its secrets */
    char *detail;             /* owned: what came of the last time */
    enum schedule_overlap overlap;
    enum schedule_missed missed;
    bool is_paused;
    int64_t next_ms, last_ms; /* wall time; 0: none */
    int64_t created_ms, updated_ms;

    /* The domain's own. */
    struct cron when;
    struct time_zone *place; /* owned */
    struct share_claim claim;
    bool is_kept, is_busy, is_gone;
};

typedef void schedule_done(void *context, const struct error *failure,
                           struct task_schedule *schedule);

/* {"name", "cron", "timeZone", "overlap":"skip|allow|replace", "missed":"skip|once", "paused",
 * "task":{...}}. ERR_INVALID, ERR_CONFLICT: the name is taken; ERR_QUOTA. */
void schedule_create(struct domain *domain, const struct caller *caller,
                     const struct json_place *object, schedule_done *done, void *context);
/* Members that are not there stay. */
void schedule_change(struct domain *domain, const struct caller *caller,
                     struct task_schedule *schedule, const struct json_place *object,
                     schedule_done *done, void *context);
/* Its tasks stay. `schedule` is NULL in the answer. */
void schedule_delete(struct domain *domain, const struct caller *caller,
                     struct task_schedule *schedule, schedule_done *done, void *context);

/* By id, or by name among the caller's own. NULL with ERR_NOT_FOUND. */
struct task_schedule *schedule_find(const struct domain *domain, const struct caller *caller,
                                    const char *name_or_id, struct error *err);
void schedule_each(const struct domain *domain, const struct caller *caller,
                   void (*each)(void *context, struct task_schedule *schedule), void *context);

/* Now, whatever its times are. */
void schedule_run(struct domain *domain, const struct caller *caller,
                  struct task_schedule *schedule, task_created *done, void *context);
