/* What the provider is told of a sandbox. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "domain/sandbox/sandbox_wish.h"

/* The name as a host name: what is no letter or digit becomes '-'. */
static void make_hostname(const char *name, char ret_hostname[static 64])
{
    size_t length = 0;

    for (const char *at = name; at && *at && length < 63; at++) {
        char c = (char) (*at >= 'A' && *at <= 'Z' ? *at - 'A' + 'a' : *at);
        bool is_good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');

        if (is_good || length > 0)
            ret_hostname[length++] = is_good ? c : '-';
    }
    while (length > 0 && ret_hostname[length - 1] == '-')
        length--;
    ret_hostname[length] = '\0';
    if (length == 0)
        memcpy(ret_hostname, "sandbox", sizeof("sandbox"));
}

void sandbox_plan_init(struct sandbox_plan *plan, const struct sandbox *sandbox)
{
    const struct sandbox_spec *spec = &sandbox->spec;

    *plan = (struct sandbox_plan){.spec = {.id = sandbox->id,
                                           .image = spec->image,
                                           .limits = spec->limits,
                                           .owner = sandbox->owner,
                                           .network = spec->network.mode,
                                           .rules = spec->rules.items,
                                           .rule_count = spec->rules.count,
                                           .bind_count = spec->binds.count}};
    make_hostname(spec->name, plan->hostname);
    plan->spec.hostname = plan->hostname;
    plan->binds = mem_alloc_array(spec->binds.count + 1, sizeof(*plan->binds));
    for (size_t i = 0; i < spec->binds.count; i++)
        plan->binds[i] = (struct provider_bind){.source = spec->binds.items[i].value,
                                                .place = spec->binds.items[i].name};
    plan->spec.binds = plan->binds;
}

void sandbox_plan_done(struct sandbox_plan *plan)
{
    free(plan->binds);
}
