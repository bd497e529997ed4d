#include "launcher/cgroup/cgroup_limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "launcher/cgroup/cgroup_internal.h"

/* The kernel's default period, in microseconds. */
#define CPU_PERIOD_US 100000ULL

/* The least that the parent has above `work`: a twentieth of a CPU. */
#define CPU_RESERVE_MIN_US (CPU_PERIOD_US / 20)

#define VALUE_SIZE 48

/* Buffers of sockets, which v1 counts beside the memory, and only where they have a limit. Not
 * every kernel has the file. */
#define V1_SOCKETS "memory.kmem.tcp.limit_in_bytes"

/* Weights of agent and work. v1 counts in shares, 1024 of which are 100 of v2. */
#define V1_WORK_SHARES  "32"
#define V2_AGENT_WEIGHT "800"
#define V2_WORK_WEIGHT  "25"

static uint64_t less_reserve(uint64_t limit, uint64_t reserve)
{
    return limit - (reserve < limit / 2 ? reserve : limit / 2);
}

static uint64_t memory_of(const struct limits *limits, enum cgroup_part part)
{
    return part == CGROUP_WORK ? less_reserve(limits->memory_bytes, CGROUP_MEMORY_RESERVE)
                               : limits->memory_bytes;
}

static uint64_t quota_of(const struct limits *limits, enum cgroup_part part)
{
    uint64_t work = limits->cpu_millis * CPU_PERIOD_US / 1000;
    uint64_t more = work / 5;

    if (part == CGROUP_WORK)
        return work;
    return work + (more < CPU_RESERVE_MIN_US ? CPU_RESERVE_MIN_US : more);
}

static void format(char ret_value[VALUE_SIZE], uint64_t number)
{
    (void) snprintf(ret_value, VALUE_SIZE, "%" PRIu64, number);
}

/* What a file gets: one function for each kind. */

static void v1_memory(const struct limits *limits, enum cgroup_part part, char *ret_value)
{
    if (limits->memory_bytes)
        format(ret_value, memory_of(limits, part));
    else
        (void) snprintf(ret_value, VALUE_SIZE, "-1");
}

static void v1_sockets(const struct limits *limits, enum cgroup_part part, char *ret_value)
{
    uint64_t memory = limits->memory_bytes ? memory_of(limits, part) : CGROUP_SOCKETS_MAX;

    format(ret_value, memory < CGROUP_SOCKETS_MAX ? memory : CGROUP_SOCKETS_MAX);
}

/* v1 limits the sum of memory and swap. */
static void v1_swap(const struct limits *limits, enum cgroup_part part, char *ret_value)
{
    if (limits->memory_bytes && limits->swap_bytes != LIMITS_SWAP_UNLIMITED)
        format(ret_value, memory_of(limits, part) + limits->swap_bytes);
    else
        (void) snprintf(ret_value, VALUE_SIZE, "-1");
}

static void v2_memory(const struct limits *limits, enum cgroup_part part, char *ret_value)
{
    if (limits->memory_bytes)
        format(ret_value, memory_of(limits, part));
    else
        (void) snprintf(ret_value, VALUE_SIZE, "max");
}

static void v2_swap(const struct limits *limits, enum cgroup_part part, char *ret_value)
{
    (void) part;
    if (limits->memory_bytes && limits->swap_bytes != LIMITS_SWAP_UNLIMITED)
        format(ret_value, limits->swap_bytes);
    else
        (void) snprintf(ret_value, VALUE_SIZE, "max");
}

static void pids(const struct limits *limits, enum cgroup_part part, char *ret_value)
{
    if (!limits->pids)
        (void) snprintf(ret_value, VALUE_SIZE, "max");
    else
        format(ret_value, part == CGROUP_WORK ? less_reserve(limits->pids, CGROUP_PIDS_RESERVE)
                                              : limits->pids);
}

static void v1_quota(const struct limits *limits, enum cgroup_part part, char *ret_value)
{
    if (limits->cpu_millis)
        format(ret_value, quota_of(limits, part));
    else
        (void) snprintf(ret_value, VALUE_SIZE, "-1");
}

static void v2_quota(const struct limits *limits, enum cgroup_part part, char *ret_value)
{
    if (limits->cpu_millis)
        (void) snprintf(ret_value, VALUE_SIZE, "%" PRIu64 " %llu", quota_of(limits, part),
                        CPU_PERIOD_US);
    else
        (void) snprintf(ret_value, VALUE_SIZE, "max %llu", CPU_PERIOD_US);
}

static void v1_shares(const struct limits *limits, enum cgroup_part part, char *ret_value)
{
    (void) limits;
    (void) part;
    (void) snprintf(ret_value, VALUE_SIZE, V1_WORK_SHARES);
}

static void v2_weight(const struct limits *limits, enum cgroup_part part, char *ret_value)
{
    (void) limits;
    (void) snprintf(ret_value, VALUE_SIZE, "%s",
                    part == CGROUP_WORK ? V2_WORK_WEIGHT : V2_AGENT_WEIGHT);
}

/* Every file we write, in an order that suits fresh groups. */
static const struct setting {
    enum cgroup_controller controller;
    enum cgroup_version version;
    enum cgroup_part part;
    const char *file;
    void (*value)(const struct limits *limits, enum cgroup_part part, char *ret_value);
} settings[] = {
    {CGROUP_MEMORY, CGROUP_V2, CGROUP_WHOLE, "memory.max", v2_memory},
    {CGROUP_MEMORY, CGROUP_V2, CGROUP_WORK, "memory.max", v2_memory},
    {CGROUP_SWAP, CGROUP_V2, CGROUP_WHOLE, "memory.swap.max", v2_swap},
    {CGROUP_PIDS, CGROUP_V2, CGROUP_WHOLE, "pids.max", pids},
    {CGROUP_PIDS, CGROUP_V2, CGROUP_WORK, "pids.max", pids},
    {CGROUP_CPU, CGROUP_V2, CGROUP_AGENT, "cpu.weight", v2_weight},
    {CGROUP_CPU, CGROUP_V2, CGROUP_WORK, "cpu.weight", v2_weight},
    {CGROUP_CPU, CGROUP_V2, CGROUP_WHOLE, "cpu.max", v2_quota},
    {CGROUP_CPU, CGROUP_V2, CGROUP_WORK, "cpu.max", v2_quota},

    {CGROUP_MEMORY, CGROUP_V1, CGROUP_WHOLE, "memory.limit_in_bytes", v1_memory},
    {CGROUP_SWAP, CGROUP_V1, CGROUP_WHOLE, "memory.memsw.limit_in_bytes", v1_swap},
    {CGROUP_MEMORY, CGROUP_V1, CGROUP_WORK, "memory.limit_in_bytes", v1_memory},
    {CGROUP_SWAP, CGROUP_V1, CGROUP_WORK, "memory.memsw.limit_in_bytes", v1_swap},
    {CGROUP_MEMORY, CGROUP_V1, CGROUP_WHOLE, V1_SOCKETS, v1_sockets},
    {CGROUP_MEMORY, CGROUP_V1, CGROUP_WORK, V1_SOCKETS, v1_sockets},
    {CGROUP_PIDS, CGROUP_V1, CGROUP_WHOLE, "pids.max", pids},
    {CGROUP_PIDS, CGROUP_V1, CGROUP_WORK, "pids.max", pids},
    {CGROUP_CPU, CGROUP_V1, CGROUP_WORK, "cpu.shares", v1_shares},
    {CGROUP_CPU, CGROUP_V1, CGROUP_WHOLE, "cpu.cfs_quota_us", v1_quota},
    {CGROUP_CPU, CGROUP_V1, CGROUP_WORK, "cpu.cfs_quota_us", v1_quota},
};

int cgroup_limits_check(const struct limits *limits, struct error *err)
{
    if (limits->memory_bytes &&
        (limits->memory_bytes < CGROUP_MEMORY_MIN || limits->memory_bytes > CGROUP_MEMORY_MAX))
        return error_set(err, ERR_INVALID, 0, "memory limit %" PRIu64 " is not within %llu to %llu",
                         limits->memory_bytes, CGROUP_MEMORY_MIN, CGROUP_MEMORY_MAX);
    if (limits->swap_bytes > CGROUP_MEMORY_MAX && limits->swap_bytes != LIMITS_SWAP_UNLIMITED)
        return error_set(err, ERR_INVALID, 0, "swap limit %" PRIu64 " is above %llu",
                         limits->swap_bytes, CGROUP_MEMORY_MAX);
    if (limits->pids && (limits->pids < CGROUP_PIDS_MIN || limits->pids > CGROUP_PIDS_MAX))
        return error_set(err, ERR_INVALID, 0, "process limit %" PRIu32 " is not within %d to %d",
                         limits->pids, CGROUP_PIDS_MIN, CGROUP_PIDS_MAX);
    if (limits->cpu_millis &&
        (limits->cpu_millis < CGROUP_CPU_MIN || limits->cpu_millis > CGROUP_CPU_MAX))
        return error_set(err, ERR_INVALID, 0, "CPU limit %" PRIu32 " is not within %d to %d",
                         limits->cpu_millis, CGROUP_CPU_MIN, CGROUP_CPU_MAX);
    return 0;
}

static bool is_set(const struct setting *setting, const struct limits *before, const char *value)
{
    char old[VALUE_SIZE];

    if (!before)
        return false;
    setting->value(before, setting->part, old);
    return strcmp(old, value) == 0;
}

static int apply_one(const struct cgroup *cgroup, const struct setting *setting,
                     const struct limits *before, const struct limits *limits)
{
    const struct cgroup_hierarchy *hierarchy = cgroup_serving(cgroup->host, setting->controller);
    char value[VALUE_SIZE];
    int result;

    if (!hierarchy || hierarchy->version != setting->version)
        return 0;
    setting->value(limits, setting->part, value);
    if (is_set(setting, before, value))
        return 0;
    result = cgroup_write(hierarchy, cgroup, setting->part, setting->file, value);
    return result == -ENOENT && strcmp(setting->file, V1_SOCKETS) == 0 ? 0 : result;
}

/* v1 insists at every moment that memory <= memory + swap and that no child's quota is above its
 * parent's. Whether raising or lowering, one of the two orders is refused (-EINVAL): what was
 * refused is tried again when the others are set. */
int cgroup_set_limits(const struct cgroup *cgroup, const struct limits *before,
                      const struct limits *limits, struct error *err)
{
    const struct setting *refused[ARRAY_COUNT(settings)];
    size_t refused_count = 0;

    if (cgroup_limits_check(limits, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_COUNT(settings); i++) {
        int result = apply_one(cgroup, &settings[i], before, limits);

        if (result == -EINVAL)
            refused[refused_count++] = &settings[i];
        else if (result < 0)
            return error_set(err, cgroup_error_code(result), result, "set %s of %s",
                             settings[i].file, cgroup->id.text);
    }
    for (size_t i = refused_count; i > 0; i--) {
        const struct setting *setting = refused[i - 1];
        int result = apply_one(cgroup, setting, before, limits);

        if (result < 0)
            return error_set(err, cgroup_error_code(result), result, "set %s of %s", setting->file,
                             cgroup->id.text);
    }
    return 0;
}
