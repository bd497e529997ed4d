/* Use, start and wake: it shall run. The table below says what that takes, for one that is frozen,
 * one whose disk is here, one whose disk is in the object store, and one whose disk is lost.
 *
 * Uses go as soon as it runs. The answer of an explicit start or wake waits for the row; recovery
 * looks at the provider, so that nothing is lost when the daemon dies before. */
#include <stdlib.h>

#include "base/auto.h"
#include "domain/sandbox/expiry.h"
#include "domain/sandbox/sandbox_environment.h"
#include "domain/sandbox/sandbox_hooks.h"
#include "domain/sandbox/sandbox_quota.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandbox_wish.h"

static void count_wake(struct domain *domain, const struct sandbox_wish *wish)
{
    struct domain_counters *counters = &domain->counters;
    struct domain_latency latency = {.us_total = 0};

    domain_latency_add(domain, &counters->wakes[wish->tier], wish->asked_ns);
    domain_latency_add(domain, &latency, wish->asked_ns);
    for (size_t i = 0; i < ARRAY_COUNT(counters->wake_buckets); i++)
        counters->wake_buckets[i] += latency.buckets[i];
    counters->wakes_us_total += latency.us_total;
}

static void set_running(struct sandbox_wish *wish)
{
    struct domain *domain = wish->domain;
    struct sandbox *sandbox = wish->sandbox;
    bool was_asleep = sandbox_status_is_asleep(wish->before);

    sandbox_set_reason(sandbox, "%s", "");
    sandbox->is_ended_by_request = false;
    sandbox->is_reclaimed = false;
    sandbox->idle_since_ns = domain_now_ns(domain);
    sandbox->active_ms = domain_wall_ms(domain);
    sandbox_set_status(domain, sandbox, SANDBOX_RUNNING);
    expiry_watch(domain, sandbox);
    if (was_asleep)
        domain->counters.woken++;
    else
        domain->counters.started++;
    count_wake(domain, wish);
    wish_keep(wish, was_asleep ? "sandbox.woken" : "sandbox.started");
    if (wish->before != SANDBOX_FROZEN)
        sandbox_run_startup(domain, sandbox);
    sandbox_settle(domain, sandbox);
}

/* --- the steps ------------------------------------------------------------------------------- */

static bool was_frozen(const void *context)
{
    const struct sandbox_wish *wish = context;

    return wish->before == SANDBOX_FROZEN;
}

static bool has_no_processes(const void *context)
{
    return !was_frozen(context);
}

static void thaw_frozen(void *context)
{
    struct sandbox_wish *wish = context;

    provider_thaw(wish->domain->options.provider, &wish->sandbox->id, sequence_done,
                  &wish->sequence);
}

static void resume_agent(void *context)
{
    struct sandbox_wish *wish = context;

    inside_ask(wish->domain, &wish->sandbox->id, INSIDE_RESUME, NULL, sequence_asked,
               &wish->sequence);
}

static bool is_stored(const void *context)
{
    const struct sandbox_wish *wish = context;

    return has_no_processes(wish) && wish->sandbox->stored;
}

static void bring_back_disk(void *context)
{
    struct sandbox_wish *wish = context;

    sandbox_bring_back(wish, sequence_done, &wish->sequence);
}

static void on_processes_started(void *context, const struct error *failure,
                                 const struct provider_sandbox *started)
{
    struct sandbox_wish *wish = context;
    struct sandbox *sandbox = wish->sandbox;

    if (!failure) {
        sandbox->unenforced = started->unenforced;
        sandbox->started_ms = domain_wall_ms(wish->domain);
        sandbox->started_ns = domain_now_ns(wish->domain);
        sandbox->is_environment_late = false;
    }
    sequence_next(&wish->sequence, failure);
}

void wish_start(void *context)
{
    AUTO(sandbox_plan) struct sandbox_plan plan = {.binds = NULL};
    struct sandbox_wish *wish = context;
    struct sandbox *sandbox = wish->sandbox;

    if (sandbox->is_disk_lost) {
        sandbox_rebuild(wish, on_processes_started);
        return;
    }
    sandbox->has_ended = sandbox->is_unexplained = false;
    sandbox_plan_init(&plan, sandbox);
    provider_start(wish->domain->options.provider, &plan.spec, on_processes_started, wish);
}

static bool is_environment_late(const void *context)
{
    const struct sandbox_wish *wish = context;

    return wish->sandbox->is_environment_late;
}

static void on_environment_told(void *context, const struct error *failure,
                                const struct inside_answer *answer)
{
    struct sandbox_wish *wish = context;

    (void) answer;
    wish->sandbox->is_environment_late = failure != NULL;
    sequence_next(&wish->sequence, failure);
}

static void tell_environment(void *context)
{
    struct sandbox_wish *wish = context;

    sandbox_tell_environment(wish->domain, wish->sandbox, on_environment_told, wish);
}

static bool has_agent_news(const void *context)
{
    const struct sandbox_wish *wish = context;

    return has_no_processes(wish) && sandbox_has_agent_news(wish->sandbox, wish->sandbox->inside);
}

static void on_taken_back(void *context, const struct error *failure)
{
    struct sandbox_wish *wish = context;

    (void) failure; /* recovery and the next start find it */
    sequence_next(&wish->sequence, &wish->failure);
}

/* One that does not know its variables is not what was asked for. */
static void on_inside_told(void *context, const struct error *failure)
{
    struct sandbox_wish *wish = context;

    if (!failure || wish->domain->stage != DOMAIN_OPEN) {
        sequence_next(&wish->sequence, failure);
        return;
    }
    wish->failure = *failure;
    provider_stop(wish->domain->options.provider, &wish->sandbox->id, on_taken_back, wish);
}

/* Frozen ones have it still, unless it could not be opened, or its policy is another one now. */
bool wish_has_way(const void *context)
{
    const struct sandbox_wish *wish = context;

    return wish->sandbox->spec.egress;
}

/* What ran before goes on without it: nothing gets out, and it is tried again. */
static void on_way_open(void *context, const struct error *failure)
{
    struct sandbox_wish *wish = context;

    if (failure && was_frozen(wish)) {
        LOG_WARNING(wish->domain->options.log, "the way out of a sandbox is not open",
                    log_text("sandbox", wish->sandbox->id.text),
                    log_text("error", failure->message));
        failure = NULL;
    }
    on_inside_told(wish, failure);
}

void wish_open_way(void *context)
{
    struct sandbox_wish *wish = context;

    sandbox_hook_open_way(wish->domain, wish->sandbox, on_way_open, wish);
}

void wish_tell_agent_news(void *context)
{
    struct sandbox_wish *wish = context;

    sandbox_tell_agent_news(wish->domain, wish->sandbox, wish->sandbox->inside, on_inside_told,
                            wish);
}

void wish_mount(void *context)
{
    struct sandbox_wish *wish = context;

    sandbox_hook_running(wish->domain, wish->sandbox, has_no_processes(wish), sequence_hooked,
                         &wish->sequence);
}

static void sandbox_run_end(void *context, const struct error *failure)
{
    struct sandbox_wish *wish = context;

    if (failure) {
        wish_provider_failed(wish, failure);
        return;
    }
    if (has_no_processes(wish)) {
        free(wish->sandbox->inside);
        wish->sandbox->inside = NULL;
    }
    set_running(wish);
}

/* Once it runs it is kept as running, also when the domain closes meanwhile. An agent that stays
 * silent is found by whoever uses it. Buckets are mounted before anybody is told, so that nobody
 * sees a folder empty that is not. */
static const struct sequence_step run_steps[] = {
    {"let it go on", thaw_frozen, .when = was_frozen, .point = "domain.wake.thawed"},
    {"tell its agent to go on", resume_agent, .when = was_frozen, .on_failure = SEQUENCE_GOES_ON,
     .also_closing = true},
    {"bring back its disk", bring_back_disk, .when = is_stored, .says_itself = true},
    {"start it", wish_start, .when = has_no_processes, .point = "domain.start.started"},
    {"open its way out", wish_open_way, .when = wish_has_way},
    {"tell its agent the new variables", tell_environment, .when = is_environment_late,
     .on_failure = SEQUENCE_WARNS, .also_closing = true},
    {"tell it its variables and sessions", wish_tell_agent_news, .when = has_agent_news,
     .also_closing = true},
    {"mount its buckets", wish_mount, .also_closing = true},
    {.text = NULL},
};

const struct sequence_table sandbox_run_sequence = {"sandbox.run", run_steps, sandbox_run_end};

void sandbox_act_run(struct sandbox_wish *wish)
{
    struct domain *domain = wish->domain;
    struct sandbox *sandbox = wish->sandbox;
    bool was_asleep = sandbox_status_is_asleep(wish->before);
    struct error err = ERROR_INIT;

    if (sandbox_quota_run(domain, sandbox, &err) < 0) {
        wish_fail(wish, &err);
        return;
    }
    wish->tier = sandbox_tier(sandbox);
    sandbox->restored_files = 0;
    sandbox_set_status(domain, sandbox, was_asleep ? SANDBOX_WAKING : SANDBOX_STARTING);
    sequence_begin(&wish->sequence, domain, &sandbox_run_sequence, &sandbox->id, wish);
}
