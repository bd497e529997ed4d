/* Sleep, with its memory where the host can freeze_processes, else with its disk only; and from the first to
 * the second, when it was frozen for long.
 *
 * Its sessions are in the row before anything is ended, so that whoever finds it without processes
 * after a crash can bring them back. A row with sessions that says running or frozen is one of
 * these; recovery knows. The workspace is mirrored where that was asked for. When either fails the
 * sandbox stays awake.
 *
 * Then it is kept. An agent that is asked and does not answer holds up nothing. */
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/sandbox/expiry.h"
#include "domain/sandbox/sandbox_hooks.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandbox_wish.h"

static void ignore_answer(void *context, const struct error *failure,
                          const struct inside_answer *answer)
{
    (void) context, (void) failure, (void) answer;
}

/* It is awake after all: its agent was told to hold still. */
static void wake_agent(struct sandbox_wish *wish)
{
    if (wish->domain->stage == DOMAIN_OPEN)
        inside_ask(wish->domain, &wish->sandbox->id, INSIDE_RESUME, NULL, ignore_answer, NULL);
}

/* It sleeps now, and that is kept. */
static void set_asleep(struct sandbox_wish *wish, enum sandbox_status status, const char *reason)
{
    struct domain *domain = wish->domain;
    struct sandbox *sandbox = wish->sandbox;

    sandbox_set_reason(sandbox, "%s%s", wish->why ? wish->why : "put to sleep on request", reason);
    sandbox->asleep_ns = domain_now_ns(domain);
    sandbox_set_status(domain, sandbox, status);
    expiry_watch(domain, sandbox);
    domain->counters.slept++;
    domain_latency_add(domain, &domain->counters.saves[sandbox_tier(sandbox)], wish->asked_ns);
    wish_keep(wish, "sandbox.hibernated");
    sandbox_settle(domain, sandbox);
}

/* --- with its memory ------------------------------------------------------------------------- */

static void freeze_processes(void *context)
{
    struct sandbox_wish *wish = context;

    provider_freeze(wish->domain->options.provider, &wish->sandbox->id, sequence_done,
                    &wish->sequence);
}

static void freeze_end(void *context, const struct error *failure)
{
    struct sandbox_wish *wish = context;

    if (failure) {
        wake_agent(wish);
        wish_provider_failed(wish, failure);
        return;
    }
    wish->sandbox->is_reclaimed = false;
    set_asleep(wish, SANDBOX_FROZEN, "");
}

static const struct sequence_step freeze_steps[] = {
    {"let its programs write what they have", wish_quiesce, .on_failure = SEQUENCE_GOES_ON},
    {"freeze it", freeze_processes, .point = "domain.sleep.frozen"},
    {.text = NULL},
};

const struct sequence_table sandbox_freeze_sequence = {"sandbox.freeze", freeze_steps, freeze_end};

/* --- with its disk only ---------------------------------------------------------------------- */

static bool is_thawed_first(const void *context)
{
    const struct sandbox_wish *wish = context;

    return wish->act == sandbox_act_hibernate;
}

static void on_thawed_to_save(void *context, const struct error *failure)
{
    struct sandbox_wish *wish = context;

    if (!failure)
        wish->before = SANDBOX_RUNNING; /* what it is from now on */
    sequence_next(&wish->sequence, failure);
}

static void thaw_to_save(void *context)
{
    struct sandbox_wish *wish = context;

    provider_thaw(wish->domain->options.provider, &wish->sandbox->id, on_thawed_to_save, wish);
}

static void forget_sessions(struct sandbox *sandbox)
{
    free(sandbox->inside);
    sandbox->inside = NULL;
}

static void on_sessions_saved(void *context, const struct error *failure,
                              const struct inside_answer *answer)
{
    struct sandbox_wish *wish = context;
    struct error err = ERROR_INIT;

    forget_sessions(wish->sandbox);
    if (!failure && answer->text && strlen(answer->text) <= SANDBOX_INSIDE_MAX)
        wish->sandbox->inside = mem_copy_text(answer->text);
    else if (!failure)
        (void) error_set(&err, ERR_TOO_LARGE, 0, "they are too large");
    sequence_next(&wish->sequence, failure ? failure : err.code == ERR_NONE ? NULL : &err);
}

static void save_sessions(void *context)
{
    struct sandbox_wish *wish = context;

    inside_ask(wish->domain, &wish->sandbox->id, INSIDE_SAVE, NULL, on_sessions_saved, wish);
}

static bool has_sessions(const void *context)
{
    const struct sandbox_wish *wish = context;

    return wish->sandbox->inside;
}

/* The row says what it said before, and has the sessions, too. */
static void keep_sessions(void *context)
{
    struct sandbox_wish *wish = context;
    AUTO(sandbox_row) struct sandbox_row row;
    struct store_transaction *change = store_begin(wish->domain->options.store);
    struct sandbox_next next = sandbox_next(wish->sandbox);

    next.status = is_thawed_first(wish) ? SANDBOX_FROZEN : SANDBOX_RUNNING;
    sandbox_row_init(&row, wish->sandbox, &next);
    store_update(change, STORE_SANDBOX, row.values);
    domain_commit(wish->domain, change, sequence_kept, &wish->sequence);
}

static void sync_workspace(void *context)
{
    struct sandbox_wish *wish = context;

    sandbox_hook_sleeping(wish->domain, wish->sandbox, sequence_done, &wish->sequence);
}

/* What cannot be saved stays awake. */
static void stay_awake(struct sandbox_wish *wish, const struct error *failure)
{
    struct domain *domain = wish->domain;
    struct sandbox *sandbox = wish->sandbox;

    domain->counters.failed++;
    wake_agent(wish);
    sandbox_set_status(domain, sandbox, wish->before);
    sandbox_set_reason(sandbox, "it stays awake: %s", failure->message);
    forget_sessions(sandbox);
    sandbox_keep(domain, sandbox, "sandbox.save_failed");
    expiry_watch(domain, sandbox);
    wish_fail(wish, failure);
    sandbox_settle(domain, sandbox);
}

/* It goes on, perhaps thawed: its row does not say so. When nobody is there who knows whether it
 * was stopped, the row stays: it sleeps, one way or the other. */
static void stay_awake_unstopped(struct sandbox_wish *wish, const struct error *failure)
{
    struct sandbox *sandbox = wish->sandbox;

    wish_provider_failed(wish, failure);
    if (sandbox->status != SANDBOX_RUNNING || failure->code == ERR_UNAVAILABLE)
        return;
    forget_sessions(sandbox);
    sandbox_keep(wish->domain, sandbox, is_thawed_first(wish) ? "sandbox.woken" : NULL);
}

static void hibernate_end(void *context, const struct error *failure)
{
    struct sandbox_wish *wish = context;

    if (failure && sequence_is_at(&wish->sequence, wish_stop)) {
        stay_awake_unstopped(wish, failure);
    } else if (failure && (sequence_is_at(&wish->sequence, thaw_to_save) ||
                           wish->domain->stage != DOMAIN_OPEN)) {
        wish_provider_failed(wish, failure);
    } else if (failure) {
        stay_awake(wish, failure);
    } else {
        wish_set_unstarted(wish);
        set_asleep(wish, SANDBOX_HIBERNATED, "; its processes were ended, its disk is kept");
    }
}

static const struct sequence_step hibernate_steps[] = {
    {"let it go on", thaw_to_save, .when = is_thawed_first},
    {"save its sessions", save_sessions, .on_failure = SEQUENCE_WARNS},
    {"keep its sessions", keep_sessions, .when = has_sessions, .point = "domain.sleep.saved"},
    {"let its programs write what they have", wish_quiesce, .on_failure = SEQUENCE_GOES_ON},
    {"sync its workspace", .start = sync_workspace},
    {"unmount its buckets", .start = wish_unmount},
    {"end its processes", wish_stop, .point = "domain.sleep.stopped"},
    {.text = NULL},
};

const struct sequence_table sandbox_hibernate_sequence = {"sandbox.hibernate", hibernate_steps,
                                                          hibernate_end};

/* --- the beginnings -------------------------------------------------------------------------- */

void sandbox_act_sleep(struct sandbox_wish *wish)
{
    struct domain *domain = wish->domain;
    unsigned int able = provider_capabilities(domain->options.provider);

    if (!(able & (PROVIDER_FREEZE | PROVIDER_RESTART))) {
        wish_refuse(wish, ERR_NOT_IMPLEMENTED, "sandboxes cannot sleep here");
        return;
    }
    sandbox_set_status(domain, wish->sandbox, SANDBOX_STOPPING);
    sequence_begin(&wish->sequence, domain,
                   able & PROVIDER_FREEZE ? &sandbox_freeze_sequence : &sandbox_hibernate_sequence,
                   &wish->sandbox->id, wish);
}

void sandbox_act_hibernate(struct sandbox_wish *wish)
{
    sandbox_set_status(wish->domain, wish->sandbox, SANDBOX_STOPPING);
    sequence_begin(&wish->sequence, wish->domain, &sandbox_hibernate_sequence, &wish->sandbox->id,
                   wish);
}
