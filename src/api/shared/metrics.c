#include "api/shared/metrics.h"

#include "api/agents.h"
#include "base/auto.h"
#include "domain/sandboxes.h"

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

/* --- histograms ------------------------------------------------------------------------------ */

#define WAKE_BUCKETS ARRAY_COUNT(((struct domain_counters *) NULL)->wake_buckets)

static void add_wakes(struct text *out, const char *name, const struct domain_counters *counters)
{
    static const char *const bounds[WAKE_BUCKETS] = {"0.001", "0.005", "0.01", "0.05",
                                                     "0.1",   "0.5",   "5",    "+Inf"};
    uint64_t all = counters->wake_buckets[WAKE_BUCKETS - 1];

    add_head(out, name, "histogram", "Seconds from the first wish to a sandbox that runs.");
    for (size_t i = 0; i < WAKE_BUCKETS; i++)
        text_format(out, "%s_bucket{le=\"%s\"} %llu\n", name, bounds[i],
                    (unsigned long long) counters->wake_buckets[i]);
    text_format(out, "%s_sum %.17g\n%s_count %llu\n", name, (double) counters->wakes_us_total / 1e6,
                name, (unsigned long long) all);
}

/* Of what this daemon does not do yet: nothing has happened, and that is what it says. */
static void add_empty(struct text *out, const char *name, const char *help)
{
    add_head(out, name, "histogram", help);
    text_format(out, "%s_bucket{le=\"+Inf\"} 0\n%s_sum 0\n%s_count 0\n", name, name, name);
}

static void add_promised(struct text *out, const struct domain_counters *counters)
{
    add_wakes(out, "burrow_sandbox_wake_latency_seconds", counters);
    add_wakes(out, "cloudflare_sandbox_wake_latency", counters);
    add_empty(out, "burrow_sandbox_message_latency_seconds", "Seconds from a message to its end.");
    add_empty(out, "cloudflare_sandbox_message_latency", "The same.");
    add_empty(out, "burrow_sync_duration_seconds", "Seconds of one sync with an object store.");
    add_empty(out, "cloudflare_r2_sync_duration", "The same.");
    metrics_add(out, "burrow_storage_bytes", "gauge", "Bytes in the object store.", 0);
    metrics_add(out, "cloudflare_r2_storage_bytes", "gauge", "The same.", 0);
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
    add_store(out, domain_store(api->domain));
    add_agents(out, api->agents);
}
