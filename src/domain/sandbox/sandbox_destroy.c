/* Destroy: the row goes first, with everything that hangs on it, then the sandbox, then the answer.
 * What dies in between is found by recovery as a sandbox without a row, and taken down. */
#include "base/crash_point.h"
#include "domain/event/event.h"
#include "domain/inside_call.h"
#include "domain/orphan.h"
#include "domain/sandbox/expiry.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandbox_wish.h"

static void on_gone(void *context)
{
    struct sandbox_wish *wish = context;

    CRASH_POINT("domain.destroy.gone");
    wish_end(wish, NULL);
}

/* It is gone for everybody. */
static void leave_memory(struct domain *domain, struct sandbox *sandbox)
{
    struct error gone = ERROR_INIT;

    for (size_t i = 0; domain_modules[i]; i++)
        if (domain_modules[i]->destroyed)
            domain_modules[i]->destroyed(domain, &sandbox->id);
    inside_forget(domain, &sandbox->id);
    expiry_forget(domain, sandbox);
    sandbox_set_unidentify(domain, sandbox);
    sandbox_set_unreserve(domain, sandbox);
    sandbox->status = SANDBOX_DESTROYED;
    list_remove(&sandbox->unkept);
    list_remove(&sandbox->link);
    sandbox_unref(sandbox); /* the list's */
    (void) error_set(&gone, ERR_NOT_FOUND, 0, "sandbox %s was destroyed", sandbox->id.text);
    sandbox_fail_waiting(domain, sandbox, &gone);
}

static void on_kept(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    struct sandbox_wish *wish = context;
    struct domain *domain = wish->domain;
    struct sandbox *sandbox = wish->sandbox;

    if (failure) {
        sandbox_set_status(domain, sandbox, wish->before);
        expiry_watch(domain, sandbox);
        wish_end(wish, failure);
        return;
    }
    CRASH_POINT("domain.destroy.kept");
    event_kept(domain, receipt);
    domain->counters.destroyed++;
    wish->is_over = true;
    leave_memory(domain, sandbox);
    sandbox_orphan(domain, &sandbox->id, on_gone, wish);
}

void sandbox_act_destroy(struct sandbox_wish *wish)
{
    struct domain *domain = wish->domain;
    struct sandbox *sandbox = wish->sandbox;
    struct store_transaction *change = store_begin(domain->options.store);
    const struct store_condition is_it = {.column = STORE_SANDBOX_ID,
                                          .comparison = STORE_EQUAL,
                                          .value = store_text(sandbox->id.text)};

    if (wish->why)
        sandbox_set_reason(sandbox, "%s", wish->why);
    store_delete(change, STORE_SANDBOX, &is_it, 1);
    for (size_t i = 0; domain_modules[i]; i++)
        if (domain_modules[i]->destroying)
            domain_modules[i]->destroying(domain, change, sandbox);
    sandbox->status = SANDBOX_DESTROYED; /* for the event only: nobody sees it before it is so */
    sandbox_add_event(domain, change, &wish->caller, sandbox, NULL, "sandbox.deleted");
    sandbox->status = wish->before;
    sandbox_set_status(domain, sandbox, SANDBOX_STOPPING);
    domain_commit(domain, change, on_kept, wish);
}

/* --- those of the provider whose row is gone, or never was --------------------------------------- */

static const struct orphan_kind orphan_sandbox = {
    .noun = "sandbox",
    .failure = "a sandbox cannot be taken down, and will be tried again",
    .take_down = provider_destroy,
};

void sandbox_orphan(struct domain *domain, const struct id *id, void (*done)(void *context),
                    void *context)
{
    orphan_add(domain, &domain->sandboxes->orphans, &orphan_sandbox, id, done, context);
}

void sandbox_orphans_retry(struct domain *domain)
{
    orphans_retry(&domain->sandboxes->orphans);
}

void sandbox_orphans_end(struct domain *domain)
{
    orphans_end(&domain->sandboxes->orphans);
}
