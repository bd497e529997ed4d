/* Sandboxes that end by themselves, and sandboxes that are broken. */

#include "domain/inside_call.h"
#include "domain/sandbox/expiry.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandbox_wish.h"

static void set_ending_reason(struct sandbox *sandbox, const struct ending *ending)
{
    switch (ending->kind) {
    case ENDED_OOM:
        sandbox_set_reason(sandbox, "ended: out of memory");
        break;
    case ENDED_STATUS:
        sandbox_set_reason(sandbox, "ended with status %d", ending->value);
        break;
    case ENDED_SIGNAL:
        sandbox_set_reason(sandbox, "ended by signal %d", ending->value);
        break;
    case ENDED_UNKNOWN:
        sandbox_set_reason(sandbox, "ended, nobody knows how");
        break;
    }
}

/* An end that nobody wished for is an error; one that is not known is not called one. */
static const char *ending_event(const struct ending *ending)
{
    bool is_plain =
        ending->kind == ENDED_UNKNOWN || (ending->kind == ENDED_STATUS && ending->value == 0);

    return is_plain ? "sandbox.stopped" : "sandbox.error";
}

const char *sandbox_set_ended(struct domain *domain, struct sandbox *sandbox)
{
    sandbox->has_ended = false;
    inside_forget(domain, &sandbox->id);
    set_ending_reason(sandbox, &sandbox->ending);
    sandbox->is_ended_by_request = false;
    sandbox->started_ms = 0;
    sandbox_set_status(domain, sandbox, SANDBOX_STOPPED);
    domain->counters.stopped++;
    return ending_event(&sandbox->ending);
}

void sandbox_handle_end(struct domain *domain, struct sandbox *sandbox)
{
    const char *event;

    sandbox->has_ended = false;
    if (sandbox->status != SANDBOX_RUNNING && sandbox->status != SANDBOX_FROZEN)
        return;
    event = sandbox_set_ended(domain, sandbox);
    expiry_watch(domain, sandbox);
    LOG_INFO(domain->options.log, "a sandbox ended", log_text("sandbox", sandbox->id.text),
             log_text("reason", sandbox->reason));
    sandbox_keep(domain, sandbox, event);
}

/* Recovery found it ended and did not know how; now it is told. */
static bool is_explained(const struct sandbox *sandbox)
{
    return sandbox->status == SANDBOX_STOPPED && sandbox->is_unexplained;
}

void sandbox_ended(struct domain *domain, struct sandbox *sandbox, const struct ending *ending)
{
    bool is_late = is_explained(sandbox);

    sandbox->is_unexplained = false;
    sandbox->ending = *ending;
    sandbox->has_ended = true;
    if (domain->stage != DOMAIN_OPEN || sandbox_is_busy(sandbox))
        return;
    sandbox_handle_end(domain, sandbox);
    if (is_late) {
        set_ending_reason(sandbox, ending);
        sandbox_keep(domain, sandbox, NULL);
    }
}

void sandbox_break(struct domain *domain, struct sandbox *sandbox, const char *why)
{
    LOG_ERROR(domain->options.log, "a sandbox is broken", log_text("sandbox", sandbox->id.text),
              log_text("why", why));
    inside_forget(domain, &sandbox->id);
    sandbox_set_reason(sandbox, "%s", why);
    sandbox->started_ms = 0;
    sandbox->has_ended = false;
    sandbox_set_status(domain, sandbox, SANDBOX_ERROR);
    expiry_watch(domain, sandbox);
    sandbox_keep(domain, sandbox, "sandbox.error");
}
