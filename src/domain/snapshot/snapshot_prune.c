/* Snapshots that are made by themselves, and those that go by themselves. */
#include <stdlib.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/sandbox/expiry.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/snapshot/snapshot_internal.h"
#include "domain/snapshot/snapshot_set.h"

#define NS_PER_MS        UINT64_C(1000000)
#define NEVER            UINT64_MAX
#define EXPIRED_AT_ONCE  64 /* the rest is next second's */
#define EXPIRED_AGAIN_MS 10000

/* --- made ------------------------------------------------------------------------------------ */

/* One that does not run does not change. */
uint64_t snapshot_due(const struct domain *domain, const struct sandbox *sandbox)
{
    if (sandbox->spec.snapshot_every_ms == 0 || sandbox->status != SANDBOX_RUNNING ||
        !(provider_capabilities(domain->options.provider) & PROVIDER_SNAPSHOTS))
        return NEVER;
    return sandbox->snapshot_ns + sandbox->spec.snapshot_every_ms * NS_PER_MS;
}

struct making {
    struct domain *domain;
    struct sandbox *sandbox; /* a reference */
};

static void on_made(void *context, const struct error *failure, struct snapshot *snapshot,
                    const struct snapshot_made *how)
{
    AUTO(free) struct making *making = context;
    struct domain *domain = making->domain;

    (void) snapshot, (void) how;
    if (failure && domain->stage == DOMAIN_OPEN)
        LOG_WARNING(domain->options.log, "a snapshot on its interval was not made",
                    log_text("sandbox", making->sandbox->id.text),
                    log_text("error", failure->message));
    if (domain->stage == DOMAIN_OPEN && making->sandbox->status != SANDBOX_DESTROYED)
        expiry_watch(domain, making->sandbox);
    sandbox_unref(making->sandbox);
}

static int64_t expiry_of(const struct domain *domain, const struct sandbox *sandbox)
{
    uint64_t keep_for = sandbox->spec.snapshot_keep_for_ms;

    return keep_for ? domain_wall_ms(domain) + (int64_t) keep_for : 0;
}

void snapshot_make_due(struct domain *domain, struct sandbox *sandbox)
{
    struct making *making = mem_alloc(sizeof(*making));
    struct caller system = caller_system();
    const struct snapshot_options options = {.reason = SNAPSHOT_INTERVAL,
                                             .expires_ms = expiry_of(domain, sandbox)};

    making->domain = domain;
    making->sandbox = sandbox_ref(sandbox);
    sandbox->snapshot_ns = domain_now_ns(domain); /* whatever comes of it: not at once again */
    snapshot_make(domain, &system, sandbox, &options, on_made, making);
}

/* --- too many -------------------------------------------------------------------------------- */

struct pruning {
    enum snapshot_reason reason;
    size_t count;
    struct snapshot *oldest;
};

static void look(struct domain *domain, struct snapshot *snapshot, void *context)
{
    struct pruning *pruning = context;

    (void) domain;
    if (snapshot->reason != pruning->reason || snapshot->is_going)
        return;
    pruning->count++;
    if (!pruning->oldest || snapshot->created_ms < pruning->oldest->created_ms)
        pruning->oldest = snapshot;
}

static size_t keep_of(const struct sandbox_spec *spec)
{
    if (spec->snapshot_keep)
        return spec->snapshot_keep;
    return spec->snapshot_keep_for_ms ? SIZE_MAX : SANDBOX_SNAPSHOT_KEEP_DEFAULT;
}

/* One more came, so that one has to go; when the number itself was made smaller, one each time. */
void snapshot_prune(struct domain *domain, const struct sandbox *sandbox,
                    enum snapshot_reason reason)
{
    struct pruning pruning = {.reason = reason};
    struct caller system = caller_system();
    size_t keep = keep_of(&sandbox->spec);

    if ((reason != SNAPSHOT_INTERVAL && reason != SNAPSHOT_TASK) || domain->stage != DOMAIN_OPEN)
        return;
    do {
        pruning.count = 0;
        pruning.oldest = NULL;
        snapshot_set_each_of(domain, &sandbox->id, look, &pruning);
        if (pruning.count > keep)
            snapshot_delete(domain, &system, pruning.oldest, NULL, NULL);
    } while (pruning.count > keep + 1 && pruning.oldest->is_going);
}

/* --- too old --------------------------------------------------------------------------------- */

void snapshot_prune_expired(struct domain *domain)
{
    struct snapshots *set = domain->snapshots;
    struct caller system = caller_system();
    int64_t now = domain_wall_ms(domain), next = INT64_MAX;
    size_t begun = 0;

    if (set->next_expiry_ms > now)
        return;
    LIST_EACH (&set->all, at) {
        struct snapshot *snapshot = CONTAINER_OF(at, struct snapshot, link);

        if (!snapshot->expires_ms)
            continue;
        if (snapshot->expires_ms > now) {
            next = snapshot->expires_ms < next ? snapshot->expires_ms : next;
            continue;
        }
        /* What cannot be deleted now is looked at again. */
        next = next < now + EXPIRED_AGAIN_MS ? next : now + EXPIRED_AGAIN_MS;
        if (!snapshot->is_going && begun++ < EXPIRED_AT_ONCE)
            snapshot_delete(domain, &system, snapshot, NULL, NULL);
    }
    set->next_expiry_ms = begun > EXPIRED_AT_ONCE ? now : next;
}
