/* What a sandbox uses. */
#include "api/http/pending.h"
#include "api/native/body.h"
#include "api/native/handlers.h"
#include "domain/sandbox/sandboxes.h"

static void write_stats(struct json_writer *json, const struct stats *stats)
{
    const struct {
        unsigned int group;
        const char *name;
        uint64_t value;
    } rows[] = {
        {STATS_BIT(CPU), "cpuMicroseconds", stats->cpu_us},
        {STATS_BIT(THROTTLED), "throttledMicroseconds", stats->throttled_us},
        {STATS_BIT(MEMORY), "memoryBytes", stats->memory_bytes},
        {STATS_BIT(MEMORY_PEAK), "memoryPeakBytes", stats->memory_peak_bytes},
        {STATS_BIT(PIDS), "pids", stats->pids},
        {STATS_BIT(PIDS_REFUSED), "pidsRefused", stats->pids_refused},
        {STATS_BIT(IO), "readBytes", stats->read_bytes},
        {STATS_BIT(IO), "writtenBytes", stats->written_bytes},
        {STATS_BIT(OOM), "outOfMemoryKills", stats->oom_kills_work},
        {STATS_BIT(NETWORK), "receivedBytes", stats->received_bytes},
        {STATS_BIT(NETWORK), "sentBytes", stats->sent_bytes},
        {STATS_BIT(DISK), "diskBytes", stats->disk_bytes},
    };

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        if (stats->known & rows[i].group)
            json_add_integer(json, rows[i].name, (int64_t) rows[i].value);
        else
            json_add_null(json, rows[i].name); /* unknown is said, not guessed */
    }
}

static void measured(void *context, const struct error *failure, const struct stats *stats)
{
    AUTO(native_answer) struct native_answer answer;
    struct http_request *request = native_answer_pending(&answer, context, failure);

    if (!request)
        return;
    write_stats(&answer.json, stats);
    native_answer_send(&answer, request, 200);
}

void native_get_stats(struct http_request *request)
{
    struct sandbox *sandbox = native_find_sandbox(request);

    if (sandbox)
        sandbox_stats(api_of(request)->domain, sandbox, measured, pending_new(request));
}
