#include "domain/sandbox/expiry.h"

#include <stdlib.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/inside_call.h"
#include "domain/sandbox/sandbox_hooks.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandbox_wish.h"
#include "domain/sandbox/schedule.h"

#define NS_PER_MS UINT64_C(1000000)
#define NEVER     UINT64_MAX
#define JUMP_MS   1500 /* a tick may be late, a clock adjusted: more is a jump */
#define SECOND_NS (1000 * NS_PER_MS)

struct expiry {
    struct schedule schedule;
    int64_t wall_ms; /* at the last tick; 0: there was none */
    uint64_t now_ns;
};

struct expiry *expiry_new(void)
{
    return mem_alloc(sizeof(struct expiry));
}

void expiry_free(struct expiry *expiry)
{
    if (!expiry)
        return;
    schedule_done(&expiry->schedule);
    free(expiry);
}

/* --- when is what due? NEVER: not at all ------------------------------------------------------ */

static uint64_t lifetime_end(const struct domain *domain, const struct sandbox *sandbox)
{
    uint64_t lifetime_ms = sandbox->spec.lifetime_ms;
    int64_t left_ms;

    if (lifetime_ms == 0)
        return NEVER;
    left_ms = sandbox->created_ms + (int64_t) lifetime_ms - domain_wall_ms(domain);
    return left_ms <= 0 ? 0 : domain_now_ns(domain) + (uint64_t) left_ms * NS_PER_MS;
}

static uint64_t run_end(const struct domain *domain, const struct sandbox *sandbox)
{
    (void) domain;
    if (sandbox->spec.max_runtime_ms == 0 ||
        (sandbox->status != SANDBOX_RUNNING && sandbox->status != SANDBOX_FROZEN))
        return NEVER;
    return sandbox->started_ns + sandbox->spec.max_runtime_ms * NS_PER_MS;
}

static uint64_t idle_end(const struct domain *domain, const struct sandbox *sandbox)
{
    const struct sandbox_spec *spec = &sandbox->spec;

    if (sandbox->status != SANDBOX_RUNNING || spec->keep_alive || spec->sleep_after_ms == 0 ||
        sandbox->uses > 0 || sandbox->is_asked ||
        !(provider_capabilities(domain->options.provider) & (PROVIDER_FREEZE | PROVIDER_RESTART)))
        return NEVER;
    return sandbox->idle_since_ns + spec->sleep_after_ms * NS_PER_MS;
}

static bool can(const struct domain *domain, unsigned int capability)
{
    return provider_capabilities(domain->options.provider) & capability;
}

/* How long it sleeps at most in the tier where it is; what the spec does not say the daemon does.
 */
static uint64_t tier_end(const struct sandbox *sandbox, uint64_t wanted_ms, uint64_t default_ms)
{
    uint64_t time_ms = wanted_ms ? wanted_ms : default_ms;

    if (time_ms == 0 || time_ms == SANDBOX_NEVER)
        return NEVER;
    return sandbox->asleep_ns + time_ms * NS_PER_MS;
}

static uint64_t freeze_end(const struct domain *domain, const struct sandbox *sandbox)
{
    if (sandbox->status != SANDBOX_FROZEN || sandbox->is_reclaimed ||
        !can(domain, PROVIDER_RECLAIM))
        return NEVER;
    return tier_end(sandbox, sandbox->spec.freeze_for_ms, domain->options.reclaim_after_ms);
}

static uint64_t memory_end(const struct domain *domain, const struct sandbox *sandbox)
{
    if (sandbox->status != SANDBOX_FROZEN || !can(domain, PROVIDER_RESTART))
        return NEVER;
    return tier_end(sandbox, sandbox->spec.hibernate_after_ms, domain->options.hibernate_after_ms);
}

static uint64_t disk_end(const struct domain *domain, const struct sandbox *sandbox)
{
    uint64_t due;

    if (sandbox->status != SANDBOX_HIBERNATED || sandbox->stored || sandbox->is_disk_lost ||
        sandbox->is_saving || !domain->options.vault || !can(domain, PROVIDER_RESTART))
        return NEVER;
    due = tier_end(sandbox, sandbox->spec.offload_after_ms, domain->options.offload_after_ms);
    return due < sandbox->save_ns ? sandbox->save_ns : due;
}

/* What an offload, or a crash in the middle of one, left behind. */
static uint64_t left_end(const struct domain *domain, const struct sandbox *sandbox)
{
    (void) domain;
    return sandbox->stored && sandbox->is_disk_left &&
                   (sandbox->status == SANDBOX_HIBERNATED || sandbox->status == SANDBOX_STOPPED)
               ? 0
               : NEVER;
}

/* --- what is done ---------------------------------------------------------------------------- */

static void wish(struct domain *domain, struct sandbox *sandbox, enum sandbox_action action,
                 void (*act)(struct sandbox_wish *wish), const char *why)
{
    struct sandbox_wish *made = wish_make(domain, NULL, sandbox, action, act, NULL, NULL);

    made->why = why;
    wish_begin(made);
}

static void destroy(struct domain *domain, struct sandbox *sandbox)
{
    wish(domain, sandbox, SANDBOX_ACTION_DESTROY, sandbox_act_destroy, "its lifetime is over");
}

static void stop(struct domain *domain, struct sandbox *sandbox)
{
    wish(domain, sandbox, SANDBOX_ACTION_STOP, sandbox_act_stop,
         "it ran for as long as it may at once");
}

static void hibernate(struct domain *domain, struct sandbox *sandbox)
{
    struct sandbox_wish *made =
        wish_make(domain, NULL, sandbox, SANDBOX_ACTION_SLEEP, sandbox_act_hibernate, NULL, NULL);

    made->why = "asleep for long";
    wish_begin_anyway(made);
}

static void reclaim(struct domain *domain, struct sandbox *sandbox)
{
    struct sandbox_wish *made =
        wish_make(domain, NULL, sandbox, SANDBOX_ACTION_SLEEP, sandbox_act_reclaim, NULL, NULL);

    made->why = "frozen for long";
    wish_begin_anyway(made);
}

struct asking {
    struct domain *domain;
    struct sandbox *sandbox; /* a reference */
};

/* What the agent says moves the idle time forward, never back. */
static void note_activity(struct domain *domain, struct sandbox *sandbox,
                          const struct inside_activity *activity)
{
    uint64_t now = domain_now_ns(domain);
    uint64_t idle_ms = activity->is_busy ? 0 : activity->idle_ms;
    uint64_t since = idle_ms < now / NS_PER_MS ? now - idle_ms * NS_PER_MS : 0;

    if (since > sandbox->idle_since_ns)
        sandbox->idle_since_ns = since;
}

static void on_activity(void *context, const struct error *failure,
                        const struct inside_answer *answer)
{
    struct asking *asking = context;
    struct domain *domain = asking->domain;
    struct sandbox *sandbox = asking->sandbox;

    free(asking);
    sandbox->is_asked = false;
    if (!failure)
        note_activity(domain, sandbox, &answer->activity);
    if (domain->stage == DOMAIN_OPEN && sandbox->status != SANDBOX_DESTROYED) {
        if (!sandbox_is_busy(sandbox) && idle_end(domain, sandbox) <= domain_now_ns(domain))
            wish(domain, sandbox, SANDBOX_ACTION_SLEEP, sandbox_act_sleep, "idle");
        else
            expiry_watch(domain, sandbox);
    }
    sandbox_unref(sandbox);
}

static void ask(struct domain *domain, struct sandbox *sandbox)
{
    struct asking *asking = mem_alloc(sizeof(*asking));

    asking->domain = domain;
    asking->sandbox = sandbox_ref(sandbox);
    sandbox->is_asked = true;
    inside_ask(domain, &sandbox->id, INSIDE_ACTIVITY, NULL, on_activity, asking);
}

/* In this order: what ends more comes first. */
static const struct {
    uint64_t (*due)(const struct domain *domain, const struct sandbox *sandbox);
    void (*act)(struct domain *domain, struct sandbox *sandbox);
} rules[] = {
    {lifetime_end, destroy},
    {run_end, stop},
    {idle_end, ask},
    {memory_end, hibernate},
    {freeze_end, reclaim},
    {disk_end, sandbox_offload},
    {left_end, sandbox_offload},
    {sandbox_hook_due, sandbox_hook_act},
};

/* --- the schedule ---------------------------------------------------------------------------- */

static bool is_mortal(const struct sandbox *sandbox)
{
    return sandbox->status != SANDBOX_CREATING && sandbox->status != SANDBOX_DESTROYED;
}

static uint64_t next_due(const struct domain *domain, const struct sandbox *sandbox)
{
    uint64_t next = NEVER;

    for (size_t i = 0; i < ARRAY_COUNT(rules); i++) {
        uint64_t due = rules[i].due(domain, sandbox);

        next = due < next ? due : next;
    }
    return next != NEVER && next < sandbox->patience_ns ? sandbox->patience_ns : next;
}

void expiry_watch(struct domain *domain, struct sandbox *sandbox)
{
    uint64_t due;

    /* What is under way comes by again when it is over. */
    if (!domain->options.provider || !is_mortal(sandbox) || sandbox_is_busy(sandbox))
        return;
    due = next_due(domain, sandbox);
    if (due != NEVER)
        schedule_add(&domain->expiry->schedule, sandbox, due);
}

void expiry_forget(struct domain *domain, struct sandbox *sandbox)
{
    schedule_remove(&domain->expiry->schedule, sandbox);
}

void expiry_postpone(struct domain *domain, struct sandbox *sandbox)
{
    sandbox->patience_ns = domain_now_ns(domain) + EXPIRY_AGAIN_MS * NS_PER_MS;
    expiry_watch(domain, sandbox);
}

static bool act(struct domain *domain, struct sandbox *sandbox, uint64_t now)
{
    if (sandbox->patience_ns > now)
        return false;
    for (size_t i = 0; i < ARRAY_COUNT(rules); i++)
        if (rules[i].due(domain, sandbox) <= now) {
            rules[i].act(domain, sandbox);
            return true;
        }
    return false;
}

/* The wall clock went ahead: lifetimes are over sooner than it looked. */
static void notice_jump(struct domain *domain)
{
    struct expiry *expiry = domain->expiry;
    int64_t wall = domain_wall_ms(domain);
    uint64_t now = domain_now_ns(domain);
    int64_t passed_ms = (int64_t) ((now - expiry->now_ns) / NS_PER_MS);
    bool has_jumped = expiry->wall_ms && wall - expiry->wall_ms > passed_ms + JUMP_MS;

    expiry->wall_ms = wall;
    expiry->now_ns = now;
    if (!has_jumped)
        return;
    LOG_WARNING(domain->options.log, "the clock went ahead: lifetimes are looked at again");
    LIST_EACH (&domain->sandboxes->all, at)
        expiry_watch(domain, CONTAINER_OF(at, struct sandbox, link));
}

/* --- short of memory ------------------------------------------------------------------------- */

/* Whoever holds most memory, by the limits of what runs and what is frozen, causes most of the
 * shortage: his sleeping sandboxes give up theirs before those of others do. */
static bool goes_before(const struct domain *domain, const struct sandbox *a,
                        const struct sandbox *b)
{
    uint64_t of_a = sandbox_set_usage(domain, &a->owner)->held_bytes;
    uint64_t of_b = sandbox_set_usage(domain, &b->owner)->held_bytes;

    return of_a != of_b ? of_a > of_b : a->asleep_ns < b->asleep_ns;
}

/* The one that is frozen for longest of who holds most, and may be asked. */
static struct sandbox *longest_frozen(const struct domain *domain, bool with_reclaimed)
{
    uint64_t now = domain_now_ns(domain);
    struct sandbox *longest = NULL;

    LIST_EACH (&domain->sandboxes->all, at) {
        struct sandbox *sandbox = CONTAINER_OF(at, struct sandbox, link);

        if (sandbox->status == SANDBOX_FROZEN && !sandbox_is_busy(sandbox) &&
            sandbox->patience_ns <= now && (with_reclaimed || !sandbox->is_reclaimed) &&
            (!longest || goes_before(domain, sandbox, longest)))
            longest = sandbox;
    }
    return longest;
}

static bool give_up_some(struct domain *domain)
{
    struct sandbox *sandbox = can(domain, PROVIDER_RECLAIM) ? longest_frozen(domain, false) : NULL;

    if (sandbox) {
        reclaim(domain, sandbox);
        return true;
    }
    sandbox = can(domain, PROVIDER_RESTART) ? longest_frozen(domain, true) : NULL;
    if (sandbox)
        hibernate(domain, sandbox);
    return sandbox != NULL;
}

/* A few at a time: what they give back is looked at before others have to go. */
static void relieve(struct domain *domain)
{
    const struct domain_options *options = &domain->options;
    size_t begun = 0;
    int percent;

    if (!options->memory_available || !options->provider ||
        domain->sandboxes->counts[SANDBOX_FROZEN] == 0)
        return;
    percent = options->memory_available(options->context);
    if (percent < 0 || (unsigned int) percent >= options->memory_pressure)
        return;
    while (begun < EXPIRY_RELIEVED_PER_TICK && give_up_some(domain))
        begun++;
    if (begun)
        LOG_WARNING(options->log, "memory is short: sleeping sandboxes give up theirs",
                    log_number("available_percent", percent),
                    log_number("sandboxes", (int64_t) begun));
}

void expiry_tick(struct domain *domain)
{
    uint64_t now = domain_now_ns(domain);
    struct sandbox *sandbox;
    size_t begun = 0;

    notice_jump(domain);
    while (begun < EXPIRY_PER_TICK_MAX &&
           (sandbox = schedule_pop(&domain->expiry->schedule, now))) {
        if (sandbox_is_busy(sandbox))
            schedule_add(&domain->expiry->schedule, sandbox, now + SECOND_NS);
        else if (act(domain, sandbox, now))
            begun++;
        else
            expiry_watch(domain, sandbox);
    }
    relieve(domain);
}
