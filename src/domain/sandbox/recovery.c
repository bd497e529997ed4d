#include "domain/sandbox/recovery.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "domain/inside_call.h"
#include "domain/sandbox/expiry.h"
#include "domain/sandbox/new_disks.h"
#include "domain/sandbox/sandbox_hooks.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandbox_wish.h"

#define NS_PER_MS UINT64_C(1000000)

#define KEEP      RECOVERY_KEEP
#define RUN       RECOVERY_RUN
#define FREEZE    RECOVERY_FREEZE
#define STOP      RECOVERY_STOP
#define HIBERNATE RECOVERY_HIBERNATE
#define LOSE      RECOVERY_LOSE
#define BREAK     RECOVERY_BREAK

/* By what the provider says. One in stock is nobody's, and never shown. */
#define FOUND(running, frozen, stopping, stopped, broken, absent)                                  \
    {                                                                                              \
        [RUN_STATE_POOLED] = BREAK, [RUN_STATE_RUNNING] = (running),                               \
        [RUN_STATE_FROZEN] = (frozen), [RUN_STATE_STOPPING] = (stopping),                          \
        [RUN_STATE_STOPPED] = (stopped), [RUN_STATE_BROKEN] = (broken),                            \
        [RUN_STATE_ABSENT] = (absent),                                                             \
    }

/* Rows hold only statuses that last; one that is none of these was written by somebody else, and is
 * looked at as if it said running. */
static const enum recovery_action actions[SANDBOX_STATUS_COUNT][RUN_STATE_COUNT] = {
    [SANDBOX_CREATING] = FOUND(RUN, FREEZE, STOP, STOP, BREAK, LOSE),
    [SANDBOX_STARTING] = FOUND(RUN, FREEZE, STOP, STOP, BREAK, LOSE),
    [SANDBOX_RUNNING] = FOUND(KEEP, FREEZE, STOP, STOP, BREAK, LOSE),
    [SANDBOX_FROZEN] = FOUND(RUN, KEEP, HIBERNATE, HIBERNATE, BREAK, LOSE),
    [SANDBOX_HIBERNATED] = FOUND(RUN, FREEZE, KEEP, KEEP, BREAK, LOSE),
    [SANDBOX_WAKING] = FOUND(RUN, FREEZE, HIBERNATE, HIBERNATE, BREAK, LOSE),
    [SANDBOX_STOPPING] = FOUND(RUN, FREEZE, STOP, STOP, BREAK, LOSE),
    [SANDBOX_STOPPED] = FOUND(RUN, FREEZE, KEEP, KEEP, BREAK, LOSE),
    [SANDBOX_ERROR] = FOUND(KEEP, KEEP, KEEP, KEEP, KEEP, KEEP),
    [SANDBOX_DESTROYED] = FOUND(RUN, FREEZE, STOP, STOP, BREAK, LOSE),
    [SANDBOX_UNKNOWN] = FOUND(RUN, FREEZE, STOP, STOP, BREAK, LOSE),
};

enum recovery_action recovery_action(enum sandbox_status row, enum run_state state)
{
    return actions[row][state];
}

/* --- what is done ---------------------------------------------------------------------------- */

static void ignore(void *context, const struct error *failure, const struct inside_answer *answer)
{
    (void) context, (void) failure, (void) answer;
}

/* Of one that runs. Its agent may have been told to hold still, for a sleep that the daemon did not
 * live to see, and has its sessions: those in its row were saved for that sleep. When it was woken
 * they may not have come back yet; the agent leaves those alone that are there. */
static void go_on(struct domain *domain, struct sandbox *sandbox, bool is_woken)
{
    AUTO(free) char *sessions = TAKE_PTR(sandbox->inside);

    if (sessions && is_woken)
        inside_ask(domain, &sandbox->id, INSIDE_RESTORE, sessions, ignore, NULL);
    inside_ask(domain, &sandbox->id, INSIDE_RESUME, NULL, ignore, NULL);
}

static void do_keep(struct domain *domain, struct sandbox *sandbox)
{
    bool is_row_wrong = sandbox->inside != NULL;

    if (sandbox->status != SANDBOX_RUNNING)
        return;
    go_on(domain, sandbox, false);
    if (is_row_wrong)
        sandbox_set_unkept(domain, sandbox, NULL);
}

static void do_run(struct domain *domain, struct sandbox *sandbox)
{
    bool is_woken = sandbox->status != SANDBOX_FROZEN;

    sandbox_set_reason(sandbox, "%s", "");
    sandbox->is_ended_by_request = false;
    if (sandbox->started_ms == 0)
        sandbox->started_ms = domain_wall_ms(domain);
    sandbox_set_status(domain, sandbox, SANDBOX_RUNNING);
    sandbox_set_unkept(domain, sandbox, "sandbox.woken");
    go_on(domain, sandbox, is_woken);
}

static void do_freeze(struct domain *domain, struct sandbox *sandbox)
{
    sandbox_set_reason(sandbox, "found asleep after a restart");
    sandbox->is_ended_by_request = false;
    sandbox_set_status(domain, sandbox, SANDBOX_FROZEN);
    sandbox_set_unkept(domain, sandbox, "sandbox.hibernated");
}

/* How it ended may have been told already; when it is told later, the reason follows. */
static void do_stop(struct domain *domain, struct sandbox *sandbox)
{
    sandbox->is_unexplained = !sandbox->has_ended;
    if (!sandbox->has_ended)
        sandbox->ending = (struct ending){.kind = ENDED_UNKNOWN};
    sandbox_set_unkept(domain, sandbox, sandbox_set_ended(domain, sandbox));
}

static void do_hibernate(struct domain *domain, struct sandbox *sandbox)
{
    sandbox_set_reason(sandbox, "its processes ended while it slept, its disk is kept");
    sandbox->started_ms = 0;
    sandbox_set_status(domain, sandbox, SANDBOX_HIBERNATED);
    sandbox_set_unkept(domain, sandbox, "sandbox.hibernated");
}

static void fail(struct domain *domain, struct sandbox *sandbox, const char *why)
{
    sandbox_set_reason(sandbox, "%s", why);
    sandbox->started_ms = 0;
    sandbox_set_status(domain, sandbox, SANDBOX_ERROR);
    sandbox_set_unkept(domain, sandbox, "sandbox.error");
}

/* It is asleep or stopped until its next start gives it another disk. */
static void lose_disk(struct domain *domain, struct sandbox *sandbox, enum sandbox_status status,
                      const char *event)
{
    sandbox->is_disk_lost = true;
    sandbox->started_ms = 0;
    if (sandbox->status != SANDBOX_STOPPED)
        sandbox_set_status(domain, sandbox, status);
    sandbox_set_unkept(domain, sandbox, event);
}

static void do_lose(struct domain *domain, struct sandbox *sandbox)
{
    if (sandbox_hook_is_mirrored(domain, sandbox)) {
        sandbox_set_reason(sandbox, "its disk was not there any more after a restart; its "
                                    "workspace comes back as it was synced last");
        lose_disk(domain, sandbox, SANDBOX_HIBERNATED, "sandbox.disk_lost");
    } else if (sandbox->is_disk_new) {
        sandbox_set_reason(sandbox, "the machine went down before its new disk was written; it "
                                    "begins again with an empty one");
        lose_disk(domain, sandbox,
                  sandbox_status_is_asleep(sandbox->status) ? SANDBOX_HIBERNATED : SANDBOX_STOPPED,
                  "sandbox.disk_renewed");
    } else {
        fail(domain, sandbox, "after a restart it was not there any more, nor was its disk");
    }
}

static void do_break(struct domain *domain, struct sandbox *sandbox)
{
    fail(domain, sandbox, "after a restart parts of it were missing");
}

static const struct {
    const char *text; /* for the log */
    void (*run)(struct domain *domain, struct sandbox *sandbox);
} deeds[RECOVERY_ACTION_COUNT] = {
    [RECOVERY_KEEP] = {"kept as it is", do_keep},
    [RECOVERY_RUN] = {"it runs on", do_run},
    [RECOVERY_FREEZE] = {"it sleeps on", do_freeze},
    [RECOVERY_STOP] = {"set to stopped", do_stop},
    [RECOVERY_HIBERNATE] = {"it sleeps on, without its memory", do_hibernate},
    [RECOVERY_LOSE] = {"it is gone: set to error, unless its workspace was synced or it was new",
                       do_lose},
    [RECOVERY_BREAK] = {"set to error: it is broken", do_break},
};

/* --- all of them ----------------------------------------------------------------------------- */

/* Durations go on from the wall clock's times: there is no better for before the restart. */
static uint64_t monotonic_of(const struct domain *domain, int64_t wall_ms)
{
    int64_t ago_ms = domain_wall_ms(domain) - wall_ms;
    uint64_t now = domain_now_ns(domain);
    uint64_t ago_ns = ago_ms > 0 ? (uint64_t) ago_ms * NS_PER_MS : 0;

    return ago_ns < now ? now - ago_ns : 0;
}

/* A disk that is stored is never taken from here: it may be half fetched, or half deleted. What
 * runs is younger than what is stored, which is then of no use. */
static enum recovery_action judge(struct sandbox *sandbox, enum run_state state)
{
    if (sandbox->is_rebuilding) { /* what is there is half of it */
        sandbox->is_disk_lost = true;
        return RECOVERY_KEEP;
    }
    if (!sandbox->stored) {
        enum recovery_action action = recovery_action(sandbox->status, state);

        /* Its sessions were saved: it was being put to sleep. */
        return action == RECOVERY_STOP && sandbox->inside ? RECOVERY_HIBERNATE : action;
    }
    if (state == RUN_STATE_RUNNING || state == RUN_STATE_FROZEN) {
        free(sandbox->stored);
        sandbox->stored = NULL;
        return recovery_action(sandbox->status, state);
    }
    sandbox->is_disk_left = state != RUN_STATE_ABSENT;
    return RECOVERY_KEEP;
}

static void recover(struct domain *domain, struct sandbox *sandbox, enum run_state state)
{
    enum sandbox_status row = sandbox->status;
    enum recovery_action action = judge(sandbox, state);

    sandbox->idle_since_ns = domain_now_ns(domain);
    sandbox->asleep_ns = monotonic_of(domain, sandbox->updated_ms);
    sandbox->started_ns =
        monotonic_of(domain, sandbox->started_ms ? sandbox->started_ms : domain_wall_ms(domain));
    deeds[action].run(domain, sandbox);
    sandbox->has_ended = false;
    if (sandbox->is_disk_new && state != RUN_STATE_ABSENT)
        new_disk_watch(domain, sandbox);
    LOG_INFO(domain->options.log, "sandbox recovered", log_text("sandbox", sandbox->id.text),
             log_text("row", sandbox_status_text(row)), log_text("found", run_state_text(state)),
             log_text("done", deeds[action].text));
}

static void take_down(struct domain *domain, const struct provider_sandbox *stranger)
{
    LOG_INFO(domain->options.log, "sandbox recovered", log_text("sandbox", stranger->id.text),
             log_text("row", "nothing"), log_text("found", run_state_text(stranger->state)),
             log_text("done", "taken down: it was never acknowledged, or destroyed"));
    sandbox_orphan(domain, &stranger->id, NULL, NULL);
}

static int compare(const void *id, const void *sandbox)
{
    return strcmp(id, ((const struct provider_sandbox *) sandbox)->id.text);
}

static void watch_all(struct domain *domain)
{
    LIST_EACH (&domain->sandboxes->all, at)
        expiry_watch(domain, CONTAINER_OF(at, struct sandbox, link));
    sandbox_keep_unkept(domain);
}

void recovery_run(struct domain *domain, const struct provider_sandbox *sandboxes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!sandbox_set_by_id(domain, sandboxes[i].id.text))
            take_down(domain, &sandboxes[i]);
    LIST_EACH (&domain->sandboxes->all, at) {
        struct sandbox *sandbox = CONTAINER_OF(at, struct sandbox, link);
        const struct provider_sandbox *found =
            count ? bsearch(sandbox->id.text, sandboxes, count, sizeof(*sandboxes), compare) : NULL;

        recover(domain, sandbox, found ? found->state : RUN_STATE_ABSENT);
    }
    watch_all(domain);
}

void recovery_run_without(struct domain *domain)
{
    LIST_EACH (&domain->sandboxes->all, at) {
        struct sandbox *sandbox = CONTAINER_OF(at, struct sandbox, link);

        LOG_INFO(domain->options.log, "sandbox recovered", log_text("sandbox", sandbox->id.text),
                 log_text("row", sandbox_status_text(sandbox->status)),
                 log_text("done", "nothing: there is nowhere to run it"));
        sandbox_set_status(domain, sandbox, SANDBOX_UNKNOWN);
    }
}
