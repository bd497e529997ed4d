/* How deep a sandbox sleeps, and the step from frozen to reclaimed: its memory goes to swap, its
 * processes stay. The sandbox is held meanwhile. */
#include <inttypes.h>
#include <stdio.h>

#include "base/auto.h"
#include "domain/event/event.h"
#include "domain/sandbox/expiry.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandbox_wish.h"

#define EVENT_DATA_MAX 128

static const char *const tier_texts[SANDBOX_TIER_COUNT] = {
    [SANDBOX_TIER_RUNNING] = "running",     [SANDBOX_TIER_FROZEN] = "frozen",
    [SANDBOX_TIER_RECLAIMED] = "reclaimed", [SANDBOX_TIER_HIBERNATED] = "hibernated",
    [SANDBOX_TIER_OFFLOADED] = "offloaded",
};

_Static_assert(ARRAY_COUNT(((struct domain_counters *) NULL)->wakes) == SANDBOX_TIER_COUNT,
               "one histogram per tier");

const char *sandbox_tier_text(enum sandbox_tier tier)
{
    return tier_texts[tier];
}

enum sandbox_tier sandbox_tier(const struct sandbox *sandbox)
{
    /* While it is being stored, only from the moment that its row says so. */
    if (sandbox->stored && (!sandbox->is_saving || sandbox->is_disk_left))
        return SANDBOX_TIER_OFFLOADED;
    if (sandbox->status == SANDBOX_FROZEN)
        return sandbox->is_reclaimed ? SANDBOX_TIER_RECLAIMED : SANDBOX_TIER_FROZEN;
    if (sandbox->status == SANDBOX_HIBERNATED || sandbox->status == SANDBOX_STOPPED)
        return SANDBOX_TIER_HIBERNATED;
    return SANDBOX_TIER_RUNNING;
}

void domain_latency_add(const struct domain *domain, struct domain_latency *latency,
                        uint64_t since_ns)
{
    static const uint64_t bounds_us[] = {1000, 5000, 10000, 50000, 100000, 500000, 5000000};
    uint64_t took_us = (domain_now_ns(domain) - since_ns) / 1000;
    size_t bucket = 0;

    while (bucket < ARRAY_COUNT(bounds_us) && took_us >= bounds_us[bucket])
        bucket++;
    for (; bucket < DOMAIN_LATENCY_BUCKETS; bucket++)
        latency->buckets[bucket]++;
    latency->us_total += took_us;
}

/* --- reclaim --------------------------------------------------------------------------------- */

static void finish(struct sandbox_wish *wish, const struct error *failure)
{
    wish->sandbox->is_held = false;
    if (wish->sandbox->status != SANDBOX_DESTROYED)
        expiry_watch(wish->domain, wish->sandbox);
    wish_end(wish, failure);
}

static void on_told(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    struct sandbox_wish *wish = context;

    if (!failure)
        event_kept(wish->domain, receipt);
    finish(wish, NULL); /* it has happened, whether it could be told or not */
}

static void on_reclaimed(void *context, const struct error *failure, uint64_t bytes)
{
    struct sandbox_wish *wish = context;
    struct domain *domain = wish->domain;
    struct sandbox *sandbox = wish->sandbox;
    struct store_transaction *change;
    char data[EVENT_DATA_MAX];

    if (failure) {
        finish(wish, failure);
        return;
    }
    sandbox->is_reclaimed = true;
    domain->counters.reclaimed_bytes += bytes;
    domain_latency_add(domain, &domain->counters.saves[SANDBOX_TIER_RECLAIMED], wish->asked_ns);
    (void) snprintf(data, sizeof(data), "{\"sandboxId\":\"%s\",\"bytes\":%" PRIu64 "}",
                    sandbox->id.text, bytes);
    change = store_begin(domain->options.store);
    event_add(domain, change, &wish->caller, &sandbox->owner, sandbox->id.text, "sandbox.reclaimed",
              data);
    domain_commit(domain, change, on_told, wish);
}

void sandbox_act_reclaim(struct sandbox_wish *wish)
{
    wish->sandbox->is_held = true;
    provider_reclaim(wish->domain->options.provider, &wish->sandbox->id, on_reclaimed, wish);
}
