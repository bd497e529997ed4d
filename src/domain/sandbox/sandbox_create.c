/* Create: the sandbox is made, then its row is kept, then the answer is given.
 *
 *     name and quota ──► provider_create ──► variables ──► commit (row, event) ──► answered, and
 *     taken in memory        │ fails             │ fails       │ fails             seen by others
 *                            ▼                   ▼             ▼
 *                        answered            taken down, answered
 *
 * What dies in between was never acknowledged: recovery finds a sandbox without a row. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/crash_point.h"
#include "base/memory.h"
#include "domain/domain_internal.h"
#include "domain/event/event.h"
#include "domain/sandbox/expiry.h"
#include "domain/sandbox/new_disks.h"
#include "domain/sandbox/sandbox_environment.h"
#include "domain/sandbox/sandbox_hooks.h"
#include "domain/sandbox/sandbox_quota.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandbox_wish.h"

#define EVENT_DATA_MAX 256

struct creation {
    struct domain_task task;
    struct domain *domain;
    struct sandbox *sandbox; /* a reference; NULL: nothing is made */
    struct caller caller;
    struct trace_context trace; /* it may be told what another one made */
    uint64_t asked_ns;
    bool is_new;
    bool has_failed;
    struct error failure;
    sandbox_created *done;
    void *context;
    struct list link;    /* of `sharers` of the one that is under way */
    struct list sharers; /* of struct creation: the same name, meanwhile */
    bool has_origin;     /* the next ones count: */
    struct disk_ref disk;
    bool hold;
    uint64_t *pause_us;       /* borrowed, may be NULL */
    struct id from, snapshot; /* for the event; no snapshot: empty */
    struct id base;           /* as of a sandbox */
    char *inside;             /* owned, may be NULL: sessions to bring back */
};

static struct creation *creation_new(struct domain *domain, const struct caller *caller,
                                     sandbox_created *done, void *context)
{
    struct creation *creation = mem_alloc(sizeof(*creation));

    creation->domain = domain;
    creation->caller = *caller;
    creation->trace = trace_context;
    creation->asked_ns = domain_now_ns(domain);
    creation->done = done;
    creation->context = context;
    list_init(&creation->link);
    list_init(&creation->sharers);
    domain->works++;
    return creation;
}

/* --- the answer ------------------------------------------------------------------------------ */

static void answer(struct domain_task *task)
{
    struct creation *creation = CONTAINER_OF(task, struct creation, task);
    struct domain *domain = creation->domain;
    TRACE_AS(&creation->trace);

    if (creation->sandbox)
        trace_about(&creation->sandbox->id);
    TRACE(creation->has_failed ? "sandbox.create.failed" : "sandbox.create.done");
    if (creation->has_failed)
        creation->done(creation->context, &creation->failure, NULL, false);
    else
        creation->done(creation->context, NULL, creation->sandbox, creation->is_new);
    if (creation->sandbox && creation->is_new)
        sandbox_settle(domain, creation->sandbox);
    sandbox_unref(creation->sandbox);
    free(creation->inside);
    free(creation);
    domain->works--;
    domain_check_gone(domain);
}

static void creation_end(struct creation *creation, const struct error *failure)
{
    struct list *link;

    creation->has_failed = failure != NULL;
    if (failure)
        creation->failure = *failure;
    domain_defer(creation->domain, &creation->task, answer);
    while ((link = list_first(&creation->sharers))) {
        struct creation *sharer = CONTAINER_OF(link, struct creation, link);

        list_remove(link);
        if (!failure)
            sharer->sandbox = sandbox_ref(creation->sandbox);
        creation_end(sharer, failure);
    }
}

/* --- steps ----------------------------------------------------------------------------------- */

/* Nothing of it is left in memory but what is said to those who wait. */
static void give_up(struct creation *creation, const struct error *failure)
{
    creation->domain->counters.failed++;
    sandbox_set_unreserve(creation->domain, creation->sandbox);
    creation->sandbox->status = SANDBOX_DESTROYED;
    creation->sandbox->creation = NULL;
    creation_end(creation, failure);
}

static void on_taken_down(void *context)
{
    struct creation *creation = context;

    give_up(creation, &creation->failure);
}

/* It runs, but is not what was asked for. */
static void creation_take_down(struct creation *creation, const struct error *failure)
{
    creation->failure = *failure;
    inside_forget(creation->domain, &creation->sandbox->id);
    sandbox_set_unidentify(creation->domain, creation->sandbox);
    sandbox_orphan(creation->domain, &creation->sandbox->id, on_taken_down, creation);
}

static void on_kept(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    struct creation *creation = context;
    struct domain *domain = creation->domain;
    struct sandbox *sandbox = creation->sandbox;

    if (failure) {
        creation_take_down(creation, failure);
        return;
    }
    CRASH_POINT("domain.create.kept");
    event_kept(domain, receipt);
    sandbox->creation = NULL;
    sandbox_set_status(domain, sandbox, SANDBOX_RUNNING);
    sandbox_set_list(domain, sandbox_ref(sandbox));
    expiry_watch(domain, sandbox);
    if (sandbox->is_disk_new)
        new_disk_watch(domain, sandbox);
    domain->counters.created++;
    domain->counters.create_us_total += (domain_now_ns(domain) - creation->asked_ns) / 1000;
    sandbox_run_startup(domain, sandbox);
    creation_end(creation, NULL);
}

static void add_fork_event(struct creation *creation, struct store_transaction *change)
{
    const struct sandbox *sandbox = creation->sandbox;
    char data[EVENT_DATA_MAX];

    if (!creation->has_origin)
        return;
    (void) snprintf(data, sizeof(data), "{\"sandboxId\":\"%s\",\"from\":\"%s\"%s%s%s}",
                    sandbox->id.text, creation->from.text,
                    *creation->snapshot.text ? ",\"snapshotId\":\"" : "", creation->snapshot.text,
                    *creation->snapshot.text ? "\"" : "");
    event_add(creation->domain, change, &creation->caller, &sandbox->owner, sandbox->id.text,
              "sandbox.forked", data);
}

static void keep(struct creation *creation)
{
    struct domain *domain = creation->domain;
    struct sandbox *sandbox = creation->sandbox;
    struct store_transaction *change = store_begin(domain->options.store);
    struct sandbox_next next = sandbox_next(sandbox);
    AUTO(sandbox_row) struct sandbox_row row;

    next.status = SANDBOX_RUNNING; /* until it is kept it is `creating`, which nobody sees */
    sandbox->created_ms = sandbox->updated_ms = sandbox->active_ms = sandbox->started_ms =
        domain_wall_ms(domain);
    sandbox->idle_since_ns = sandbox->started_ns = sandbox->snapshot_ns = domain_now_ns(domain);
    sandbox->is_disk_new = !creation->has_origin;
    sandbox_row_init(&row, sandbox, &next);
    store_insert(change, STORE_SANDBOX, row.values);
    sandbox_add_event(domain, change, &creation->caller, sandbox, &next, "sandbox.created");
    add_fork_event(creation, change);
    domain_commit(domain, change, on_kept, creation);
}

/* Its shells begin where those of its origin were. */
static void on_inside_told(void *context, const struct error *failure)
{
    struct creation *creation = context;

    if (failure)
        creation_take_down(creation, failure);
    else
        keep(creation);
}

static void creation_way_open(void *context, const struct error *failure)
{
    struct creation *creation = context;
    struct sandbox *sandbox = creation->sandbox;

    if (failure)
        creation_take_down(creation, failure);
    else if (sandbox_has_agent_news(sandbox, creation->inside))
        sandbox_tell_agent_news(creation->domain, sandbox, creation->inside, on_inside_told,
                                creation);
    else
        keep(creation);
}

static void on_made(void *context, const struct error *failure, const struct provider_sandbox *made)
{
    struct creation *creation = context;
    struct sandbox *sandbox = creation->sandbox;

    if (failure) {
        give_up(creation, failure);
        return;
    }
    CRASH_POINT("domain.create.made");
    if (creation->pause_us)
        *creation->pause_us = made->pause_us;
    sandbox->id = made->id;
    trace_about(&sandbox->id);
    sandbox->unenforced = made->unenforced;
    sandbox_set_identify(creation->domain, sandbox);
    if (sandbox->spec.egress)
        sandbox_hook_open_way(creation->domain, sandbox, creation_way_open, creation);
    else
        creation_way_open(creation, NULL);
}

/* --- the beginning --------------------------------------------------------------------------- */

static void fill_defaults(const struct domain *domain, struct sandbox_spec *spec)
{
    struct limits limits = domain->options.default_limits;

    limits_merge(&limits, &spec->limits);
    spec->limits = limits;
    if (!spec->network.is_set)
        spec->network = (struct sandbox_network){true, domain->options.default_network};
}

static void make(struct creation *creation, struct sandbox_spec *spec)
{
    struct domain *domain = creation->domain;
    struct sandbox *sandbox = creation->sandbox = sandbox_ref(sandbox_new());
    AUTO(sandbox_plan) struct sandbox_plan plan = {.binds = NULL};

    creation->is_new = true;
    sandbox->creation = creation;
    sandbox->id = id_new();
    sandbox->owner = creation->caller.owner;
    sandbox->base = creation->base;
    sandbox->epoch = 1;
    (void) snprintf(sandbox->node, sizeof(sandbox->node), "%s", domain->options.node);
    sandbox->spec = *spec;
    *spec = (struct sandbox_spec){.name = NULL};
    sandbox->status = SANDBOX_CREATING;
    sandbox_set_reserve(domain, sandbox);
    sandbox_plan_init(&plan, sandbox);
    if (creation->has_origin)
        plan.spec.origin = creation->disk;
    plan.spec.hold_origin = creation->hold;
    provider_create(domain->options.provider, &plan.spec, on_made, creation);
}

static int check(const struct domain *domain, const struct caller *caller,
                 const struct sandbox_spec *spec, struct error *err)
{
    if (!domain_is_open(domain, err))
        return -1;
    if (!caller_may_write(caller))
        return error_set(err, ERR_FORBIDDEN, 0, "this key may not create sandboxes");
    if (!domain->options.provider)
        return error_set(err, ERR_UNAVAILABLE, 0, "there is nowhere to run sandboxes");
    if (spec->egress && !domain->options.broker)
        return error_set(err, ERR_NOT_IMPLEMENTED, 0, "this daemon has no egress broker");
    return sandbox_spec_check(spec, err);
}

/* One of that name is there, or on its way. */
static void share(struct creation *creation, struct sandbox *sandbox)
{
    struct error err = ERROR_INIT;

    if (creation->has_origin) {
        (void) error_set(&err, ERR_CONFLICT, 0, "there is a sandbox '%s' already",
                         sandbox->spec.name);
        creation_end(creation, &err);
        return;
    }
    if (sandbox->creation) {
        list_append(&sandbox->creation->sharers, &creation->link);
        return;
    }
    creation->sandbox = sandbox_ref(sandbox);
    creation_end(creation, NULL);
}

static void set_origin(struct creation *creation, const struct sandbox_origin *origin)
{
    if (!origin)
        return;
    creation->has_origin = true;
    creation->disk = origin->disk;
    creation->hold = origin->hold;
    creation->pause_us = origin->pause_us;
    (void) snprintf(creation->from.text, sizeof(creation->from.text), "%s", origin->sandbox);
    if (origin->snapshot)
        (void) snprintf(creation->snapshot.text, sizeof(creation->snapshot.text), "%s",
                        origin->snapshot);
    if (origin->base)
        (void) snprintf(creation->base.text, sizeof(creation->base.text), "%s", origin->base);
    creation->inside = origin->inside ? mem_copy_text(origin->inside) : NULL;
}

void sandbox_create(struct domain *domain, const struct caller *caller,
                    const struct sandbox_spec *spec, sandbox_created *done, void *context)
{
    sandbox_create_from(domain, caller, spec, NULL, done, context);
}

void sandbox_create_from(struct domain *domain, const struct caller *caller,
                         const struct sandbox_spec *spec, const struct sandbox_origin *origin,
                         sandbox_created *done, void *context)
{
    struct creation *creation = creation_new(domain, caller, done, context);
    struct sandbox *known;
    struct error err = ERROR_INIT;
    AUTO(sandbox_spec) struct sandbox_spec wanted = SANDBOX_SPEC_INIT;

    set_origin(creation, origin);
    if (check(domain, caller, spec, &err) < 0) {
        creation_end(creation, &err);
        return;
    }
    known = spec->name ? sandbox_set_by_name(domain, &caller->owner, spec->name) : NULL;
    if (known) {
        share(creation, known);
        return;
    }
    wanted = sandbox_spec_copy(spec);
    fill_defaults(domain, &wanted);
    sandbox_hook_fill(domain, &caller->owner, &wanted);
    if (sandbox_quota_create(domain, &caller->owner, &wanted.limits, &err) < 0)
        creation_end(creation, &err);
    else
        make(creation, &wanted);
}
