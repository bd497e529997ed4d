#include "launcher/residents/plan.h"

_Static_assert(WIRE_BINDS_MAX <= SANDBOX_BINDS_MAX, "a plan's binds fit into a sandbox");

int plan_check_limits(const struct limits *limits, struct error *err)
{
    if (cgroup_limits_check(limits, err) < 0)
        return -1;
    if (limits->disk_bytes && limits->disk_bytes < DISK_LIMIT_MIN)
        return error_set(err, ERR_INVALID, 0, "a disk limit is at least %llu bytes, not %llu",
                         DISK_LIMIT_MIN, (unsigned long long) limits->disk_bytes);
    return 0;
}

int plan_expand(const struct wire_plan *plan, struct sandbox_plan *ret_plan, struct error *err)
{
    if (plan_check_limits(&plan->limits, err) < 0)
        return -1;
    *ret_plan = (struct sandbox_plan){
        .id = plan->id,
        .hostname = plan->hostname,
        .image = plan->image,
        .limits = plan->limits,
        .is_pooled = plan->flags & WIRE_BIT(WIRE_PLAN_POOLED),
        .existing_disk = plan->flags & WIRE_BIT(WIRE_PLAN_EXISTING_DISK),
    };
    return 0;
}

uint32_t plan_unenforced(const struct limits *limits, uint32_t enforced)
{
    uint32_t asked = 0;

    asked |= limits->memory_bytes ? LIMIT_BIT(MEMORY) : 0;
    asked |=
        limits->memory_bytes && limits->swap_bytes != LIMITS_SWAP_UNLIMITED ? LIMIT_BIT(SWAP) : 0;
    asked |= limits->pids ? LIMIT_BIT(PIDS) : 0;
    asked |= limits->cpu_millis ? LIMIT_BIT(CPU) : 0;
    asked |= limits->disk_bytes ? LIMIT_BIT(DISK) : 0;
    asked |= limits->files ? LIMIT_BIT(FILES) : 0;
    return asked & ~enforced;
}
