/* Forks: sandboxes that begin with the disk of a snapshot, or of a sandbox as it is now.
 *
 *     of a snapshot              pinned
 *     of a sandbox, one of it    the new disk is the only copy
 *     several of a running one   of a copy in passing, without a row: all are of one moment
 *     several of another one     held: it cannot start and write
 *
 * A copy in passing is deleted behind its forks; after a crash recovery finds it without a row. All
 * forks are made, or none is left. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/crash_point.h"
#include "base/memory.h"
#include "domain/domain_internal.h"
#include "domain/sandbox/sandbox_record.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/snapshot/snapshot_internal.h"
#include "domain/snapshot/snapshot_set.h"

#define LABEL "forkedFrom"

struct fork {
    struct domain_task task;
    struct sequence sequence;
    struct domain *domain;
    struct caller caller;
    struct sandbox_spec spec;     /* of each, without its name */
    struct sandbox_change change; /* no fields: none */
    char *name;                   /* owned, may be NULL */
    size_t count, begun, ended;
    struct sandbox **made; /* owned: references, in the order they were there */
    size_t made_count;
    fork_done *done;
    sandbox_created *created; /* instead of `done`: of one that has a spec of its own */
    void *context;

    struct snapshot *snapshot; /* pinned; NULL: of a sandbox */
    struct snapshot_waiter waiter;
    struct sandbox_wish *wish; /* of a sandbox; NULL: of a snapshot */
    bool is_alive, no_freeze;  /* it has processes */
    struct id copy;            /* in passing */
    bool has_copy;
    char *sessions;           /* owned: those of now; may be NULL */
    struct snapshot_made how; /* how long it stood still */
    struct disk_ref disk;
    struct id origin;   /* the sandbox it is a fork of */
    struct id base;     /* the snapshot, or what the sandbox has for one */
    const char *inside; /* borrowed: `sessions`, or those of the snapshot */

    bool has_failed;
    struct error failure;
};

/* --- the end --------------------------------------------------------------------------------- */

static void fork_answer(struct domain_task *task)
{
    struct fork *fork = CONTAINER_OF(task, struct fork, task);
    struct domain *domain = fork->domain;

    if (fork->created)
        fork->created(fork->context, fork->has_failed ? &fork->failure : NULL,
                      fork->has_failed ? NULL : fork->made[0], true);
    else if (fork->has_failed)
        fork->done(fork->context, &fork->failure, NULL, 0, NULL);
    else
        fork->done(fork->context, NULL, fork->made, fork->made_count,
                   fork->is_alive ? &fork->how : NULL);
    for (size_t i = 0; i < fork->made_count; i++)
        sandbox_unref(fork->made[i]);
    free(fork->made);
    if (fork->snapshot)
        snapshot_unpin(domain, fork->snapshot);
    sandbox_spec_done(&fork->spec);
    sandbox_change_done(&fork->change);
    free(fork->name);
    free(fork->sessions);
    free(fork);
    domain->works--;
    domain_check_gone(domain);
}

/* The first failure is the one to tell. */
static void fork_fail(struct fork *fork, const struct error *failure)
{
    if (!fork->has_failed)
        fork->failure = *failure;
    fork->has_failed = true;
}

/* The wish on the origin is over: it waited and was refused, or ends behind the forks. */
static void on_fork_over(void *context, const struct error *failure, struct sandbox *sandbox)
{
    struct fork *fork = context;

    (void) sandbox;
    if (failure)
        fork_fail(fork, failure);
    fork_answer(&fork->task);
}

static void fork_end(void *context, const struct error *failure)
{
    struct fork *fork = context;
    struct domain *domain = fork->domain;
    struct caller system = caller_system();

    if (failure)
        fork_fail(fork, failure);
    for (size_t i = 0; fork->has_failed && i < fork->made_count; i++)
        sandbox_destroy(domain, &system, fork->made[i], NULL, NULL);
    if (fork->has_copy)
        snapshot_orphan(domain, &fork->copy);
    if (!fork->has_failed && !fork->created)
        domain->counters.forked += fork->made_count;
    if (!fork->wish) {
        domain_defer(domain, &fork->task, fork_answer);
        return;
    }
    if (fork->wish->sandbox->is_held && !fork->has_copy)
        snapshot_release(domain, fork->wish->sandbox);
    wish_end(fork->wish, fork->has_failed ? &fork->failure : NULL);
}

/* --- the forks ------------------------------------------------------------------------------- */

static void make_some(struct fork *fork);

static void on_fork_made(void *context, const struct error *failure, struct sandbox *sandbox,
                         bool is_new)
{
    struct fork *fork = context;

    (void) is_new;
    fork->ended++;
    if (failure) {
        fork_fail(fork, failure);
    } else {
        CRASH_POINT("fork.one");
        fork->made[fork->made_count++] = sandbox_ref(sandbox);
    }
    make_some(fork);
}

/* Names that do not fit are refused by the spec's check. */
static void set_name(struct fork *fork)
{
    AUTO(text) struct text name = TEXT_INIT(2 * SANDBOX_NAME_MAX);

    free(fork->spec.name);
    fork->spec.name = NULL;
    if (!fork->name)
        return;
    text_append(&name, fork->name);
    if (fork->count > 1)
        text_format(&name, "-%zu", fork->begun + 1);
    fork->spec.name = mem_copy_text(text_string(&name));
}

static void make_one(struct fork *fork)
{
    const struct sandbox_origin origin = {.disk = fork->disk,
                                          .hold = fork->is_alive && !fork->has_copy &&
                                                  snapshot_freezes(fork->domain, fork->no_freeze),
                                          .pause_us = fork->has_copy ? NULL : &fork->how.pause_us,
                                          .sandbox = fork->origin.text,
                                          .snapshot =
                                              fork->snapshot ? fork->snapshot->id.text : NULL,
                                          .base = fork->base.text,
                                          .inside = fork->inside};

    set_name(fork);
    fork->begun++;
    sandbox_create_from(fork->domain, &fork->caller, &fork->spec, &origin, on_fork_made, fork);
}

static void make_some(struct fork *fork)
{
    struct domain *domain = fork->domain;

    while (!fork->has_failed && fork->begun < fork->count &&
           fork->begun - fork->ended < SNAPSHOT_FORKS_AT_ONCE)
        make_one(fork);
    if (fork->begun > fork->ended)
        return;
    if (fork->is_alive && !fork->has_copy && !fork->has_failed)
        snapshot_count(domain, &fork->how);
    sequence_next(&fork->sequence, fork->has_failed ? &fork->failure : NULL);
}

static void make_forks(void *context)
{
    make_some(context);
}

/* --- of a snapshot --------------------------------------------------------------------------- */

static struct fork *fork_new(struct domain *domain, const struct caller *caller,
                             const struct fork_options *options, fork_done *done, void *context)
{
    struct fork *fork = mem_alloc(sizeof(*fork));
    size_t count = options->count <= SNAPSHOT_FORKS_MAX ? options->count : 0;

    *fork = (struct fork){.domain = domain,
                          .caller = *caller,
                          .count = options->count,
                          .name = options->name ? mem_copy_text(options->name) : NULL,
                          .made = mem_alloc_array(count + 1, sizeof(struct sandbox *)),
                          .done = done,
                          .context = context};
    if (options->change)
        fork->change = sandbox_change_copy(options->change);
    fork->change.fields &= ~SPEC_BIT(name);
    domain->works++;
    return fork;
}

static int check_fork(const struct fork *fork, struct error *err)
{
    if (!domain_is_open(fork->domain, err))
        return -1;
    if (!caller_may_write(&fork->caller))
        return error_set(err, ERR_FORBIDDEN, 0, "this key may not create sandboxes");
    if (fork->count < 1 || fork->count > SNAPSHOT_FORKS_MAX)
        return error_set(err, ERR_INVALID, 0, "count must be from 1 to %d", SNAPSHOT_FORKS_MAX);
    return snapshot_check_provider(fork->domain, err);
}

/* Copied but the name, and changed as it was asked for; it says where it comes from. */
static void set_spec(struct fork *fork)
{
    sandbox_spec_apply(&fork->spec, &fork->change);
    sandbox_pairs_set(&fork->spec.labels, LABEL, fork->origin.text);
}

static bool is_elsewhere(const void *context)
{
    const struct fork *fork = context;

    return !snapshot_is_here(fork->domain, fork->snapshot);
}

static void on_snapshot_fetched(struct snapshot_waiter *waiter, const struct error *failure)
{
    struct fork *fork = CONTAINER_OF(waiter, struct fork, waiter);

    sequence_next(&fork->sequence, failure);
}

static void fetch_snapshot(void *context)
{
    struct fork *fork = context;

    fork->waiter.done = on_snapshot_fetched;
    snapshot_fetch(fork->domain, fork->snapshot, &fork->waiter);
}

static const struct sequence_step snapshot_fork_steps[] = {
    {"bring back the snapshot", fetch_snapshot, .when = is_elsewhere, .says_itself = true},
    {"make its forks", make_forks, .point = "fork.kept", .says_itself = true},
    {.text = NULL},
};

const struct sequence_table snapshot_fork_sequence = {"snapshot.fork", snapshot_fork_steps,
                                                      fork_end};

static void fork_snapshot(struct fork *fork, struct snapshot *snapshot)
{
    snapshot_pin(snapshot);
    fork->snapshot = snapshot;
    fork->disk = (struct disk_ref){DISK_OF_SNAPSHOT, snapshot->id};
    fork->origin = snapshot->sandbox;
    fork->base = snapshot->id;
    fork->inside = snapshot->inside;
    if (!fork->created)
        set_spec(fork);
    sequence_begin(&fork->sequence, fork->domain, &snapshot_fork_sequence, &snapshot->sandbox,
                   fork);
}

void snapshot_fork(struct domain *domain, const struct caller *caller, struct snapshot *snapshot,
                   const struct fork_options *options, fork_done *done, void *context)
{
    struct fork *fork = fork_new(domain, caller, options, done, context);
    struct error err = ERROR_INIT;

    if (check_fork(fork, &err) < 0 || snapshot_check_ready(snapshot, &err) < 0 ||
        sandbox_spec_read(snapshot->spec, strlen(snapshot->spec), &fork->spec, &err) < 0)
        fork_end(fork, &err);
    else
        fork_snapshot(fork, snapshot);
}

void sandbox_create_from_snapshot(struct domain *domain, const struct caller *caller,
                                  struct snapshot *snapshot, const struct sandbox_spec *spec,
                                  sandbox_created *done, void *context)
{
    const struct fork_options one = {.count = 1, .name = spec->name};
    struct fork *fork = fork_new(domain, caller, &one, NULL, context);
    struct error err = ERROR_INIT;

    fork->created = done;
    fork->spec = sandbox_spec_copy(spec);
    if (check_fork(fork, &err) < 0 || snapshot_check_ready(snapshot, &err) < 0)
        fork_end(fork, &err);
    else
        fork_snapshot(fork, snapshot);
}

/* --- of a sandbox ---------------------------------------------------------------------------- */

static bool runs(const void *context)
{
    const struct fork *fork = context;

    return fork->wish->sandbox->status == SANDBOX_RUNNING;
}

static void on_sessions_saved(void *context, const struct error *failure,
                              const struct inside_answer *answer)
{
    struct fork *fork = context;

    free(fork->sessions);
    fork->inside = fork->sessions = snapshot_sessions(failure, answer);
    sequence_next(&fork->sequence, failure);
}

static void save_sessions(void *context)
{
    struct fork *fork = context;

    inside_ask(fork->domain, &fork->origin, INSIDE_SAVE, NULL, on_sessions_saved, fork);
}

static bool shares_a_copy(const void *context)
{
    const struct fork *fork = context;

    return fork->is_alive && fork->count > 1;
}

static void on_copied_in_passing(void *context, const struct error *failure,
                                 const struct snapshot_made *how)
{
    struct fork *fork = context;

    if (!failure) {
        fork->has_copy = true;
        fork->disk = (struct disk_ref){DISK_OF_SNAPSHOT, fork->copy};
        fork->how = *how;
        snapshot_count(fork->domain, how);
        snapshot_release(fork->domain, fork->wish->sandbox);
    } else {
        fork->domain->counters.failed++;
    }
    sequence_next(&fork->sequence, failure);
}

static void copy_in_passing(void *context)
{
    struct fork *fork = context;

    provider_snapshot(fork->domain->options.provider, &fork->origin, &fork->copy,
                      snapshot_freezes(fork->domain, fork->no_freeze), on_copied_in_passing, fork);
}

static const struct sequence_step fork_steps[] = {
    {"save its sessions", save_sessions, .when = runs, .on_failure = SEQUENCE_GOES_ON},
    {"copy its disk", copy_in_passing, .when = shares_a_copy, .point = "fork.copied"},
    {"make its forks", make_forks, .point = "fork.kept", .says_itself = true},
    {.text = NULL},
};

const struct sequence_table sandbox_fork_sequence = {"sandbox.fork", fork_steps, fork_end};

static void fork_act(struct sandbox_wish *wish)
{
    struct fork *fork = wish->context;
    struct sandbox *sandbox = wish->sandbox;

    sandbox->is_held = true;
    fork->is_alive = sandbox->status == SANDBOX_RUNNING || sandbox->status == SANDBOX_FROZEN;
    fork->spec = sandbox_spec_copy(&sandbox->spec);
    fork->base = sandbox->base;
    fork->disk = (struct disk_ref){DISK_OF_SANDBOX, sandbox->id};
    fork->inside = fork->sessions = sandbox->inside ? mem_copy_text(sandbox->inside) : NULL;
    set_spec(fork);
    sequence_begin(&fork->sequence, fork->domain, &sandbox_fork_sequence, &fork->origin, fork);
}

void sandbox_fork(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                  const struct fork_options *options, fork_done *done, void *context)
{
    struct fork *fork = fork_new(domain, caller, options, done, context);
    struct error err = ERROR_INIT;

    if (check_fork(fork, &err) < 0) {
        fork_end(fork, &err);
        return;
    }
    fork->origin = sandbox->id;
    fork->no_freeze = options->no_freeze;
    fork->copy = id_new();
    fork->wish =
        wish_make(domain, caller, sandbox, SANDBOX_ACTION_SNAPSHOT, fork_act, on_fork_over, fork);
    wish_begin(fork->wish);
}
