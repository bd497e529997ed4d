#include "api/shared/metrics.h"

#include "api/agent/agents.h"
#include "api/agent/message_meter.h"
#include "base/auto.h"
#include "domain/egress/egress.h"
#include "domain/sandbox/sandboxes.h"
#include "domain/workspace/workspace.h"
#include "share/share.h"

void metrics_add(struct text *out, const char *name, const char *type, const char *help,
                 double value)
{
    text_format(out, "# HELP %s %s\n# TYPE %s %s\n%s %.17g\n", name, help, name, type, name, value);
}

static void add_head(struct text *out, const char *name, const char *type, const char *help)
{
    text_format(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* --- sandboxes ------------------------------------------------------------------------------- */

static void add_statuses(struct text *out, const struct domain *domain)
{
    size_t counts[SANDBOX_STATUS_COUNT];

    sandbox_count(domain, NULL, counts);
    add_head(out, "burrow_sandboxes", "gauge", "Sandboxes by status.");
    for (int status = 0; status < SANDBOX_STATUS_COUNT; status++) {
        if (status != SANDBOX_DESTROYED)
            text_format(out, "burrow_sandboxes{status=\"%s\"} %zu\n",
                        sandbox_status_text((enum sandbox_status) status), counts[status]);
    }
}

static void add_changes(struct text *out, const struct domain_counters *counters)
{
    const struct {
        const char *name, *help;
        uint64_t value;
    } rows[] = {
        {"burrow_sandbox_created_total", "Sandboxes made.", counters->created},
        {"burrow_sandbox_destroyed_total", "Sandboxes destroyed.", counters->destroyed},
        {"burrow_sandbox_woken_total", "Sandboxes woken.", counters->woken},
        {"burrow_sandbox_slept_total", "Sandboxes put to sleep.", counters->slept},
        {"burrow_sandbox_started_total", "Sandboxes started again.", counters->started},
        {"burrow_sandbox_stopped_total", "Sandboxes stopped.", counters->stopped},
        {"burrow_sandbox_failures_total", "Creates, starts and wakes that failed.",
         counters->failed},
        {"burrow_snapshots_total", "Copies of disks, also in passing.", counters->snapshots},
        {"burrow_snapshot_pause_us_total", "How long sandboxes stood still for them.",
         counters->snapshot_pause_us_total},
        {"burrow_sandbox_forked_total", "Sandboxes made as forks.", counters->forked},
        {"burrow_sandbox_rolled_back_total", "Rollbacks.", counters->rolled_back},
        {"burrow_reclaimed_bytes_total", "Memory of sleeping sandboxes that went to swap.",
         counters->reclaimed_bytes},
        {"burrow_offloaded_bytes_total", "Bytes of disks that went to the object store.",
         counters->offloaded_bytes},
        {"burrow_save_failures_total", "Disks that could not be stored.", counters->save_failures},
        {"burrow_restore_failures_total", "Disks that did not come back.",
         counters->restore_failures},
        {"burrow_sandbox_create_failures_total", "The same, for alerts.", counters->failed},
        {"burrow_events_total", "Events written.", counters->events},
    };

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        metrics_add(out, rows[i].name, "counter", rows[i].help, (double) rows[i].value);
    metrics_add(out, "cloudflare_sandbox_created", "counter", "The same as sandbox_created_total.",
                (double) counters->created);
    metrics_add(out, "burrow_sandbox_create_seconds_total", "counter",
                "Time spent making sandboxes.", (double) counters->create_us_total / 1e6);
}

/* --- what leaves sandboxes -------------------------------------------------------------------- */

static void add_egress(struct text *out, const struct domain *domain)
{
    struct egress_counters counters;
    size_t open, under_way;

    egress_counters(domain, &counters);
    egress_gauges(domain, &open, &under_way);
    const struct {
        const char *name, *kind, *help;
        double value;
    } rows[] = {
        {"burrow_egress_open", "gauge", "Sandboxes whose way out is open.", (double) open},
        {"burrow_egress_under_way", "gauge", "Requests and tunnels under way.", (double) under_way},
        {"burrow_egress_requests_total", "counter", "Requests and tunnels that were let go.",
         (double) counters.requests},
        {"burrow_egress_denied_total", "counter", "Those that were refused.",
         (double) counters.denied},
        {"burrow_egress_violations_total", "counter",
         "Things that well-meaning programs do not do.", (double) counters.violations},
        {"burrow_egress_cut_total", "counter", "Streams that a budget has cut.",
         (double) counters.cut},
        {"burrow_egress_sent_bytes_total", "counter", "Bytes that went out.",
         (double) counters.sent},
        {"burrow_egress_received_bytes_total", "counter", "Bytes that came in.",
         (double) counters.received},
        {"burrow_egress_tokens_total", "counter", "Tokens of models.", (double) counters.tokens},
        {"burrow_egress_cost_total", "counter", "What they cost, where prices are known.",
         (double) counters.micros / 1e6},
        {"burrow_egress_unpriced_total", "counter", "Requests whose cost is not known.",
         (double) counters.unpriced},
    };

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        metrics_add(out, rows[i].name, rows[i].kind, rows[i].help, rows[i].value);
}

/* --- histograms ------------------------------------------------------------------------------ */

static void add_latency(struct text *out, const char *name,
                        const uint64_t buckets[static DOMAIN_LATENCY_BUCKETS], uint64_t us_total)
{
    static const char *const bounds[DOMAIN_LATENCY_BUCKETS] = {"0.001", "0.005", "0.01", "0.05",
                                                               "0.1",   "0.5",   "5",    "+Inf"};
    uint64_t all = buckets[DOMAIN_LATENCY_BUCKETS - 1];

    for (size_t i = 0; i < DOMAIN_LATENCY_BUCKETS; i++)
        text_format(out, "%s_bucket{le=\"%s\"} %llu\n", name, bounds[i],
                    (unsigned long long) buckets[i]);
    text_format(out, "%s_sum %.17g\n%s_count %llu\n", name, (double) us_total / 1e6, name,
                (unsigned long long) all);
}

_Static_assert(TURN_METER_BUCKETS == DOMAIN_LATENCY_BUCKETS, "the same bounds");

void metrics_add_turns(struct text *out, const struct turn_meter *meter)
{
    struct turn_meter_counts counts;

    turn_meter_read(meter, &counts);
    add_head(out, "burrow_loop_turn_seconds", "histogram",
             "How long each turn of the loop kept everybody else waiting.");
    add_latency(out, "burrow_loop_turn_seconds", counts.buckets, counts.ns_total / 1000);
    metrics_add(out, "burrow_loop_longest_turn_seconds", "gauge",
                "The longest of them since the start.", (double) counts.longest_ns / 1e9);
}

static void add_wakes(struct text *out, const char *name, const struct domain_counters *counters)
{
    add_head(out, name, "histogram", "Seconds from the first wish to a sandbox that runs.");
    add_latency(out, name, counters->wake_buckets, counters->wakes_us_total);
}

static const char *const latency_bounds[DOMAIN_LATENCY_BUCKETS] = {
    "0.001", "0.005", "0.01", "0.05", "0.1", "0.5", "5", "+Inf"};

/* One histogram per tier of sleep. */
static void add_tiers(struct text *out, const char *name, const char *help,
                      const struct domain_latency latencies[static SANDBOX_TIER_COUNT])
{
    add_head(out, name, "histogram", help);
    for (int tier = SANDBOX_TIER_FROZEN; tier < SANDBOX_TIER_COUNT; tier++) {
        const struct domain_latency *latency = &latencies[tier];
        const char *text = sandbox_tier_text((enum sandbox_tier) tier);

        for (size_t i = 0; i < DOMAIN_LATENCY_BUCKETS; i++)
            text_format(out, "%s_bucket{tier=\"%s\",le=\"%s\"} %llu\n", name, text,
                        latency_bounds[i], (unsigned long long) latency->buckets[i]);
        text_format(out, "%s_sum{tier=\"%s\"} %.17g\n%s_count{tier=\"%s\"} %llu\n", name, text,
                    (double) latency->us_total / 1e6, name, text,
                    (unsigned long long) latency->buckets[DOMAIN_LATENCY_BUCKETS - 1]);
    }
}

static void add_promised(struct text *out, const struct domain_counters *counters)
{
    add_tiers(out, "burrow_tier_wake_seconds", "Seconds to wake, by the tier it woke from.",
              counters->wakes);
    add_tiers(out, "burrow_tier_sleep_seconds", "Seconds of a step down, by the tier it went to.",
              counters->saves);
    add_wakes(out, "burrow_sandbox_wake_latency_seconds", counters);
    add_wakes(out, "cloudflare_sandbox_wake_latency", counters);
}

static void add_workspaces(struct text *out, const struct domain *domain,
                           const struct domain_counters *counters)
{
    static const char *const names[] = {"burrow_sync_duration_seconds",
                                        "cloudflare_r2_sync_duration"};
    double bytes = (double) workspace_bytes(domain, NULL);

    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        add_head(out, names[i], "histogram", "Seconds of one sync with an object store.");
        add_latency(out, names[i], counters->syncs.buckets, counters->syncs.us_total);
    }
    metrics_add(out, "burrow_sync_failures_total", "counter", "Syncs that failed.",
                (double) counters->sync_failures);
    metrics_add(out, "burrow_storage_bytes", "gauge", "Bytes of workspaces in the object store.",
                bytes);
    metrics_add(out, "cloudflare_r2_storage_bytes", "gauge", "The same.", bytes);
}

/* --- below ----------------------------------------------------------------------------------- */

static void add_store(struct text *out, const struct store *store)
{
    struct store_counters counters;

    store_counters(store, &counters);
    metrics_add(out, "burrow_store_commits_total", "counter", "Transactions kept.",
                (double) counters.commits);
    metrics_add(out, "burrow_store_batches_total", "counter", "Syncs that kept them.",
                (double) counters.batches);
    metrics_add(out, "burrow_store_failures_total", "counter", "Transactions that failed.",
                (double) counters.failures);
    metrics_add(out, "burrow_store_queries_total", "counter", "Questions answered.",
                (double) counters.queries);
    metrics_add(out, "burrow_store_commit_seconds_total", "counter",
                "Time from each commit to its answer.", (double) counters.commit_us_total / 1e6);
    metrics_add(out, "burrow_store_queued", "gauge", "What waits for the store.",
                (double) counters.queued);
    metrics_add(out, "burrow_store_bytes", "gauge", "Size of the database.",
                (double) counters.size_bytes);
}

static void add_agents(struct text *out, const struct agents *agents)
{
    struct agents_counts counts;

    agents_count(agents, &counts);
    metrics_add(out, "burrow_agents", "gauge", "Sandboxes that are talked to.",
                (double) counts.peers);
    metrics_add(out, "burrow_agent_connections", "gauge", "Connections to them.",
                (double) counts.connections);
}

void metrics_add_domain(struct text *out, const struct api *api)
{
    struct domain_counters counters;

    if (!api || !api->domain)
        return;
    domain_counters(api->domain, &counters);
    add_statuses(out, api->domain);
    add_changes(out, &counters);
    add_promised(out, &counters);
    if (api->messages)
        message_meter_write(api->messages, out);
    add_workspaces(out, api->domain, &counters);
    add_store(out, domain_store(api->domain));
    add_agents(out, api->agents);
    if (api->shares)
        shares_write_metrics(api->shares, out);
    add_egress(out, api->domain);
}
