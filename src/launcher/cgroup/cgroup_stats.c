#include "launcher/cgroup/cgroup_stats.h"

#include <errno.h>
#include <stddef.h>

#include "launcher/cgroup/cgroup_file.h"
#include "launcher/cgroup/cgroup_internal.h"

/* Every number, where it stands and in which unit. A key names a line of the file; a marker is
 * added up over the file. v1 counts an OOM kill only in the group the victim lived in, and the
 * agent lives in the sandbox's own group there; on v2 the agent's is its leaf. */
static const struct source {
    unsigned int stat;
    enum cgroup_controller controller;
    enum cgroup_version version;
    enum cgroup_part part;
    const char *file;
    const char *key;
    const char *marker;
    uint64_t divide;
    size_t place;
} sources[] = {
#define PLACE(field) offsetof(struct stats, field)
    {STATS_BIT(CPU), CGROUP_CPU_TIME, CGROUP_V2, CGROUP_WHOLE, "cpu.stat", "usage_usec", NULL, 1,
     PLACE(cpu_us)},
    {STATS_BIT(CPU), CGROUP_CPU_TIME, CGROUP_V1, CGROUP_WHOLE, "cpuacct.usage", NULL, NULL, 1000,
     PLACE(cpu_us)},
    {STATS_BIT(THROTTLED), CGROUP_CPU, CGROUP_V2, CGROUP_WORK, "cpu.stat", "throttled_usec", NULL,
     1, PLACE(throttled_us)},
    {STATS_BIT(THROTTLED), CGROUP_CPU, CGROUP_V1, CGROUP_WORK, "cpu.stat", "throttled_time", NULL,
     1000, PLACE(throttled_us)},
    {STATS_BIT(MEMORY), CGROUP_MEMORY, CGROUP_V2, CGROUP_WHOLE, "memory.current", NULL, NULL, 1,
     PLACE(memory_bytes)},
    {STATS_BIT(MEMORY), CGROUP_MEMORY, CGROUP_V1, CGROUP_WHOLE, "memory.usage_in_bytes", NULL, NULL,
     1, PLACE(memory_bytes)},
    {STATS_BIT(MEMORY_PEAK), CGROUP_MEMORY, CGROUP_V2, CGROUP_WHOLE, "memory.peak", NULL, NULL, 1,
     PLACE(memory_peak_bytes)},
    {STATS_BIT(MEMORY_PEAK), CGROUP_MEMORY, CGROUP_V1, CGROUP_WHOLE, "memory.max_usage_in_bytes",
     NULL, NULL, 1, PLACE(memory_peak_bytes)},
    {STATS_BIT(PIDS), CGROUP_PIDS, CGROUP_V2, CGROUP_WHOLE, "pids.current", NULL, NULL, 1,
     PLACE(pids)},
    {STATS_BIT(PIDS), CGROUP_PIDS, CGROUP_V1, CGROUP_WHOLE, "pids.current", NULL, NULL, 1,
     PLACE(pids)},
    {STATS_BIT(PIDS_REFUSED), CGROUP_PIDS, CGROUP_V2, CGROUP_WORK, "pids.events", "max", NULL, 1,
     PLACE(pids_refused)},
    {STATS_BIT(PIDS_REFUSED), CGROUP_PIDS, CGROUP_V1, CGROUP_WORK, "pids.events", "max", NULL, 1,
     PLACE(pids_refused)},
    {STATS_BIT(IO), CGROUP_IO, CGROUP_V2, CGROUP_WHOLE, "io.stat", NULL, " rbytes=", 1,
     PLACE(read_bytes)},
    {STATS_BIT(IO), CGROUP_IO, CGROUP_V2, CGROUP_WHOLE, "io.stat", NULL, " wbytes=", 1,
     PLACE(written_bytes)},
    {STATS_BIT(IO), CGROUP_IO, CGROUP_V1, CGROUP_WHOLE, "blkio.throttle.io_service_bytes_recursive",
     NULL, " Read ", 1, PLACE(read_bytes)},
    {STATS_BIT(IO), CGROUP_IO, CGROUP_V1, CGROUP_WHOLE, "blkio.throttle.io_service_bytes_recursive",
     NULL, " Write ", 1, PLACE(written_bytes)},
    {STATS_BIT(OOM), CGROUP_MEMORY, CGROUP_V2, CGROUP_AGENT, "memory.events", "oom_kill", NULL, 1,
     PLACE(oom_kills_agent)},
    {STATS_BIT(OOM), CGROUP_MEMORY, CGROUP_V2, CGROUP_WORK, "memory.events", "oom_kill", NULL, 1,
     PLACE(oom_kills_work)},
    {STATS_BIT(OOM), CGROUP_MEMORY, CGROUP_V1, CGROUP_AGENT, "memory.oom_control", "oom_kill", NULL,
     1, PLACE(oom_kills_agent)},
    {STATS_BIT(OOM), CGROUP_MEMORY, CGROUP_V1, CGROUP_WORK, "memory.oom_control", "oom_kill", NULL,
     1, PLACE(oom_kills_work)},
#undef PLACE
};

static int read_sum(const struct cgroup_hierarchy *hierarchy, const struct cgroup *cgroup,
                    const struct source *source, uint64_t *ret_number)
{
    char path[CGROUP_FILE_PATH_SIZE], text[CGROUP_FILE_SIZE];
    int result;

    cgroup_path(hierarchy, cgroup, source->part, source->file, path);
    result = cgroup_file_read(hierarchy->base, path, text, sizeof(text));
    if (result < 0)
        return result;
    *ret_number = cgroup_file_sum(text, source->marker);
    return 0;
}

static int read_source(const struct cgroup *cgroup, const struct source *source,
                       uint64_t *ret_number)
{
    const struct cgroup_hierarchy *hierarchy = cgroup_serving(cgroup->host, source->controller);

    if (!hierarchy || hierarchy->version != source->version)
        return -EOPNOTSUPP;
    if (source->marker)
        return read_sum(hierarchy, cgroup, source, ret_number);
    if (source->key)
        return cgroup_read_field(hierarchy, cgroup, source->part, source->file, source->key,
                                 ret_number);
    return cgroup_read_number(hierarchy, cgroup, source->part, source->file, ret_number);
}

/* Read the numbers of the wanted kinds. Returns 0 or the last error but "other version". */
static int read_wanted(const struct cgroup *cgroup, unsigned int wanted, struct stats *stats)
{
    int failure = -EOPNOTSUPP;

    for (size_t i = 0; i < ARRAY_COUNT(sources); i++) {
        uint64_t number = 0;
        int result;

        if (!(sources[i].stat & wanted))
            continue;
        result = read_source(cgroup, &sources[i], &number);
        if (result == -EOPNOTSUPP)
            continue;
        failure = result;
        if (result < 0)
            continue;
        *(uint64_t *) (void *) ((char *) stats + sources[i].place) = number / sources[i].divide;
        stats->known |= sources[i].stat;
    }
    return failure;
}

void cgroup_stats_read(const struct cgroup *cgroup, struct stats *ret_stats)
{
    *ret_stats = (struct stats){0};
    (void) read_wanted(cgroup, ~0U, ret_stats); /* `known` says what could be read */
}

int cgroup_oom_kills(const struct cgroup *cgroup, uint64_t *ret_agent, uint64_t *ret_work,
                     struct error *err)
{
    struct stats stats = {0};
    int result = read_wanted(cgroup, STATS_BIT(OOM), &stats);

    if (result < 0)
        return error_set(err, cgroup_error_code(result), result, "read the OOM kills of %s",
                         cgroup->id.text);
    *ret_agent = stats.oom_kills_agent;
    *ret_work = stats.oom_kills_work;
    return 0;
}
