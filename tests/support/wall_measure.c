#include "wall_measure.h"

#include "base/auto.h"
#include "json/json_write.h"
#include "launcher/cgroup/cgroup_stats.h"

void wall_measure(const struct wall_box *box, struct text *ret_answer)
{
    struct stats stats;
    struct disk_usage usage;
    struct json_writer json;

    cgroup_stats_read(&box->sandbox.cgroup, &stats);
    const struct {
        const char *name;
        unsigned int bit;
        uint64_t value;
    } rows[] = {
        {"cpu_us", STATS_BIT(CPU), stats.cpu_us},
        {"throttled_us", STATS_BIT(THROTTLED), stats.throttled_us},
        {"memory_bytes", STATS_BIT(MEMORY), stats.memory_bytes},
        {"memory_peak_bytes", STATS_BIT(MEMORY_PEAK), stats.memory_peak_bytes},
        {"pids", STATS_BIT(PIDS), stats.pids},
        {"pids_refused", STATS_BIT(PIDS_REFUSED), stats.pids_refused},
        {"oom_kills_agent", STATS_BIT(OOM), stats.oom_kills_agent},
        {"oom_kills_work", STATS_BIT(OOM), stats.oom_kills_work},
    };

    json_writer_init_text(&json, ret_answer);
    json_begin_object(&json);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        if (stats.known & rows[i].bit)
            json_add_integer(&json, rows[i].name, (int64_t) rows[i].value);
    }
    if (disk_pool_usage(box->host.pool, DISK_POOL_DISKS, &box->plan.id, &usage, NULL) == 0)
        json_add_integer(&json, "disk_bytes", (int64_t) usage.used);
    json_end_object(&json);
    (void) json_writer_finish(&json);
}
