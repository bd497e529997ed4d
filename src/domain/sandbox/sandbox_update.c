/* Update: limits first, because the host may refuse them; then the row; then memory, and the agent
 * is told its variables. While it goes on the sandbox is held: everything but a use of a running
 * one waits, so that no other row of it is written meanwhile.
 *
 *     set_limits ──► commit ──► memory ──► variables ──► answered
 *                       │ fails: the old limits again */
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/event/event.h"
#include "domain/sandbox/expiry.h"
#include "domain/sandbox/sandbox_environment.h"
#include "domain/sandbox/sandbox_hooks.h"
#include "domain/sandbox/sandbox_quota.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandbox_wish.h"

static void finish(struct sandbox_wish *wish, const struct error *failure)
{
    wish->sandbox->is_held = false;
    if (wish->sandbox->status != SANDBOX_DESTROYED)
        expiry_watch(wish->domain, wish->sandbox);
    wish_end(wish, failure);
}

/* --- the last step --------------------------------------------------------------------------- */

static void on_told(void *context, const struct error *failure, const struct inside_answer *answer)
{
    struct sandbox_wish *wish = context;
    struct error err = ERROR_INIT;

    (void) answer;
    if (!failure) {
        finish(wish, NULL);
        return;
    }
    err = *failure;
    wish->sandbox->is_environment_late = true;
    (void) error_wrap(&err, "the variables are kept, and hold from its next start on; now its "
                            "agent did not take them");
    finish(wish, &err);
}

static void tell(struct sandbox_wish *wish)
{
    struct domain *domain = wish->domain;
    struct sandbox *sandbox = wish->sandbox;
    bool has_agent = domain->options.inside &&
                     (provider_capabilities(domain->options.provider) & PROVIDER_AGENT);

    if (!wish->has_new_environment || !has_agent) {
        finish(wish, NULL);
    } else if (sandbox->status == SANDBOX_RUNNING) {
        sandbox_tell_environment(domain, sandbox, on_told, wish);
    } else {
        sandbox->is_environment_late = true; /* told at wake */
        finish(wish, NULL);
    }
}

/* --- its way out ----------------------------------------------------------------------------- */

static void on_way_changed(void *context, const struct error *failure)
{
    struct sandbox_wish *wish = context;
    struct error err = ERROR_INIT;

    if (!failure) {
        tell(wish);
        return;
    }
    err = *failure;
    (void) error_wrap(&err, "the policy is kept, and holds from its next start on; now it could "
                            "not be opened, and nothing gets out");
    finish(wish, &err);
}

/* --- the row --------------------------------------------------------------------------------- */

static void on_limits_back(void *context, const struct error *failure)
{
    struct sandbox_wish *wish = context;

    if (failure)
        LOG_ERROR(wish->domain->options.log, "a sandbox has limits that are not kept",
                  log_text("sandbox", wish->sandbox->id.text), log_text("error", failure->message));
    finish(wish, &wish->failure);
}

static void on_kept(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    struct sandbox_wish *wish = context;
    struct domain *domain = wish->domain;
    struct sandbox *sandbox = wish->sandbox;

    if (!failure) {
        event_kept(domain, receipt);
        sandbox_set_spec(domain, sandbox, wish->spec);
        if (wish->change.fields & (SPEC_BIT(egress) | SPEC_BIT(labels)))
            sandbox_hook_open_way(domain, sandbox, on_way_changed, wish);
        else
            tell(wish);
        return;
    }
    wish->failure = *failure;
    if (wish->has_new_limits && domain->stage == DOMAIN_OPEN)
        provider_set_limits(domain->options.provider, &sandbox->id, &sandbox->spec.limits,
                            on_limits_back, wish);
    else
        finish(wish, &wish->failure);
}

static void keep(struct sandbox_wish *wish)
{
    struct domain *domain = wish->domain;
    struct sandbox *sandbox = wish->sandbox;
    struct store_transaction *change = store_begin(domain->options.store);
    struct sandbox_next next = sandbox_next(sandbox);
    AUTO(sandbox_row) struct sandbox_row row;

    next.spec = wish->spec;
    sandbox->updated_ms = domain_wall_ms(domain);
    sandbox_row_init(&row, sandbox, &next);
    store_update(change, STORE_SANDBOX, row.values);
    sandbox_add_event(domain, change, &wish->caller, sandbox, &next, "sandbox.updated");
    domain_commit(domain, change, on_kept, wish);
}

/* --- the limits ------------------------------------------------------------------------------ */

static void on_limited(void *context, const struct error *failure)
{
    struct sandbox_wish *wish = context;

    if (failure) {
        wish->domain->counters.failed++;
        finish(wish, failure);
        return;
    }
    keep(wish);
}

static bool is_alive(const struct sandbox *sandbox)
{
    return sandbox->status == SANDBOX_RUNNING || sandbox->status == SANDBOX_FROZEN;
}

static int check(struct sandbox_wish *wish, struct error *err)
{
    const struct sandbox *sandbox = wish->sandbox;
    const char *old_name = sandbox->spec.name, *name = wish->spec->name;
    bool is_renamed = name && (!old_name || strcmp(name, old_name) != 0);

    if (sandbox_spec_check(wish->spec, err) < 0)
        return -1;
    if (is_renamed && sandbox_set_by_name(wish->domain, &sandbox->owner, name))
        return error_set(err, ERR_CONFLICT, 0, "there is a sandbox '%s' already", name);
    if (wish->spec->egress && !wish->domain->options.broker)
        return error_set(err, ERR_NOT_IMPLEMENTED, 0, "this daemon has no egress broker");
    if (!wish->has_new_limits)
        return 0;
    if (sandbox_quota_resize(wish->domain, sandbox, &wish->spec->limits, err) < 0)
        return -1;
    if (is_alive(sandbox) &&
        !(provider_capabilities(wish->domain->options.provider) & PROVIDER_LIMITS))
        return error_set(err, ERR_NOT_IMPLEMENTED, 0,
                         "limits cannot be changed here while it runs; stop it first");
    return 0;
}

/* --- the act -------------------------------------------------------------------------------- */

/* Made when its turn comes: another update may have been before it. */
void sandbox_act_update(struct sandbox_wish *wish)
{
    struct domain *domain = wish->domain;
    struct sandbox *sandbox = wish->sandbox;
    struct error err = ERROR_INIT;

    wish->spec = mem_alloc(sizeof(*wish->spec));
    *wish->spec = sandbox_spec_copy(&sandbox->spec);
    sandbox_spec_apply(wish->spec, &wish->change);
    wish->has_new_limits = !limits_equal(&wish->spec->limits, &sandbox->spec.limits);
    wish->has_new_environment =
        (wish->change.fields & SPEC_BIT(environment)) && wish->change.spec.environment.count > 0;
    if (wish->change.fields & SPEC_BIT(egress))
        wish->has_new_environment = true;
    if (check(wish, &err) < 0) {
        wish_end(wish, &err);
        return;
    }
    sandbox->is_held = true;
    wish->has_new_limits = wish->has_new_limits && is_alive(sandbox);
    if (wish->has_new_limits)
        provider_set_limits(domain->options.provider, &sandbox->id, &wish->spec->limits, on_limited,
                            wish);
    else
        keep(wish);
}
