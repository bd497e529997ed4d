#include "api/agent/message_meter.h"

#include "base/auto.h"

/* In milliseconds, and as Prometheus writes them; behind the last come all. */
static const struct {
    uint64_t ms;
    const char *text;
} bounds[MESSAGE_BUCKETS] = {
    {500, "0.5"},  {1000, "1"},   {2000, "2"},     {5000, "5"},          {10000, "10"},
    {30000, "30"}, {60000, "60"}, {300000, "300"}, {UINT64_MAX, "+Inf"},
};

void message_meter_add(struct message_meter *meter, uint64_t milliseconds, const char *sandbox,
                       struct log *log)
{
    for (size_t i = 0; i < MESSAGE_BUCKETS; i++) {
        if (milliseconds < bounds[i].ms)
            meter->buckets[i]++;
    }
    meter->ms_total += milliseconds;
    if (!meter->threshold_ms || milliseconds <= meter->threshold_ms)
        return;
    meter->slow++;
    LOG_WARNING(log, "a message took longer than message-latency-threshold",
                log_text("sandbox", sandbox), log_number("ms", (int64_t) milliseconds),
                log_number("threshold_ms", (int64_t) meter->threshold_ms));
}

void message_meter_write(const struct message_meter *meter, struct text *out)
{
    static const char *const names[] = {"burrow_sandbox_message_latency_seconds",
                                        "cloudflare_sandbox_message_latency"};

    for (size_t n = 0; n < ARRAY_COUNT(names); n++) {
        text_format(out,
                    "# HELP %s Seconds from a message to an agent to the end of its turn.\n"
                    "# TYPE %s histogram\n",
                    names[n], names[n]);
        for (size_t i = 0; i < MESSAGE_BUCKETS; i++)
            text_format(out, "%s_bucket{le=\"%s\"} %llu\n", names[n], bounds[i].text,
                        (unsigned long long) meter->buckets[i]);
        text_format(out, "%s_sum %.17g\n%s_count %llu\n", names[n], (double) meter->ms_total / 1e3,
                    names[n], (unsigned long long) meter->buckets[MESSAGE_BUCKETS - 1]);
    }
    text_format(
        out,
        "# HELP burrow_sandbox_message_latency_threshold_seconds What is slow, by setting.\n"
        "# TYPE burrow_sandbox_message_latency_threshold_seconds gauge\n"
        "burrow_sandbox_message_latency_threshold_seconds %.17g\n"
        "# HELP burrow_sandbox_message_slow_total Messages that took longer than that.\n"
        "# TYPE burrow_sandbox_message_slow_total counter\n"
        "burrow_sandbox_message_slow_total %llu\n",
        (double) meter->threshold_ms / 1e3, (unsigned long long) meter->slow);
}
