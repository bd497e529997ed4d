/* What a sandbox uses. */
#include "api/http/pending.h"
#include "api/native/body.h"
#include "api/native/handlers.h"
#include "domain/sandbox/sandboxes.h"

static void write_stats(struct json_writer *json, const struct provider_stats *stats)
{
    const struct {
        enum provider_stat group;
        const char *name;
        uint64_t value;
    } rows[] = {
        {PROVIDER_STAT_CPU, "cpuMicroseconds", stats->cpu_us},
        {PROVIDER_STAT_THROTTLED, "throttledMicroseconds", stats->throttled_us},
        {PROVIDER_STAT_MEMORY, "memoryBytes", stats->memory_bytes},
        {PROVIDER_STAT_MEMORY_PEAK, "memoryPeakBytes", stats->memory_peak_bytes},
        {PROVIDER_STAT_PIDS, "pids", stats->pids},
        {PROVIDER_STAT_PIDS_REFUSED, "pidsRefused", stats->pids_refused},
        {PROVIDER_STAT_IO, "readBytes", stats->read_bytes},
        {PROVIDER_STAT_IO, "writtenBytes", stats->written_bytes},
        {PROVIDER_STAT_OOM, "outOfMemoryKills", stats->oom_kills_work},
        {PROVIDER_STAT_NETWORK, "receivedBytes", stats->received_bytes},
        {PROVIDER_STAT_NETWORK, "sentBytes", stats->sent_bytes},
        {PROVIDER_STAT_DISK, "diskBytes", stats->disk_bytes},
    };

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        if (stats->known & rows[i].group)
            json_add_integer(json, rows[i].name, (int64_t) rows[i].value);
        else
            json_add_null(json, rows[i].name); /* unknown is said, not guessed */
    }
}

static void measured(void *context, const struct error *failure, const struct provider_stats *stats)
{
    struct http_request *request = pending_take_good(context, failure);
    AUTO(native_answer) struct native_answer answer;

    native_answer_begin(&answer);
    if (!request)
        return;
    write_stats(&answer.json, stats);
    native_answer_send(&answer, request, 200);
}

void native_get_stats(struct http_request *request)
{
    struct domain *domain = api_of(request)->domain;
    struct error error = ERROR_INIT;
    struct sandbox *sandbox = sandbox_find(domain, request_caller(request),
                                           http_request_parameter(request, "id"), &error);

    if (!sandbox)
        http_reply_error(request, &error);
    else
        sandbox_stats(domain, sandbox, measured, pending_new(request));
}
