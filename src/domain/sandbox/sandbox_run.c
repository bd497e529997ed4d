/* Use, start and wake: it shall run.
 *
 *     frozen:               thaw ──► resume ─┬─► running: uses go at once, the row is kept behind
 *     hibernated, stopped:  start ──► restore┘
 *     offloaded:            disk back ──► start ...
 *     its disk is lost:     another disk, workspace back ...
 *
 * The answer of an explicit start or wake waits for the row; recovery looks at the provider, so
 * that nothing is lost when the daemon dies before. */
#include <stdlib.h>

#include "base/auto.h"
#include "base/crash_point.h"
#include "domain/inside_call.h"
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

static void on_mounted(void *context)
{
    set_running(context);
}

/* Buckets first, so that nobody sees a folder empty that is not. */
static void mount_and_run(struct sandbox_wish *wish)
{
    sandbox_hook_running(wish->domain, wish->sandbox, wish->before != SANDBOX_FROZEN, on_mounted,
                         wish);
}

/* --- from frozen ----------------------------------------------------------------------------- */

static void on_told(void *context, const struct error *failure, const struct inside_answer *answer)
{
    struct sandbox_wish *wish = context;

    (void) answer;
    if (failure)
        LOG_WARNING(wish->domain->options.log, "a sandbox did not take its new variables",
                    log_text("sandbox", wish->sandbox->id.text),
                    log_text("error", failure->message));
    else
        wish->sandbox->is_environment_late = false;
    mount_and_run(wish);
}

static void on_resumed(void *context, const struct error *failure,
                       const struct inside_answer *answer)
{
    struct sandbox_wish *wish = context;

    (void) failure, (void) answer; /* an agent that stays silent is found by whoever uses it */
    if (wish->sandbox->is_environment_late)
        sandbox_tell_environment(wish->domain, wish->sandbox, on_told, wish);
    else
        mount_and_run(wish);
}

static void on_thawed(void *context, const struct error *failure)
{
    struct sandbox_wish *wish = context;

    if (failure) {
        wish_provider_failed(wish, failure);
        return;
    }
    CRASH_POINT("domain.wake.thawed");
    inside_ask(wish->domain, &wish->sandbox->id, INSIDE_RESUME, NULL, on_resumed, wish);
}

/* --- from a disk ----------------------------------------------------------------------------- */

static void on_restored(void *context, const struct error *failure,
                        const struct inside_answer *answer)
{
    struct sandbox_wish *wish = context;

    (void) answer;
    if (failure)
        LOG_WARNING(wish->domain->options.log, "sessions of a sandbox did not come back",
                    log_text("sandbox", wish->sandbox->id.text),
                    log_text("error", failure->message));
    free(wish->sandbox->inside);
    wish->sandbox->inside = NULL;
    mount_and_run(wish);
}

static void on_started(void *context, const struct error *failure,
                       const struct provider_sandbox *started)
{
    struct sandbox_wish *wish = context;
    struct sandbox *sandbox = wish->sandbox;

    if (failure) {
        wish_provider_failed(wish, failure);
        return;
    }
    CRASH_POINT("domain.start.started");
    sandbox->unenforced = started->unenforced;
    sandbox->started_ms = domain_wall_ms(wish->domain);
    sandbox->started_ns = domain_now_ns(wish->domain);
    sandbox->is_environment_late = false;
    if (sandbox->inside)
        inside_ask(wish->domain, &sandbox->id, INSIDE_RESTORE, sandbox->inside, on_restored, wish);
    else
        mount_and_run(wish);
}

static void start(struct sandbox_wish *wish)
{
    AUTO(sandbox_plan) struct sandbox_plan plan = {.binds = NULL};
    struct sandbox *sandbox = wish->sandbox;

    sandbox->has_ended = sandbox->is_unexplained = false;
    sandbox_plan_init(&plan, sandbox);
    provider_start(wish->domain->options.provider, &plan.spec, on_started, wish);
}

/* --- the beginning --------------------------------------------------------------------------- */

void sandbox_act_run(struct sandbox_wish *wish)
{
    struct domain *domain = wish->domain;
    struct sandbox *sandbox = wish->sandbox;
    struct error err = ERROR_INIT;

    if (sandbox_quota_run(domain, sandbox, &err) < 0) {
        wish_fail(wish, &err);
        return;
    }
    wish->tier = sandbox_tier(sandbox);
    sandbox->restored_files = 0;
    if (wish->before == SANDBOX_FROZEN) {
        sandbox_set_status(domain, sandbox, SANDBOX_WAKING);
        provider_thaw(domain->options.provider, &sandbox->id, on_thawed, wish);
        return;
    }
    sandbox_set_status(domain, sandbox,
                       wish->before == SANDBOX_HIBERNATED ? SANDBOX_WAKING : SANDBOX_STARTING);
    if (sandbox->stored)
        sandbox_bring_back(wish, start);
    else if (sandbox->is_disk_lost)
        sandbox_rebuild(wish, on_started);
    else
        start(wish);
}
