/* Stop: the agent is given a moment, the processes end, the disk stays. Then it is kept. */
#include <stdlib.h>

#include "domain/inside_call.h"
#include "domain/sandbox/expiry.h"
#include "domain/sandbox/sandbox_hooks.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandbox_wish.h"

/* --- steps that others have, too ------------------------------------------------------------- */

void wish_quiesce(void *context)
{
    struct sandbox_wish *wish = context;

    inside_ask(wish->domain, &wish->sandbox->id, INSIDE_QUIESCE, NULL, sequence_asked,
               &wish->sequence);
}

void wish_unmount(void *context)
{
    struct sandbox_wish *wish = context;

    sandbox_hook_ending(wish->domain, wish->sandbox, sequence_hooked, &wish->sequence);
}

void wish_stop(void *context)
{
    struct sandbox_wish *wish = context;

    provider_stop(wish->domain->options.provider, &wish->sandbox->id, sequence_done,
                  &wish->sequence);
}

void wish_set_unstarted(struct sandbox_wish *wish)
{
    inside_forget(wish->domain, &wish->sandbox->id);
    wish->sandbox->started_ms = 0;
    wish->sandbox->has_ended = false;
}

/* --- stop ------------------------------------------------------------------------------------ */

static bool is_by_request(const struct sandbox_wish *wish)
{
    return wish->why == NULL;
}

static void set_stopped(struct sandbox_wish *wish)
{
    struct domain *domain = wish->domain;
    struct sandbox *sandbox = wish->sandbox;

    wish_set_unstarted(wish);
    free(sandbox->inside);
    sandbox->inside = NULL;
    sandbox->is_ended_by_request = is_by_request(wish);
    sandbox_set_reason(sandbox, "%s", wish->why ? wish->why : "stopped on request");
    sandbox_set_status(domain, sandbox, SANDBOX_STOPPED);
    expiry_watch(domain, sandbox);
    domain->counters.stopped++;
    wish_keep(wish, "sandbox.stopped");
    sandbox_settle(domain, sandbox);
}

static bool is_running(const void *context)
{
    const struct sandbox_wish *wish = context;

    return wish->before == SANDBOX_RUNNING;
}

static void stop_end(void *context, const struct error *failure)
{
    if (failure)
        wish_provider_failed(context, failure);
    else
        set_stopped(context);
}

static const struct sequence_step stop_steps[] = {
    {"let its programs write what they have", wish_quiesce, .when = is_running,
     .on_failure = SEQUENCE_GOES_ON},
    {"unmount its buckets", .start = wish_unmount},
    {"end its processes", wish_stop, .point = "domain.stop.stopped"},
    {.text = NULL},
};

const struct sequence_table sandbox_stop_sequence = {"sandbox.stop", stop_steps, stop_end};

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
    sequence_begin(&wish->sequence, domain, &sandbox_stop_sequence, &sandbox->id, wish);
}
