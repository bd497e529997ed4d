/* Copies of disks, and sandboxes that stand still for them. */
#include <errno.h>
#include <stdlib.h>

#include "base/auto.h"
#include "base/crash_point.h"
#include "launcher/cgroup_freeze.h"
#include "launcher/residents.h"

/* A process deep in the kernel can keep a freeze waiting. */
#define FREEZE_STEP_MS 1
#define FREEZE_TURNS   5000
/* Nobody stands still for longer than this for a copy that takes one step. */
#define HOLD_MAX_MS 10000

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
    copy->pause_us = (now_ns(copy->all) - copy->held_ns) / 1000;
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
                         "the copy took longer than %d ms, and the sandbox could not wait",
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

    copy->is_late = true;
    let_go(copy);
}

static void hand_over(struct resident_copy *copy)
{
    struct residents *all = copy->all;

    if (copy->is_held && disk_pool_shares(all->site->host.pool)) {
        copy->timer.fire = give_up_waiting;
        event_timer_set(all->loop, &copy->timer, HOLD_MAX_MS);
    }
    copy->is_added = true;
    copy->job.taken = taken;
    copy->job.done = copied;
    porter_add(all->porter, &copy->job);
}

static void look_at_freeze(struct event_timer *timer)
{
    struct resident_copy *copy = CONTAINER_OF(timer, struct resident_copy, timer);
    struct cgroup_freeze_state state = {0};
    struct error err = ERROR_INIT;

    if (cgroup_freeze_state(&copy->source->sandbox.cgroup, CGROUP_WHOLE, &state, &err) == 0 &&
        state.frozen) {
        CRASH_POINT("launcher.hold.frozen");
        hand_over(copy);
        return;
    }
    if (++copy->turns < FREEZE_TURNS) {
        event_timer_set(copy->all->loop, timer, FREEZE_STEP_MS);
        return;
    }
    (void) error_set(&err, ERR_UNAVAILABLE, ETIMEDOUT,
                     "a process of the sandbox is busy in the kernel and does not freeze");
    finish(copy, &err);
}

int resident_copy_begin(struct resident_copy *copy, struct resident *source, bool wants_hold,
                        struct error *err)
{
    struct residents *all = copy->all;
    bool holds =
        source && (wants_hold || !disk_pool_shares(all->site->host.pool)) && !source->is_frozen;

    if (porter_is_full(all->porter))
        return error_set(err, ERR_UNAVAILABLE, 0,
                         "%d copies of disks are under way; try again in a moment",
                         PORTER_QUEUE_MAX);
    if (holds && hold(source, err) < 0)
        return -1;
    copy->began_ns = copy->held_ns = now_ns(all);
    copy->is_held = holds;
    copy->source = source;
    list_init(&copy->source_link);
    list_append(&all->copies, &copy->link);
    if (source)
        list_append(&source->copies, &copy->source_link);
    copy->timer.fire = look_at_freeze;
    if (holds)
        look_at_freeze(&copy->timer);
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
        if (!copy->is_added)
            hand_over(copy);
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
