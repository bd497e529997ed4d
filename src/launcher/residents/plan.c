#include "launcher/residents/plan.h"

#include <arpa/inet.h>

_Static_assert(WIRE_RULES_MAX <= NETWORK_RULES_MAX, "a plan's rules fit into a policy");
_Static_assert(WIRE_BINDS_MAX <= SANDBOX_BINDS_MAX, "a plan's binds fit into a sandbox");

struct cgroup_limits plan_limits(const struct wire_limits *limits)
{
    return (struct cgroup_limits){
        .memory_bytes = limits->memory_bytes,
        .swap_bytes = limits->swap_bytes,
        .pids = limits->pids,
        .cpu_millis = limits->cpu_millis,
    };
}

int plan_check_limits(const struct wire_limits *limits, struct error *err)
{
    struct cgroup_limits groups = plan_limits(limits);

    if (cgroup_limits_check(&groups, err) < 0)
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
        .limits = plan_limits(&plan->limits),
        .disk = plan->limits.disk_bytes,
        .files = plan->limits.files,
        .is_pooled = plan->flags & WIRE_BIT(WIRE_PLAN_POOLED),
        .existing_disk = plan->flags & WIRE_BIT(WIRE_PLAN_EXISTING_DISK),
    };
    return 0;
}

struct network_policy plan_policy(const struct wire_plan *plan,
                                  struct network_rule rules[static WIRE_RULES_MAX])
{
    static const enum network_protocol protocols[] = {
        [WIRE_PROTOCOL_ANY] = NETWORK_ANY,
        [WIRE_PROTOCOL_TCP] = NETWORK_TCP,
        [WIRE_PROTOCOL_UDP] = NETWORK_UDP,
    };

    for (size_t i = 0; i < plan->rules.count; i++) {
        const struct wire_rule *rule = &plan->rules.items[i];
        bool all = rule->ports.first == 0 && rule->ports.last == UINT16_MAX;

        rules[i] = (struct network_rule){
            .allow = rule->allow,
            .network.s_addr = htonl(rule->to.address),
            .prefix = rule->to.bits,
            .protocol = protocols[rule->protocol],
            .first_port = all ? 0 : rule->ports.first,
            .last_port = all ? 0 : rule->ports.last,
        };
    }
    return (struct network_policy){.rules = rules, .count = plan->rules.count};
}

uint32_t plan_unenforced(const struct wire_limits *limits, uint32_t enforced)
{
    uint32_t asked = 0;

    asked |= limits->memory_bytes ? PLAN_LIMIT_BIT(MEMORY) : 0;
    asked |= limits->memory_bytes && limits->swap_bytes != WIRE_SWAP_UNLIMITED
                 ? PLAN_LIMIT_BIT(SWAP)
                 : 0;
    asked |= limits->pids ? PLAN_LIMIT_BIT(PIDS) : 0;
    asked |= limits->cpu_millis ? PLAN_LIMIT_BIT(CPU) : 0;
    asked |= limits->disk_bytes ? PLAN_LIMIT_BIT(DISK) : 0;
    asked |= limits->files ? PLAN_LIMIT_BIT(FILES) : 0;
    return asked & ~enforced;
}
