/* Stop: the agent is given a moment, the processes end, the disk stays. Then it is kept. */
#include <stdlib.h>

#include "base/auto.h"
#include "base/crash_point.h"
#include "domain/inside_call.h"
#include "domain/sandbox/expiry.h"
#include "domain/sandbox/sandbox_hooks.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandbox_wish.h"

static bool is_by_request(const struct sandbox_wish *wish)
{
    return wish->why == NULL;
}

static void set_stopped(struct sandbox_wish *wish)
{
    struct domain *domain = wish->domain;
    struct sandbox *sandbox = wish->sandbox;

    inside_forget(domain, &sandbox->id);
    free(sandbox->inside);
    sandbox->inside = NULL;
    sandbox->started_ms = 0;
    sandbox->has_ended = false;
    sandbox->is_ended_by_request = is_by_request(wish);
    sandbox_set_reason(sandbox, "%s", wish->why ? wish->why : "stopped on request");
    sandbox_set_status(domain, sandbox, SANDBOX_STOPPED);
    expiry_watch(domain, sandbox);
    domain->counters.stopped++;
    wish_keep(wish, "sandbox.stopped");
    sandbox_settle(domain, sandbox);
}

static void on_stopped(void *context, const struct error *failure)
{
    struct sandbox_wish *wish = context;

    if (failure) {
        wish_provider_failed(wish, failure);
        return;
    }
    CRASH_POINT("domain.stop.stopped");
    set_stopped(wish);
}

static void on_unmounted(void *context)
{
    struct sandbox_wish *wish = context;

    if (!wish_is_cut_short(wish))
        provider_stop(wish->domain->options.provider, &wish->sandbox->id, on_stopped, wish);
}

static void on_quiet(void *context, const struct error *failure, const struct inside_answer *answer)
{
    struct sandbox_wish *wish = context;

    (void) failure, (void) answer; /* it was given its chance */
    sandbox_hook_ending(wish->domain, wish->sandbox, on_unmounted, wish);
}

void sandbox_act_stop(struct sandbox_wish *wish)
{
    struct domain *domain = wish->domain;
    struct sandbox *sandbox = wish->sandbox;

    /* It does not run: all that changes is that a use does not start it any more. */
    if (wish->before == SANDBOX_STOPPED || wish->before == SANDBOX_HIBERNATED) {
        if (wish->before == SANDBOX_STOPPED && sandbox->is_ended_by_request)
            wish_end(wish, NULL);
        else
            set_stopped(wish);
        return;
    }
    if (!(provider_capabilities(domain->options.provider) & PROVIDER_RESTART)) {
        wish_refuse(wish, ERR_NOT_IMPLEMENTED, "sandboxes cannot be stopped here, only destroyed");
        return;
    }
    sandbox_set_status(domain, sandbox, SANDBOX_STOPPING);
    if (wish->before == SANDBOX_RUNNING)
        inside_ask(domain, &sandbox->id, INSIDE_QUIESCE, NULL, on_quiet, wish);
    else
        sandbox_hook_ending(domain, sandbox, on_unmounted, wish);
}
