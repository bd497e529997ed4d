/* Sleep:
 *
 *     the host can freeze:   quiesce ──► freeze ──► frozen: memory and processes are kept
 *     it cannot:             save ──► quiesce ──► sync ──► stop ──► hibernated: the disk is kept
 *     frozen for long:       thaw ──► save ──► quiesce ──► sync ──► stop ──► hibernated
 *
 * Save: its sessions are in the row before anything is ended, so that whoever finds it without
 * processes after a crash can bring them back. A row with sessions that says running or frozen is
 * one of these; recovery knows. Sync: the workspace is mirrored, where that was asked for. When
 * either fails the sandbox stays awake.
 *
 * Then it is kept. An agent that is asked and does not answer holds up nothing. */
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/crash_point.h"
#include "base/memory.h"
#include "domain/inside_call.h"
#include "domain/sandbox/expiry.h"
#include "domain/sandbox/sandbox_hooks.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandbox_wish.h"

static void ignore(void *context, const struct error *failure, const struct inside_answer *answer)
{
    (void) context, (void) failure, (void) answer;
}

/* --- with its memory ------------------------------------------------------------------------- */

static void on_frozen(void *context, const struct error *failure)
{
    struct sandbox_wish *wish = context;
    struct domain *domain = wish->domain;
    struct sandbox *sandbox = wish->sandbox;

    if (failure) {
        if (domain->stage == DOMAIN_OPEN)
            inside_ask(domain, &sandbox->id, INSIDE_RESUME, NULL, ignore, NULL);
        wish_provider_failed(wish, failure);
        return;
    }
    CRASH_POINT("domain.sleep.frozen");
    sandbox_set_reason(sandbox, "%s", wish->why ? wish->why : "put to sleep on request");
    sandbox->asleep_ns = domain_now_ns(domain);
    sandbox->is_reclaimed = false;
    sandbox_set_status(domain, sandbox, SANDBOX_FROZEN);
    expiry_watch(domain, sandbox);
    domain->counters.slept++;
    domain_latency_add(domain, &domain->counters.saves[SANDBOX_TIER_FROZEN], wish->asked_ns);
    wish_keep(wish, "sandbox.hibernated");
    sandbox_settle(domain, sandbox);
}

static void on_quiet_to_freeze(void *context, const struct error *failure,
                               const struct inside_answer *answer)
{
    struct sandbox_wish *wish = context;

    (void) failure, (void) answer; /* it was given its chance */
    if (!wish_is_cut_short(wish))
        provider_freeze(wish->domain->options.provider, &wish->sandbox->id, on_frozen, wish);
}

/* --- with its disk only ---------------------------------------------------------------------- */

static void forget_sessions(struct sandbox *sandbox)
{
    free(sandbox->inside);
    sandbox->inside = NULL;
}

static void on_stopped(void *context, const struct error *failure)
{
    struct sandbox_wish *wish = context;
    struct domain *domain = wish->domain;
    struct sandbox *sandbox = wish->sandbox;

    if (failure) {
        wish_provider_failed(wish, failure);
        /* It goes on, perhaps thawed: its row does not say so. When nobody is there who knows
         * whether it was stopped, the row stays: it sleeps, one way or the other. */
        if (sandbox->status == SANDBOX_RUNNING && failure->code != ERR_UNAVAILABLE) {
            forget_sessions(sandbox);
            sandbox_keep(domain, sandbox,
                         wish->act == sandbox_act_hibernate ? "sandbox.woken" : NULL);
        }
        return;
    }
    CRASH_POINT("domain.sleep.stopped");
    inside_forget(domain, &sandbox->id);
    sandbox_set_reason(sandbox, "%s; its processes were ended, its disk is kept",
                       wish->why ? wish->why : "put to sleep on request");
    sandbox->started_ms = 0;
    sandbox->has_ended = false;
    sandbox->asleep_ns = domain_now_ns(domain);
    sandbox_set_status(domain, sandbox, SANDBOX_HIBERNATED);
    expiry_watch(domain, sandbox);
    domain->counters.slept++;
    domain_latency_add(domain, &domain->counters.saves[SANDBOX_TIER_HIBERNATED], wish->asked_ns);
    wish_keep(wish, "sandbox.hibernated");
    sandbox_settle(domain, sandbox);
}

static void on_unmounted(void *context)
{
    struct sandbox_wish *wish = context;

    if (!wish_is_cut_short(wish))
        provider_stop(wish->domain->options.provider, &wish->sandbox->id, on_stopped, wish);
}

/* What cannot be saved stays awake. */
static void stay_awake(struct sandbox_wish *wish, const char *what, const struct error *failure)
{
    struct domain *domain = wish->domain;
    struct sandbox *sandbox = wish->sandbox;

    domain->counters.failed++;
    inside_ask(domain, &sandbox->id, INSIDE_RESUME, NULL, ignore, NULL);
    sandbox_set_status(domain, sandbox, wish->before);
    sandbox_set_reason(sandbox, "it stays awake: %s: %s", what, failure->message);
    forget_sessions(sandbox);
    sandbox_keep(domain, sandbox, "sandbox.save_failed");
    expiry_watch(domain, sandbox);
    wish_fail(wish, failure);
    sandbox_settle(domain, sandbox);
}

static void on_synced(void *context, const struct error *failure)
{
    struct sandbox_wish *wish = context;

    if (wish_is_cut_short(wish))
        return;
    if (failure)
        stay_awake(wish, "its workspace could not be synced", failure);
    else
        sandbox_hook_ending(wish->domain, wish->sandbox, on_unmounted, wish);
}

static void stop(struct sandbox_wish *wish)
{
    sandbox_hook_sleeping(wish->domain, wish->sandbox, on_synced, wish);
}

static void on_quiet_to_stop(void *context, const struct error *failure,
                             const struct inside_answer *answer)
{
    (void) failure, (void) answer;
    stop(context);
}

static void on_sessions_kept(void *context, const struct error *failure,
                             const struct store_receipt *receipt)
{
    struct sandbox_wish *wish = context;

    (void) receipt;
    if (wish_is_cut_short(wish))
        return;
    if (failure) {
        stay_awake(wish, "its sessions could not be kept", failure);
        return;
    }
    CRASH_POINT("domain.sleep.saved");
    inside_ask(wish->domain, &wish->sandbox->id, INSIDE_QUIESCE, NULL, on_quiet_to_stop, wish);
}

/* The row says what it said before, and has the sessions, too. */
static void keep_sessions(struct sandbox_wish *wish)
{
    AUTO(sandbox_row) struct sandbox_row row;
    struct store_transaction *change = store_begin(wish->domain->options.store);
    struct sandbox_next next = sandbox_next(wish->sandbox);

    next.status = wish->act == sandbox_act_hibernate ? SANDBOX_FROZEN : SANDBOX_RUNNING;
    sandbox_row_init(&row, wish->sandbox, &next);
    store_update(change, STORE_SANDBOX, row.values);
    domain_commit(wish->domain, change, on_sessions_kept, wish);
}

static void on_saved(void *context, const struct error *failure, const struct inside_answer *answer)
{
    struct sandbox_wish *wish = context;
    struct sandbox *sandbox = wish->sandbox;

    forget_sessions(sandbox);
    if (wish_is_cut_short(wish))
        return;
    if (!failure && answer->text && strlen(answer->text) <= SANDBOX_INSIDE_MAX) {
        sandbox->inside = mem_copy_text(answer->text);
        keep_sessions(wish);
        return;
    }
    LOG_WARNING(wish->domain->options.log, "sessions of a sandbox will not come back at wake",
                log_text("sandbox", sandbox->id.text),
                log_text("why", failure ? failure->message : "they are too large"));
    inside_ask(wish->domain, &sandbox->id, INSIDE_QUIESCE, NULL, on_quiet_to_stop, wish);
}

/* --- the beginnings -------------------------------------------------------------------------- */

void sandbox_act_sleep(struct sandbox_wish *wish)
{
    struct domain *domain = wish->domain;
    struct sandbox *sandbox = wish->sandbox;
    unsigned int able = provider_capabilities(domain->options.provider);

    if (!(able & (PROVIDER_FREEZE | PROVIDER_RESTART))) {
        wish_refuse(wish, ERR_NOT_IMPLEMENTED, "sandboxes cannot sleep here");
        return;
    }
    sandbox_set_status(domain, sandbox, SANDBOX_STOPPING);
    if (able & PROVIDER_FREEZE)
        inside_ask(domain, &sandbox->id, INSIDE_QUIESCE, NULL, on_quiet_to_freeze, wish);
    else
        inside_ask(domain, &sandbox->id, INSIDE_SAVE, NULL, on_saved, wish);
}

static void on_thawed(void *context, const struct error *failure)
{
    struct sandbox_wish *wish = context;

    if (failure) {
        wish_provider_failed(wish, failure);
        return;
    }
    wish->before = SANDBOX_RUNNING; /* what it is from now on */
    if (!wish_is_cut_short(wish))
        inside_ask(wish->domain, &wish->sandbox->id, INSIDE_SAVE, NULL, on_saved, wish);
}

void sandbox_act_hibernate(struct sandbox_wish *wish)
{
    struct domain *domain = wish->domain;

    sandbox_set_status(domain, wish->sandbox, SANDBOX_STOPPING);
    provider_thaw(domain->options.provider, &wish->sandbox->id, on_thawed, wish);
}
