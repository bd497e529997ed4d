/* Rollback: the disk becomes what it was.
 *
 *     running:  sessions ──► quiesce ──► stop ─┐
 *     frozen:   stop ──────────────────────────┼─► the present is saved, with its row
 *     others:   ───────────────────────────────┘            │
 *                                                           ▼
 *     running again, or asleep, or stopped  ◄── start ◄── provider_roll_back
 *
 * The sandbox is stopped before it is saved: what it wrote to the last moment is in the snapshot.
 * When a step fails the disk is what it was, and a sandbox that ran is started again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/crash_point.h"
#include "base/memory.h"
#include "domain/inside_call.h"
#include "domain/sandbox/expiry.h"
#include "domain/sandbox/sandbox_hooks.h"
#include "domain/sandbox/sandbox_record.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/snapshot/snapshot_internal.h"
#include "domain/snapshot/snapshot_set.h"

struct rollback {
    struct domain *domain;
    struct sandbox_wish *wish;
    struct snapshot *snapshot; /* pinned */
    struct snapshot *saved;    /* a reference; NULL: not yet */
    struct snapshot_keeping keeping;
    struct snapshot_waiter waiter; /* for the snapshot to be here */
    char *inside;                  /* owned: the sessions of now */
    bool has_rolled;
    bool has_failed;
    struct error failure;
    rollback_done *done;
    void *context;
};

/* --- the end --------------------------------------------------------------------------------- */

static void on_over(void *context, const struct error *failure, struct sandbox *sandbox)
{
    struct rollback *rollback = context;

    rollback->done(rollback->context, failure, sandbox, failure ? NULL : rollback->saved);
    snapshot_unpin(rollback->domain, rollback->snapshot);
    snapshot_unref(rollback->saved);
    free(rollback->inside);
    free(rollback);
}

static const char *event_of(const struct rollback *rollback)
{
    if (rollback->has_rolled)
        return "sandbox.rolled_back";
    return rollback->wish->before == SANDBOX_RUNNING ? "sandbox.started" : NULL;
}

/* It is in a settled status again; a failure of before is told, whatever the row says. */
static void settle(struct rollback *rollback, enum sandbox_status status, const char *reason)
{
    struct domain *domain = rollback->domain;
    struct sandbox_wish *wish = rollback->wish;
    struct sandbox *sandbox = wish->sandbox;

    sandbox_set_reason(sandbox, "%s", reason);
    sandbox_set_status(domain, sandbox, status);
    expiry_watch(domain, sandbox);
    if (rollback->has_failed) {
        domain->counters.failed++;
        sandbox_keep(domain, sandbox, event_of(rollback));
        wish_end(wish, &rollback->failure);
    } else {
        domain->counters.rolled_back++;
        wish_keep(wish, event_of(rollback));
    }
    sandbox_settle(domain, sandbox);
}

/* --- back to what it was doing ---------------------------------------------------------------- */

static void set_running(void *context)
{
    struct rollback *rollback = context;
    struct sandbox *sandbox = rollback->wish->sandbox;

    free(sandbox->inside);
    sandbox->inside = NULL;
    sandbox->idle_since_ns = domain_now_ns(rollback->domain);
    sandbox->active_ms = domain_wall_ms(rollback->domain);
    settle(rollback, SANDBOX_RUNNING, "");
}

/* Its processes are new ones: what was mounted for the last is not there for them. */
static void mount_and_run(struct rollback *rollback)
{
    sandbox_hook_running(rollback->domain, rollback->wish->sandbox, true, set_running, rollback);
}

static void on_restored(void *context, const struct error *failure,
                        const struct inside_answer *answer)
{
    struct rollback *rollback = context;

    (void) answer;
    if (failure)
        LOG_WARNING(rollback->domain->options.log, "sessions did not come back with a rollback",
                    log_text("sandbox", rollback->wish->sandbox->id.text),
                    log_text("error", failure->message));
    mount_and_run(rollback);
}

static void fail(struct rollback *rollback, const struct error *failure)
{
    if (rollback->has_failed) /* the first counts */
        return;
    rollback->has_failed = true;
    rollback->failure = *failure;
}

static void on_started(void *context, const struct error *failure,
                       const struct provider_sandbox *started)
{
    struct rollback *rollback = context;
    struct domain *domain = rollback->domain;
    struct sandbox *sandbox = rollback->wish->sandbox;

    if (failure) {
        fail(rollback, failure);
        settle(rollback, SANDBOX_STOPPED, "it could not be started again after a rollback");
        return;
    }
    CRASH_POINT("rollback.started");
    sandbox->unenforced = started->unenforced;
    sandbox->started_ms = domain_wall_ms(domain);
    sandbox->started_ns = domain_now_ns(domain);
    sandbox->is_environment_late = false;
    if (sandbox->inside)
        inside_ask(domain, &sandbox->id, INSIDE_RESTORE, sandbox->inside, on_restored, rollback);
    else
        mount_and_run(rollback);
}

static void start(struct rollback *rollback)
{
    AUTO(sandbox_plan) struct sandbox_plan plan = {.binds = NULL};

    sandbox_plan_init(&plan, rollback->wish->sandbox);
    provider_start(rollback->domain->options.provider, &plan.spec, on_started, rollback);
}

/* Sessions of the disk that it has now. */
static void choose_sessions(struct rollback *rollback)
{
    struct sandbox *sandbox = rollback->wish->sandbox;
    const char *then = rollback->snapshot->inside;

    free(sandbox->inside);
    if (rollback->has_rolled)
        sandbox->inside = then ? mem_copy_text(then) : NULL;
    else
        sandbox->inside = TAKE_PTR(rollback->inside);
}

static void go_on(struct rollback *rollback)
{
    struct domain *domain = rollback->domain;
    enum sandbox_status before = rollback->wish->before;

    choose_sessions(rollback);
    if (before == SANDBOX_RUNNING && domain->stage == DOMAIN_OPEN)
        start(rollback);
    else if (before == SANDBOX_FROZEN || before == SANDBOX_HIBERNATED)
        settle(rollback, SANDBOX_HIBERNATED,
               rollback->has_rolled ? "rolled back; it sleeps on, without its memory"
                                    : "its processes were ended, its disk is kept");
    else
        settle(rollback, SANDBOX_STOPPED, rollback->has_rolled ? "rolled back" : "stopped");
}

/* --- the disk -------------------------------------------------------------------------------- */

static void on_rolled(void *context, const struct error *failure)
{
    struct rollback *rollback = context;

    if (failure) {
        fail(rollback, failure);
    } else {
        CRASH_POINT("rollback.rolled");
        rollback->has_rolled = true;
        snapshot_base_set(rollback->domain, rollback->wish->sandbox, &rollback->snapshot->id);
    }
    go_on(rollback);
}

static void on_saved(struct snapshot_keeping *keeping, const struct error *failure)
{
    struct rollback *rollback = CONTAINER_OF(keeping, struct rollback, keeping);
    struct domain *domain = rollback->domain;
    const struct sandbox *sandbox = rollback->wish->sandbox;
    struct error err = ERROR_INIT;

    if (failure) {
        fail(rollback, failure);
        go_on(rollback);
        return;
    }
    CRASH_POINT("rollback.saved");
    rollback->saved = snapshot_ref(keeping->snapshot);
    if (!domain_is_open(domain, &err)) {
        fail(rollback, &err);
        go_on(rollback);
        return;
    }
    provider_roll_back(domain->options.provider, &sandbox->id, &rollback->snapshot->id,
                       sandbox->spec.limits.disk_bytes, on_rolled, rollback);
}

/* --- the present ----------------------------------------------------------------------------- */

static void on_copied(void *context, const struct error *failure, const struct snapshot_made *how)
{
    struct rollback *rollback = context;

    (void) how;
    if (failure) {
        snapshot_set_remove(rollback->domain, TAKE_PTR(rollback->keeping.snapshot));
        fail(rollback, failure);
        (void) error_wrap(&rollback->failure, "the present could not be saved");
        go_on(rollback);
        return;
    }
    snapshot_keep(&rollback->keeping);
}

static struct snapshot *add_snapshot(struct rollback *rollback)
{
    struct domain *domain = rollback->domain;
    const struct sandbox *sandbox = rollback->wish->sandbox;
    AUTO(text) struct text spec = TEXT_INIT(SANDBOX_SPEC_MAX);
    struct snapshot like = {.id = id_new(),
                            .owner = sandbox->owner,
                            .sandbox = sandbox->id,
                            .inside = rollback->inside,
                            .reason = SNAPSHOT_ROLLBACK,
                            .created_ms = domain_wall_ms(domain),
                            .expires_ms = domain_wall_ms(domain) + SNAPSHOT_ROLLBACK_KEPT_MS};

    sandbox_spec_write(&sandbox->spec, &spec);
    like.spec = (char *) text_string(&spec);
    (void) snprintf(like.node, sizeof(like.node), "%s", domain->options.node);
    return snapshot_set_add(domain, &like);
}

static void save(struct rollback *rollback)
{
    struct domain *domain = rollback->domain;
    struct error err = ERROR_INIT;

    if (!domain_is_open(domain, &err)) {
        fail(rollback, &err);
        go_on(rollback);
        return;
    }
    rollback->keeping = (struct snapshot_keeping){.domain = domain,
                                                  .caller = rollback->wish->caller,
                                                  .snapshot = add_snapshot(rollback),
                                                  .done = on_saved};
    provider_snapshot(domain->options.provider, &rollback->wish->sandbox->id,
                      &rollback->keeping.snapshot->id, false, on_copied, rollback);
}

/* --- the stop -------------------------------------------------------------------------------- */

static void on_stopped(void *context, const struct error *failure)
{
    struct rollback *rollback = context;
    struct sandbox *sandbox = rollback->wish->sandbox;

    if (failure) { /* nothing has happened to it yet */
        wish_provider_failed(rollback->wish, failure);
        return;
    }
    CRASH_POINT("rollback.stopped");
    inside_forget(rollback->domain, &sandbox->id);
    sandbox->started_ms = 0;
    sandbox->has_ended = false;
    save(rollback);
}

static void on_unmounted(void *context)
{
    struct rollback *rollback = context;

    if (!wish_is_cut_short(rollback->wish))
        provider_stop(rollback->domain->options.provider, &rollback->wish->sandbox->id, on_stopped,
                      rollback);
}

static void stop(struct rollback *rollback)
{
    sandbox_hook_ending(rollback->domain, rollback->wish->sandbox, on_unmounted, rollback);
}

static void on_quiet(void *context, const struct error *failure, const struct inside_answer *answer)
{
    (void) failure, (void) answer; /* it was given its chance */
    stop(context);
}

static void on_sessions(void *context, const struct error *failure,
                        const struct inside_answer *answer)
{
    struct rollback *rollback = context;

    if (!failure && answer->text && strlen(answer->text) <= SANDBOX_INSIDE_MAX)
        rollback->inside = mem_copy_text(answer->text);
    inside_ask(rollback->domain, &rollback->wish->sandbox->id, INSIDE_QUIESCE, NULL, on_quiet,
               rollback);
}

static void act(struct sandbox_wish *wish)
{
    struct rollback *rollback = wish->context;
    struct sandbox *sandbox = wish->sandbox;
    struct error err = ERROR_INIT;

    if (snapshot_check_ready(rollback->snapshot, &err) < 0) { /* it may have waited long */
        wish_end(wish, &err);
        return;
    }
    sandbox_set_status(wish->domain, sandbox, SANDBOX_STOPPING);
    if (wish->before == SANDBOX_RUNNING) {
        inside_ask(wish->domain, &sandbox->id, INSIDE_SAVE, NULL, on_sessions, rollback);
    } else if (wish->before == SANDBOX_FROZEN) {
        stop(rollback);
    } else {
        rollback->inside = TAKE_PTR(sandbox->inside);
        save(rollback);
    }
}

/* --- the beginning --------------------------------------------------------------------------- */

static bool is_same_text(const char *a, const char *b)
{
    return (!a && !b) || (a && b && strcmp(a, b) == 0);
}

static int check(const struct domain *domain, const struct caller *caller,
                 const struct sandbox *sandbox, const struct snapshot *snapshot, struct error *err)
{
    AUTO(sandbox_spec) struct sandbox_spec then = {.name = NULL};

    if (!domain_is_open(domain, err))
        return -1;
    if (!caller_may_write(caller))
        return error_set(err, ERR_FORBIDDEN, 0, "this key may not change sandboxes");
    if (!id_equal(&snapshot->owner, &sandbox->owner))
        return error_set(err, ERR_INVALID, 0, "the snapshot belongs to another owner");
    if (snapshot_check_provider(domain, err) < 0 || snapshot_check_ready(snapshot, err) < 0 ||
        sandbox_spec_read(snapshot->spec, strlen(snapshot->spec), &then, err) < 0)
        return -1;
    if (!is_same_text(then.image, sandbox->spec.image))
        return error_set(err, ERR_INVALID, 0,
                         "the snapshot is of the image '%s', and the sandbox of '%s'; fork the "
                         "snapshot instead",
                         then.image ? then.image : "default",
                         sandbox->spec.image ? sandbox->spec.image : "default");
    return 0;
}

/* Until then the sandbox is as free as ever. */
static void on_here(struct snapshot_waiter *waiter, const struct error *failure)
{
    struct rollback *rollback = CONTAINER_OF(waiter, struct rollback, waiter);

    if (failure)
        wish_end(rollback->wish, failure);
    else
        wish_begin(rollback->wish);
}

void sandbox_roll_back(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                       struct snapshot *snapshot, rollback_done *done, void *context)
{
    struct rollback *rollback = mem_alloc(sizeof(*rollback));
    struct error err = ERROR_INIT;

    snapshot_pin(snapshot);
    *rollback = (struct rollback){.domain = domain,
                                  .snapshot = snapshot,
                                  .waiter.done = on_here,
                                  .done = done,
                                  .context = context};
    rollback->wish =
        wish_make(domain, caller, sandbox, SANDBOX_ACTION_ROLL_BACK, act, on_over, rollback);
    if (check(domain, caller, sandbox, snapshot, &err) < 0)
        wish_end(rollback->wish, &err);
    else if (snapshot_is_here(domain, snapshot))
        wish_begin(rollback->wish);
    else
        snapshot_fetch(domain, snapshot, &rollback->waiter);
}
