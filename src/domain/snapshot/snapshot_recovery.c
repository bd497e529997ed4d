/* After a restart: rows of snapshots against what the provider has.
 *
 *     row        provider    what is done
 *     ready      has it      nothing
 *     ready      -           stored, when its layers are known; else lost: a log line and an event;
 *                            the row stays, somebody may ask for it
 *     storing    has it      ready: what was under way is tried again by whoever wants it
 *     storing    -           stored, when its layers are known; else lost
 *     stored     has it      ready: it had just come, or was about to go, and is whole
 *     lost       has it      ready again: its pool was not there, and is now
 *     nothing    has it      deleted: it was never acknowledged, or deleted */
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/domain_internal.h"
#include "domain/event/event.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/snapshot/snapshot_internal.h"
#include "domain/snapshot/snapshot_set.h"

#define NS_PER_MS UINT64_C(1000000)

struct recovering {
    struct domain *domain;
    void (*done)(void *context);
    void *context;
};

static void end(struct recovering *recovering)
{
    void (*done)(void *context) = recovering->done;
    void *context = recovering->context;

    free(recovering);
    done(context);
}

static void on_kept(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    struct domain *domain = context;

    if (failure)
        LOG_ERROR(domain->options.log, "a snapshot's state could not be kept",
                  log_text("error", failure->message));
    else
        event_kept(domain, receipt);
}

static void set_state(struct domain *domain, struct snapshot *snapshot, enum snapshot_state state)
{
    struct store_transaction *change = store_begin(domain->options.store);
    struct store_value values[STORE_SNAPSHOT_COLUMN_COUNT];
    struct caller system = caller_system();

    LOG_WARNING(domain->options.log, "snapshot recovered", log_text("snapshot", snapshot->id.text),
                log_text("sandbox", snapshot->sandbox.text),
                log_text("row", snapshot_state_text(snapshot->state)),
                log_text("done", snapshot_state_text(state)));
    snapshot->state = state;
    snapshot_row(snapshot, values);
    store_update(change, STORE_SNAPSHOT, values);
    snapshot_add_event(domain, change, &system, snapshot,
                       state == SNAPSHOT_IS_LOST ? "snapshot.lost" : "snapshot.found");
    domain_commit(domain, change, on_kept, domain);
}

static enum snapshot_state state_of(const struct snapshot *snapshot, bool is_there)
{
    if (is_there)
        return SNAPSHOT_IS_READY;
    if (snapshot->state == SNAPSHOT_IS_STORED || snapshot->layers)
        return SNAPSHOT_IS_STORED;
    return SNAPSHOT_IS_LOST;
}

static int compare(const void *text, const void *id)
{
    return strcmp(text, ((const struct id *) id)->text);
}

static void on_listed(void *context, const struct error *failure, const struct id *ids,
                      size_t count)
{
    struct recovering *recovering = context;
    struct domain *domain = recovering->domain;

    if (failure) {
        LOG_ERROR(domain->options.log, "snapshots could not be listed: nothing is done about them",
                  log_text("error", failure->message));
        end(recovering);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (!snapshot_set_by_id(domain, ids[i].text)) {
            LOG_INFO(domain->options.log, "snapshot recovered", log_text("snapshot", ids[i].text),
                     log_text("row", "nothing"),
                     log_text("done", "deleted: it was never acknowledged, or deleted"));
            snapshot_orphan(domain, &ids[i]);
        }
    LIST_EACH (&domain->snapshots->all, at) {
        struct snapshot *snapshot = CONTAINER_OF(at, struct snapshot, link);
        bool is_there = count && bsearch(snapshot->id.text, ids, count, sizeof(*ids), compare);
        enum snapshot_state state = state_of(snapshot, is_there);

        if (state != snapshot->state && strcmp(snapshot->node, domain->options.node) == 0)
            set_state(domain, snapshot, state);
    }
    end(recovering);
}

/* --- intervals go on ------------------------------------------------------------------------- */

static void find_newest(struct domain *domain, struct snapshot *snapshot, void *context)
{
    int64_t *newest_ms = context;

    (void) domain;
    if (snapshot->reason == SNAPSHOT_INTERVAL && snapshot->created_ms > *newest_ms)
        *newest_ms = snapshot->created_ms;
}

/* There is no better clock for the time before. */
static void set_interval(struct domain *domain, struct sandbox *sandbox)
{
    int64_t newest_ms = sandbox->created_ms, ago_ms;
    uint64_t now = domain_now_ns(domain), ago_ns;

    if (!sandbox->spec.snapshot_every_ms)
        return;
    snapshot_set_each_of(domain, &sandbox->id, find_newest, &newest_ms);
    ago_ms = domain_wall_ms(domain) - newest_ms;
    ago_ns = ago_ms > 0 ? (uint64_t) ago_ms * NS_PER_MS : 0;
    sandbox->snapshot_ns = ago_ns < now ? now - ago_ns : 0;
}

void snapshot_recover(struct domain *domain, void (*done)(void *context), void *context)
{
    struct recovering *recovering;

    LIST_EACH (&domain->sandboxes->all, at)
        set_interval(domain, CONTAINER_OF(at, struct sandbox, link));
    if (!(provider_capabilities(domain->options.provider) & PROVIDER_SNAPSHOTS)) {
        done(context);
        return;
    }
    recovering = mem_alloc(sizeof(*recovering));
    *recovering = (struct recovering){.domain = domain, .done = done, .context = context};
    provider_list_snapshots(domain->options.provider, on_listed, recovering);
}
