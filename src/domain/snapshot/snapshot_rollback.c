/* Rollback: the disk becomes what it was. The sandbox is stopped before the present is saved: what
 * it wrote to the last moment is in that snapshot. When a step fails the disk is what it was, and a
 * sandbox that ran is started again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/inside_call.h"
#include "domain/sandbox/expiry.h"
#include "domain/sandbox/sandbox_environment.h"
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
    bool has_processes;            /* still: nothing has happened to it yet */
    bool has_rolled;
    bool has_failed;
    struct error failure;
    rollback_done *done;
    void *context;
};

/* --- the end --------------------------------------------------------------------------------- */

static void on_rollback_over(void *context, const struct error *failure, struct sandbox *sandbox)
{
    struct rollback *rollback = context;

    rollback->done(rollback->context, failure, sandbox, failure ? NULL : rollback->saved);
    snapshot_unpin(rollback->domain, rollback->snapshot);
    snapshot_unref(rollback->saved);
    free(rollback->inside);
    free(rollback);
}

static const char *event_of_rollback(const struct rollback *rollback)
{
    if (rollback->has_rolled)
        return "sandbox.rolled_back";
    return rollback->wish->before == SANDBOX_RUNNING ? "sandbox.started" : NULL;
}

/* It is in a settled status again; a failure of before is told, whatever the row says. */
static void settle_rolled_back(struct rollback *rollback, enum sandbox_status status,
                               const char *reason)
{
    struct domain *domain = rollback->domain;
    struct sandbox_wish *wish = rollback->wish;
    struct sandbox *sandbox = wish->sandbox;

    sandbox_set_reason(sandbox, "%s", reason);
    sandbox_set_status(domain, sandbox, status);
    expiry_watch(domain, sandbox);
    if (rollback->has_failed) {
        domain->counters.failed++;
        sandbox_keep(domain, sandbox, event_of_rollback(rollback));
        wish_end(wish, &rollback->failure);
    } else {
        domain->counters.rolled_back++;
        wish_keep(wish, event_of_rollback(rollback));
    }
    sandbox_settle(domain, sandbox);
}

static void rollback_fail(struct rollback *rollback, const struct error *failure)
{
    if (rollback->has_failed) /* the first counts */
        return;
    rollback->has_failed = true;
    rollback->failure = *failure;
}

/* --- back to what it was doing ---------------------------------------------------------------- */

static void resume_end(void *context, const struct error *failure)
{
    struct sandbox_wish *wish = context;
    struct rollback *rollback = wish->context;

    if (failure) {
        rollback_fail(rollback, failure);
        settle_rolled_back(rollback, SANDBOX_STOPPED,
                           "it could not be started again after a rollback");
        return;
    }
    free(wish->sandbox->inside);
    wish->sandbox->inside = NULL;
    wish->sandbox->idle_since_ns = domain_now_ns(wish->domain);
    wish->sandbox->active_ms = domain_wall_ms(wish->domain);
    settle_rolled_back(rollback, SANDBOX_RUNNING, "");
}

static bool has_agent_news(const void *context)
{
    const struct sandbox_wish *wish = context;

    return sandbox_has_agent_news(wish->sandbox, wish->sandbox->inside);
}

/* Its processes are new ones: what was mounted for the last is not there for them. */
static const struct sequence_step resume_steps[] = {
    {"start it again", wish_start, .point = "rollback.started"},
    {"open its way out", wish_open_way, .when = wish_has_way},
    {"tell it its variables and sessions", wish_tell_agent_news, .when = has_agent_news,
     .also_closing = true},
    {"mount its buckets", wish_mount, .also_closing = true},
    {.text = NULL},
};

const struct sequence_table rollback_resume_sequence = {"rollback.resume", resume_steps,
                                                        resume_end};

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

static void roll_back_end(void *context, const struct error *failure)
{
    struct sandbox_wish *wish = context;
    struct rollback *rollback = wish->context;
    enum sandbox_status before = wish->before;

    if (failure && rollback->has_processes) { /* nothing has happened to it yet */
        wish_provider_failed(wish, failure);
        return;
    }
    if (failure)
        rollback_fail(rollback, failure);
    choose_sessions(rollback);
    if (before == SANDBOX_RUNNING && wish->domain->stage == DOMAIN_OPEN)
        sequence_begin(&wish->sequence, wish->domain, &rollback_resume_sequence, &wish->sandbox->id,
                       wish);
    else if (before == SANDBOX_FROZEN || before == SANDBOX_HIBERNATED)
        settle_rolled_back(rollback, SANDBOX_HIBERNATED,
                           rollback->has_rolled ? "rolled back; it sleeps on, without its memory"
                                                : "its processes were ended, its disk is kept");
    else
        settle_rolled_back(rollback, SANDBOX_STOPPED,
                           rollback->has_rolled ? "rolled back" : "stopped");
}

/* --- the stop -------------------------------------------------------------------------------- */

static bool has_processes(const void *context)
{
    const struct sandbox_wish *wish = context;
    const struct rollback *rollback = wish->context;

    return rollback->has_processes;
}

static bool was_running(const void *context)
{
    const struct sandbox_wish *wish = context;

    return wish->before == SANDBOX_RUNNING;
}

static void on_sessions_saved(void *context, const struct error *failure,
                              const struct inside_answer *answer)
{
    struct rollback *rollback = context;

    rollback->inside = snapshot_sessions(failure, answer);
    sequence_next(&rollback->wish->sequence, failure);
}

static void save_sessions(void *context)
{
    struct sandbox_wish *wish = context;

    inside_ask(wish->domain, &wish->sandbox->id, INSIDE_SAVE, NULL, on_sessions_saved,
               wish->context);
}

static void on_stopped_to_roll_back(void *context, const struct error *failure)
{
    struct rollback *rollback = context;

    if (!failure) {
        rollback->has_processes = false;
        wish_set_unstarted(rollback->wish);
    }
    sequence_next(&rollback->wish->sequence, failure);
}

static void stop_to_roll_back(void *context)
{
    struct sandbox_wish *wish = context;

    provider_stop(wish->domain->options.provider, &wish->sandbox->id, on_stopped_to_roll_back,
                  wish->context);
}

/* --- the present ----------------------------------------------------------------------------- */

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

static void on_present_copied(void *context, const struct error *failure,
                              const struct snapshot_made *how)
{
    struct rollback *rollback = context;

    (void) how;
    if (failure)
        snapshot_set_remove(rollback->domain, TAKE_PTR(rollback->keeping.snapshot));
    sequence_next(&rollback->wish->sequence, failure);
}

static void on_present_kept(struct snapshot_keeping *keeping, const struct error *failure)
{
    struct rollback *rollback = CONTAINER_OF(keeping, struct rollback, keeping);

    if (!failure)
        rollback->saved = snapshot_ref(keeping->snapshot);
    sequence_next(&rollback->wish->sequence, failure);
}

static void save_present(void *context)
{
    struct sandbox_wish *wish = context;
    struct rollback *rollback = wish->context;

    rollback->keeping = (struct snapshot_keeping){.domain = wish->domain,
                                                  .caller = wish->caller,
                                                  .snapshot = add_snapshot(rollback),
                                                  .done = on_present_kept};
    provider_snapshot(wish->domain->options.provider, &wish->sandbox->id,
                      &rollback->keeping.snapshot->id, false, on_present_copied, rollback);
}

static void keep_present(void *context)
{
    struct sandbox_wish *wish = context;
    struct rollback *rollback = wish->context;

    snapshot_keep(&rollback->keeping);
}

/* --- the disk -------------------------------------------------------------------------------- */

static void on_rolled(void *context, const struct error *failure)
{
    struct rollback *rollback = context;

    if (!failure) {
        rollback->has_rolled = true;
        snapshot_base_set(rollback->domain, rollback->wish->sandbox, &rollback->snapshot->id);
    }
    sequence_next(&rollback->wish->sequence, failure);
}

static void roll_back_disk(void *context)
{
    struct sandbox_wish *wish = context;
    struct rollback *rollback = wish->context;

    provider_roll_back(wish->domain->options.provider, &wish->sandbox->id, &rollback->snapshot->id,
                       wish->sandbox->spec.limits.disk_bytes, on_rolled, rollback);
}

/* --- the quota ------------------------------------------------------------------------------- */

/* What the disk holds now will be held by the snapshot of it: asked before anything is ended. */
static void on_present_sized(void *context, const struct error *failure, uint64_t bytes)
{
    struct rollback *rollback = context;
    struct error err = ERROR_INIT;

    /* A pool that counts nothing limits nothing either: of the quota the number is left. */
    if (failure && failure->code == ERR_NOT_IMPLEMENTED) {
        failure = NULL;
        bytes = 0;
    }
    if (!failure && snapshot_check_room(rollback->domain, rollback->wish->sandbox, bytes, &err) < 0)
        failure = &err;
    sequence_next(&rollback->wish->sequence, failure);
}

static void ask_for_room(void *context)
{
    struct sandbox_wish *wish = context;
    const struct disk_ref disk = {DISK_OF_SANDBOX, wish->sandbox->id};

    provider_disk_usage(wish->domain->options.provider, &disk, on_present_sized, wish->context);
}

static const struct sequence_step roll_back_steps[] = {
    {"see whether what it has now may be kept as a snapshot", .start = ask_for_room},
    {"save its sessions", save_sessions, .when = was_running, .on_failure = SEQUENCE_GOES_ON},
    {"let its programs write what they have", wish_quiesce, .when = was_running,
     .on_failure = SEQUENCE_GOES_ON},
    {"unmount its buckets", wish_unmount, .when = has_processes},
    {"end its processes", stop_to_roll_back, .when = has_processes, .point = "rollback.stopped"},
    {"save the present", .start = save_present},
    {"keep the present", keep_present, .also_closing = true, .point = "rollback.saved"},
    {"roll the disk back", roll_back_disk, .point = "rollback.rolled"},
    {.text = NULL},
};

const struct sequence_table roll_back_sequence = {"sandbox.roll_back", roll_back_steps,
                                                  roll_back_end};

static void roll_back_act(struct sandbox_wish *wish)
{
    struct rollback *rollback = wish->context;
    struct error err = ERROR_INIT;

    if (snapshot_check_ready(rollback->snapshot, &err) < 0) { /* it may have waited long */
        wish_end(wish, &err);
        return;
    }
    sandbox_set_status(wish->domain, wish->sandbox, SANDBOX_STOPPING);
    rollback->has_processes = wish->before == SANDBOX_RUNNING || wish->before == SANDBOX_FROZEN;
    if (!rollback->has_processes)
        rollback->inside = TAKE_PTR(wish->sandbox->inside);
    sequence_begin(&wish->sequence, wish->domain, &roll_back_sequence, &wish->sandbox->id, wish);
}

/* --- the beginning --------------------------------------------------------------------------- */

static bool is_same_text(const char *a, const char *b)
{
    return (!a && !b) || (a && b && strcmp(a, b) == 0);
}

static int check_roll_back(const struct domain *domain, const struct caller *caller,
                           const struct sandbox *sandbox, const struct snapshot *snapshot,
                           struct error *err)
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
static void on_snapshot_here(struct snapshot_waiter *waiter, const struct error *failure)
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
                                  .waiter.done = on_snapshot_here,
                                  .done = done,
                                  .context = context};
    rollback->wish = wish_make(domain, caller, sandbox, SANDBOX_ACTION_ROLL_BACK, roll_back_act,
                               on_rollback_over, rollback);
    if (check_roll_back(domain, caller, sandbox, snapshot, &err) < 0)
        wish_end(rollback->wish, &err);
    else if (snapshot_is_here(domain, snapshot))
        wish_begin(rollback->wish);
    else
        snapshot_fetch(domain, snapshot, &rollback->waiter);
}
