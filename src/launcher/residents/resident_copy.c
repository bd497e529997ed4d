/* Copies of disks, and sandboxes that stand still for them. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/auto.h"
#include "base/crash_point.h"
#include "launcher/cgroup/cgroup_freeze.h"
#include "launcher/residents/residents.h"

/* A process deep in the kernel can keep a freeze waiting, and the others of its sandbox with it. */
#define FREEZE_STEP_MS 1
#define FREEZE_MAX_MS  5000
/* Nobody stands still for longer than this for a copy that takes one step. */
#define HOLD_MAX_MS 10000
/* For copies that can do without. */
#define HINT "; with \"freeze\": false it goes on meanwhile"

static uint64_t now_ns(const struct residents *all)
{
    return clock_monotonic_ns(all->loop->clock);
}

/* --- standing still -------------------------------------------------------------------------- */

/* Written down first, so that whoever finds it frozen knows why. */
static int hold(struct resident *resident, struct error *err)
{
    if (resident->holds == 0 && !resident->is_frozen) {
        resident->record.is_held = true;
        if (resident_write_record(resident, err) < 0)
            return -1;
        if (cgroup_freeze(&resident->sandbox.cgroup, CGROUP_WHOLE, err) < 0) {
            resident->record.is_held = false;
            (void) resident_write_record(resident, NULL);
            return -1;
        }
    }
    resident->holds++;
    return 0;
}

/* It goes on, unless somebody wants it frozen by now. */
static void release(struct resident *resident)
{
    if (--resident->holds > 0)
        return;
    if (!resident->is_frozen && resident->state == RESIDENT_RUNNING)
        (void) cgroup_thaw(&resident->sandbox.cgroup, CGROUP_WHOLE, NULL);
    if (!resident->record.is_held)
        return;
    resident->record.is_held = false;
    (void) resident_write_record(resident, NULL); /* thawing what runs does no harm */
}

static void let_go(struct resident_copy *copy)
{
    event_timer_clear(&copy->timer);
    if (!copy->is_held)
        return;
    copy->is_held = false;
    if (copy->is_pause)
        copy->pause_us += (now_ns(copy->all) - copy->held_ns) / 1000;
    release(copy->source);
}

/* --- one copy -------------------------------------------------------------------------------- */

static void finish(struct resident_copy *copy, const struct error *failure)
{
    let_go(copy);
    list_remove(&copy->source_link);
    list_remove(&copy->link);
    copy->source = NULL;
    copy->done(copy, failure);
    free(copy);
}

static void copied(struct porter_job *job, const struct error *failure)
{
    struct resident_copy *copy = CONTAINER_OF(job, struct resident_copy, job);
    struct error late = ERROR_INIT;

    if (copy->is_late && !failure) {
        (void) error_set(&late, ERR_UNAVAILABLE, ETIMEDOUT,
                         "the copy took longer than %d ms, and the sandbox could not wait" HINT,
                         HOLD_MAX_MS);
        failure = &late;
    }
    finish(copy, failure);
}

static void taken(struct porter_job *job)
{
    let_go(CONTAINER_OF(job, struct resident_copy, job));
}

static void give_up_waiting(struct event_timer *timer)
{
    struct resident_copy *copy = CONTAINER_OF(timer, struct resident_copy, timer);

    if (copy->source->is_frozen) { /* it sleeps anyway */
        event_timer_set(copy->all->loop, timer, HOLD_MAX_MS);
        return;
    }
    copy->is_late = true;
    let_go(copy);
}

static void ready(struct porter_job *job);

static void hand_over(struct resident_copy *copy)
{
    struct residents *all = copy->all;

    if (copy->is_held && disk_pool_shares(all->site->host.pool)) {
        copy->timer.fire = give_up_waiting;
        event_timer_set(all->loop, &copy->timer, HOLD_MAX_MS);
    }
    copy->is_added = true;
    copy->job.taken = taken;
    copy->job.ready = ready;
    copy->job.done = copied;
    porter_add(all->porter, &copy->job);
}

/* What changed is copied now, once. */
static void copy_rest(struct resident_copy *copy)
{
    CRASH_POINT("launcher.plain_copy.held");
    copy->is_ready = false;
    porter_finish(&copy->job);
}

/* By the clock that filesystems take their times from, which goes in steps. */
static int64_t file_time_ms(void)
{
    struct timespec now = {0};

    (void) clock_gettime(CLOCK_REALTIME_COARSE, &now); /* cannot fail */
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The source stands still now. */
static void go_ahead(struct resident_copy *copy)
{
    if (copy->is_ready) {
        copy_rest(copy);
        return;
    }
    CRASH_POINT("launcher.hold.frozen");
    if (copy->is_live) {
        copy->job.task.since_ms = file_time_ms();
        let_go(copy);
    }
    hand_over(copy);
}

static void give_up(struct resident_copy *copy, const struct error *failure)
{
    if (!copy->is_added) {
        finish(copy, failure);
        return;
    }
    let_go(copy);
    copy->is_ready = false;
    porter_give_up(&copy->job, failure);
}

static void look_at_freeze(struct event_timer *timer)
{
    struct resident_copy *copy = CONTAINER_OF(timer, struct resident_copy, timer);
    struct cgroup_freeze_state state = {0};
    struct error err = ERROR_INIT;

    if (cgroup_freeze_state(&copy->source->sandbox.cgroup, CGROUP_WHOLE, &state, &err) == 0 &&
        state.frozen) {
        go_ahead(copy);
        return;
    }
    if (++copy->turns < FREEZE_MAX_MS / FREEZE_STEP_MS) {
        event_timer_set(copy->all->loop, timer, FREEZE_STEP_MS);
        return;
    }
    (void) error_set(&err, ERR_UNAVAILABLE, ETIMEDOUT,
                     "a process of the sandbox is busy in the kernel and did not freeze in %d ms%s",
                     FREEZE_MAX_MS, copy->is_live ? "" : HINT);
    give_up(copy, &err);
}

/* Let it stand still; look_at_freeze has to follow. */
static int begin_hold(struct resident_copy *copy, struct error *err)
{
    copy->is_pause = !copy->source->is_frozen;
    if (hold(copy->source, err) < 0)
        return -1;
    copy->held_ns = now_ns(copy->all);
    copy->is_held = true;
    copy->turns = 0;
    copy->timer.fire = look_at_freeze;
    return 0;
}

/* One that is about to end is waited for: resident_copy_source_ended. */
static void ready(struct porter_job *job)
{
    struct resident_copy *copy = CONTAINER_OF(job, struct resident_copy, job);
    struct error err = ERROR_INIT;

    CRASH_POINT("launcher.plain_copy.ready");
    copy->is_ready = true;
    if (!copy->source)
        copy_rest(copy);
    else if (copy->source->state == RESIDENT_RUNNING && begin_hold(copy, &err) < 0)
        give_up(copy, &err);
    else if (copy->is_held)
        look_at_freeze(&copy->timer);
}

/* One that is about to end is waited for, as above. */
static void flushed(struct porter_job *job, const struct error *failure)
{
    struct resident_copy *copy = CONTAINER_OF(job, struct resident_copy, job);
    struct error err = ERROR_INIT;

    copy->is_flushing = false;
    copy->job.task.work = copy->work;
    if (failure)
        finish(copy, failure);
    else if (!copy->source)
        hand_over(copy);
    else if (copy->source->state == RESIDENT_RUNNING && begin_hold(copy, &err) < 0)
        finish(copy, &err);
    else if (copy->is_held)
        look_at_freeze(&copy->timer);
}

/* What its programs wrote goes to the pool while they go on. Then they stand still for little more
 * than a commit. */
static void flush(struct resident_copy *copy)
{
    copy->is_flushing = true;
    copy->work = copy->job.task.work;
    copy->job.task.work = PORTER_FLUSH;
    copy->job.done = flushed;
    porter_add(copy->all->porter, &copy->job);
}

int resident_copy_begin(struct resident_copy *copy, struct resident *source, bool wants_hold,
                        struct error *err)
{
    struct residents *all = copy->all;

    if (porter_is_full(all->porter))
        return error_set(err, ERR_UNAVAILABLE, 0,
                         "%d copies of disks are under way; try again in a moment",
                         PORTER_QUEUE_MAX);
    copy->source = source;
    copy->is_live = source && !disk_pool_shares(all->site->host.pool);
    if (copy->is_live && begin_hold(copy, err) < 0)
        return -1;
    copy->began_ns = now_ns(all);
    list_init(&copy->source_link);
    list_append(&all->copies, &copy->link);
    if (source)
        list_append(&source->copies, &copy->source_link);
    if (copy->is_held)
        look_at_freeze(&copy->timer);
    else if (source && wants_hold)
        flush(copy);
    else
        hand_over(copy);
    return 0;
}

/* The dead stand still, too. What waited for that goes ahead. */
void resident_copy_source_ended(struct resident *resident)
{
    LIST_EACH (&resident->copies, at) {
        struct resident_copy *copy = CONTAINER_OF(at, struct resident_copy, source_link);

        let_go(copy);
        list_remove(&copy->source_link);
        copy->source = NULL;
        if (copy->is_flushing)
            continue;
        if (!copy->is_added)
            hand_over(copy);
        else if (copy->is_ready)
            copy_rest(copy);
    }
}

/* The porter has stopped: their jobs are nobody's any more. */
void residents_drop_copies(struct residents *all)
{
    LIST_EACH (&all->copies, at) {
        struct resident_copy *copy = CONTAINER_OF(at, struct resident_copy, link);

        event_timer_clear(&copy->timer);
        list_remove(&copy->link);
        list_remove(&copy->source_link);
        free(copy);
    }
}
