/* The end of a sandbox: killing it, seeing how it ended, taking it down, telling of it. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "base/auto.h"
#include "base/memory.h"
#include "launcher/cgroup/cgroup_freeze.h"
#include "launcher/cgroup/cgroup_stats.h"
#include "launcher/residents/residents.h"
#include "sys/process/sys_namespace.h"
#include "sys/process/sys_process.h"

/* How long an adopted sandbox may be a zombie of somebody else's before its end counts as unknown.
 */
#define REAP_STEP_MS 20
#define REAP_TURNS   150
#define AGAIN_MS     5000

struct killer {
    struct list link;
    uint64_t request;
};

/* --- how it ended ---------------------------------------------------------------------------- */

static struct ending ending_of(const struct resident *resident, const struct sys_exit *ended)
{
    static const enum ending_kind kinds[] = {
        [SYS_EXIT_UNKNOWN] = ENDED_UNKNOWN,
        [SYS_EXIT_STATUS] = ENDED_STATUS,
        [SYS_EXIT_SIGNAL] = ENDED_SIGNAL,
    };
    struct ending ending = {.kind = kinds[ended->kind], .value = (uint8_t) ended->value};
    uint64_t agent = 0, work = 0;

    /* Out of memory looks like any SIGKILL; only its group counts the victims. */
    if (ended->kind == SYS_EXIT_SIGNAL && ended->value == SIGKILL &&
        resident->state != RESIDENT_ENDING &&
        cgroup_oom_kills(&resident->sandbox.cgroup, &agent, &work, NULL) == 0 && agent > 0)
        ending = (struct ending){.kind = ENDED_OOM};
    return ending;
}

bool resident_keeps_disk(const struct resident *resident)
{
    const struct record *record = &resident->record;

    return !record->fresh || (record->ready && !record->pooled);
}

static void settle(struct resident *resident, const struct sys_exit *ended)
{
    struct ending ending = ending_of(resident, ended);

    /* Its death may be seen before the reason that it gave for it. */
    if (resident->state == RESIDENT_STARTING) {
        (void) sandbox_ready(&resident->sandbox, &resident->start_failure);
        resident->was_told = true;
    }
    if (resident->state < RESIDENT_ENDING)
        resident->keep_disk = resident_keeps_disk(resident);
    resident_ended(resident, &ending);
}

static void look_again(struct event_timer *timer)
{
    struct resident *resident = CONTAINER_OF(timer, struct resident, timer);
    struct sys_exit ended = {.kind = SYS_EXIT_UNKNOWN};
    int r = sys_process_exit_of_other(resident->sandbox.pidfd, &ended);

    if (r == -EAGAIN && ++resident->timer_turns < REAP_TURNS)
        event_timer_set(resident->all->loop, timer, REAP_STEP_MS);
    else
        settle(resident, &ended);
}

static void has_exited(struct event_source *source, uint32_t events)
{
    struct resident *resident = CONTAINER_OF(source, struct resident, exit);
    struct sys_exit ended = {.kind = SYS_EXIT_UNKNOWN};

    (void) events;
    TRACE("launcher.sandbox.exited");
    event_loop_remove(resident->all->loop, source);
    if (resident->is_child) {
        (void) sys_process_wait(resident->sandbox.pidfd, 0, &ended);
        settle(resident, &ended);
        return;
    }
    resident->timer_turns = 0;
    resident->timer.fire = look_again;
    look_again(&resident->timer);
}

int resident_watch_exit(struct resident *resident, struct error *err)
{
    int r;

    resident->exit = (struct event_source){
        .fd = resident->sandbox.pidfd, .events = EPOLLIN, .ready = has_exited};
    resident->exit.trace.sandbox = resident->sandbox.id;
    r = event_loop_add(resident->all->loop, &resident->exit);
    return r < 0 ? error_set(err, ERR_INTERNAL, r, "watch sandbox %s", resident->sandbox.id.text)
                 : 0;
}

/* --- taking down ----------------------------------------------------------------------------- */

void resident_answer_killers(struct resident *resident, bool tell, const struct error *failure)
{
    LIST_EACH (&resident->killers, at) {
        struct killer *killer = CONTAINER_OF(at, struct killer, link);
        uint64_t request = killer->request;

        list_remove(at);
        free(killer);
        if (tell)
            resident->all->hooks.done(resident->all->hooks.context, request, failure);
    }
}

static void answer_failed_start(struct resident *resident)
{
    struct residents *all = resident->all;
    uint64_t request = resident->start_request;

    if (!request)
        return;
    resident->start_request = 0;
    if (resident->start_failure.code == ERR_NONE)
        (void) error_set(&resident->start_failure, ERR_CANCELLED, 0,
                         "sandbox %s ended while it was started", resident->sandbox.id.text);
    all->hooks.started(all->hooks.context, request, resident, &resident->start_failure);
}

static void drop_when_over(struct resident *resident)
{
    if (resident->is_down && resident->was_told)
        resident_drop(resident);
}

static void take_down_again(struct event_timer *timer)
{
    struct resident *resident = CONTAINER_OF(timer, struct resident, timer);

    janitor_add(resident->all->janitor, &resident->job);
}

/* Nothing is left of it but, perhaps, its disk. */
static void finish(struct resident *resident)
{
    struct error err = ERROR_INIT;

    if (resident->delete_disk && resident->keep_disk) {
        resident->keep_disk = false;
        if (disk_pool_delete(resident->all->site->host.pool, &resident->sandbox.id, &err) < 0)
            LOG_WARNING(resident->all->log, "a disk cannot be deleted",
                        log_text("sandbox", resident->sandbox.id.text),
                        log_text("reason", err.message));
    }
    resident->is_down = true;
    resident_answer_killers(resident, true, err.code == ERR_NONE ? NULL : &err);
    answer_failed_start(resident);
    drop_when_over(resident);
}

/* The janitor itself waits some seconds for what is only slow. */
static void note_failure(struct resident *resident)
{
    if (resident->teardown_failed && !resident->teardown_gave_up) {
        resident->teardown_gave_up = true;
        resident->all->given_up++;
    }
    resident->teardown_failed = true;
}

static void taken_down(struct janitor_job *job, const struct error *failure)
{
    struct resident *resident = CONTAINER_OF(job, struct resident, job);
    struct residents *all = resident->all;

    if (failure) {
        if (!resident->teardown_gave_up) /* else it was said twice, and nothing else will be */
            LOG_WARNING(all->log, "a sandbox cannot be taken down yet",
                        log_text("sandbox", resident->sandbox.id.text),
                        log_text("reason", failure->message));
        note_failure(resident);
        resident_answer_killers(resident, true, failure);
        answer_failed_start(resident); /* it may take for ever: who asked has waited long enough */
        resident->timer.fire = take_down_again;
        event_timer_set(all->loop, &resident->timer, AGAIN_MS);
    } else {
        finish(resident);
    }
    all->hooks.exited(all->hooks.context);
    if (failure && all->given_up == all->count)
        all->hooks.empty(all->hooks.context);
}

/* One that was under way, whose timer stops now. */
static void answer_freeze(struct resident *resident)
{
    struct error err = ERROR_INIT;

    (void) error_set(&err, ERR_GONE, 0, "sandbox %s ended", resident->sandbox.id.text);
    resident_answer_freeze(resident, &err);
}

void resident_ended(struct resident *resident, const struct ending *ending)
{
    struct residents *all = resident->all;

    resident->state = RESIDENT_LEAVING;
    resident->record.has_ended = true;
    resident->record.ending = *ending;
    resident->record.keep_disk = resident->keep_disk;
    resident->record.was_told = resident->was_told;
    (void) resident_write_record(resident, NULL); /* without it the end is unknown, if we die now */
    answer_freeze(resident);
    resident_copy_source_ended(resident);
    resident_drop_mounts(resident);
    event_timer_clear(&resident->timer);
    event_loop_remove(all->loop, &resident->exit);
    event_loop_remove(all->loop, &resident->status);
    sandbox_forget(&resident->sandbox);
    /* No process is left. Whoever wants to start it again has to wait for the janitor, though. */
    if (!resident->keep_disk)
        resident_answer_killers(resident, true, NULL);
    resident->job = (struct janitor_job){
        .task = {.id = resident->sandbox.id,
                 .keep_disk = resident->keep_disk,
                 .has_network = resident->record.nat},
        .hold = {.mounts = TAKE_FD(resident->hold.mounts),
                 .network = TAKE_FD(resident->hold.network)},
        .done = taken_down,
    };
    janitor_add(all->janitor, &resident->job);
}

/* --- telling --------------------------------------------------------------------------------- */

/* Only when it is down, or will not be for long: who hears of it may start it again at once. */
struct resident *residents_next_exit(struct residents *all)
{
    for (size_t i = 0; i < all->count; i++) {
        struct resident *resident = all->sorted[i];

        if (resident->state == RESIDENT_LEAVING && !resident->was_told &&
            (resident->is_down || resident->teardown_failed))
            return resident;
    }
    return NULL;
}

void resident_told(struct resident *resident)
{
    resident->was_told = true;
    resident->record.was_told = true;
    if (!resident->is_down)
        (void) resident_write_record(resident, NULL);
    drop_when_over(resident);
}

/* --- killing --------------------------------------------------------------------------------- */

/* For the janitor, which lets go of many at once. A network that has a link goes as soon as it can:
 * nobody may be reached in it any more. Should the pid be another's by now, this holds somebody
 * else's namespaces for a moment. */
static void hold_namespaces(struct resident *resident)
{
    struct janitor_hold *hold = &resident->hold;

    if (hold->mounts < 0)
        hold->mounts = sys_namespace_open(resident->sandbox.pid, "mnt");
    if (hold->mounts >= 0 && hold->network < 0 && !resident->record.nat)
        hold->network = sys_namespace_open(resident->sandbox.pid, "net");
}

int resident_send_kill(struct resident *resident, struct error *err)
{
    int r;

    /* No process yet, and there will be none. */
    if (resident->state == RESIDENT_COPYING) {
        resident->state = RESIDENT_ENDING;
        return 0;
    }
    TRACE("launcher.sandbox.kill");
    resident->exit.trace.request = trace_context.request;
    hold_namespaces(resident);
    resident_abort_mounts(resident);
    r = sys_process_kill(resident->sandbox.pidfd, SIGKILL);

    if (r < 0 && r != -ESRCH)
        return error_set(err, ERR_INTERNAL, r, "kill sandbox %s", resident->sandbox.id.text);
    /* A frozen process of the older kind dies when it thaws, before its next instruction. */
    if (resident->is_frozen || resident->holds)
        (void) cgroup_thaw(&resident->sandbox.cgroup, CGROUP_WHOLE, NULL);
    resident->state = RESIDENT_ENDING;
    return 0;
}

void resident_abandon(struct resident *resident)
{
    resident->was_told = true;
    resident->keep_disk = resident->had_disk;
    if (resident_send_kill(resident, NULL) < 0)
        LOG_ERROR(resident->all->log, "a sandbox cannot be killed",
                  log_text("sandbox", resident->sandbox.id.text));
}

/* One without processes: only its disk can be meant. */
static int kill_stopped(struct residents *all, const struct id *id, enum wire_kill_scope scope,
                        uint64_t request, struct error *err)
{
    if (residents_find_disk(all, id, err) < 0)
        return -1;
    if (scope == WIRE_KILL_EVERYTHING) {
        if (disk_pool_delete(all->site->host.pool, id, err) < 0)
            return -1;
        residents_drop_stopped(all, id);
    }
    all->hooks.done(all->hooks.context, request, NULL);
    return 0;
}

/* Written down first: should we die before it does, the next launcher goes on from here. */
static int decide_end(struct resident *resident, bool keep_disk, struct error *err)
{
    resident->keep_disk = keep_disk;
    resident->record.was_killed = true;
    resident->record.keep_disk = keep_disk;
    if (resident_write_record(resident, err) < 0)
        return -1;
    return resident->state < RESIDENT_ENDING ? resident_send_kill(resident, err) : 0;
}

/* Whether a stop leaves anything: a start that breaks off leaves no disk of its own. */
static bool is_whole(const struct resident *resident)
{
    return resident->state > RESIDENT_STARTING || resident->had_disk;
}

int residents_kill(struct residents *all, const struct id *id, enum wire_kill_scope scope,
                   uint64_t request, struct error *err)
{
    struct resident *resident = residents_find(all, id, NULL);
    bool everything = scope == WIRE_KILL_EVERYTHING;
    struct killer *killer;

    if (!resident)
        return kill_stopped(all, id, scope, request, err);
    /* What was destroyed stays so: nobody gets its disk back by stopping it. */
    if (!resident->keep_disk && (resident->state == RESIDENT_LEAVING ||
                                 (resident->state == RESIDENT_ENDING && !everything)))
        return error_set(err, ERR_NOT_FOUND, 0, "there is no sandbox %s", id->text);
    if (resident->state == RESIDENT_LEAVING)
        resident->delete_disk |= everything;
    else if (decide_end(resident, !everything && is_whole(resident), err) < 0)
        return -1;
    killer = mem_alloc(sizeof(*killer));
    killer->request = request;
    list_append(&resident->killers, &killer->link);
    return 0;
}

/* It goes with its disk, and nobody needs to know. */
static void end_for_good(struct resident *resident)
{
    if (resident->state < RESIDENT_ENDING)
        resident_abandon(resident);
    if (resident->state < RESIDENT_LEAVING)
        resident->keep_disk = false;
    resident->delete_disk = true;
    resident->was_told = true;
    drop_when_over(resident);
}

void residents_kill_all(struct residents *all)
{
    /* From the end: one that was only waiting for its exit to be told goes at once. */
    for (size_t i = all->count; i > 0; i--)
        end_for_good(all->sorted[i - 1]);
    while (all->stopped_count) {
        struct id id = all->stopped[all->stopped_count - 1];

        (void) disk_pool_delete(all->site->host.pool, &id, NULL);
        residents_drop_stopped(all, &id);
    }
}

size_t residents_end_warm_pool(struct residents *all)
{
    size_t left = 0;

    for (size_t i = all->count; i > 0; i--) {
        if (all->sorted[i - 1]->record.pooled)
            end_for_good(all->sorted[i - 1]);
    }
    for (size_t i = 0; i < all->count; i++)
        left += all->sorted[i]->record.pooled && !all->sorted[i]->teardown_gave_up;
    return left;
}
