#include "api/agentpod/agentpod_provider.h"

#include <string.h>

#include "base/auto.h"

static const struct {
    const char *name;
    enum task_cleanup cleanup;
} kinds[] = {
    [AGENTPOD_DOCKER] = {"docker", TASK_KEEP},
    [AGENTPOD_CLOUDFLARE] = {"cloudflare", TASK_SLEEP},
    [AGENTPOD_BURROW] = {"burrow", TASK_DESTROY},
};

static const struct {
    const char *use_case;
    enum agentpod_provider provider;
} use_cases[] = {
    {"development", AGENTPOD_DOCKER},
    {"quick-task", AGENTPOD_CLOUDFLARE},
    {"batch", AGENTPOD_CLOUDFLARE},
    {"multi-agent", AGENTPOD_CLOUDFLARE},
};

const char *agentpod_provider_text(enum agentpod_provider provider)
{
    return kinds[provider].name;
}

int agentpod_provider_read(const char *name, enum agentpod_provider *ret_provider,
                           struct error *err)
{
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            *ret_provider = (enum agentpod_provider) i;
            return 0;
        }
    }
    return error_set(err, ERR_INVALID, 0, "provider must be docker, cloudflare or burrow");
}

static enum agentpod_provider agentpod_provider_for(const struct agentpod_providers *providers,
                                                    const char *use_case)
{
    for (size_t i = 0; i < ARRAY_COUNT(use_cases); i++) {
        if (strcmp(use_cases[i].use_case, use_case) != 0)
            continue;
        if (use_cases[i].provider == AGENTPOD_CLOUDFLARE && !providers->has_cloudflare)
            return AGENTPOD_DOCKER;
        return use_cases[i].provider;
    }
    return providers->standard;
}

int agentpod_provider_select(const struct agentpod_providers *providers, const char *name,
                             const char *use_case, enum agentpod_provider *ret_provider,
                             struct error *err)
{
    if (!name) {
        *ret_provider = providers->selects && use_case ? agentpod_provider_for(providers, use_case)
                                                       : providers->standard;
        return 0;
    }
    if (agentpod_provider_read(name, ret_provider, err) < 0)
        return -1;
    if (*ret_provider == AGENTPOD_CLOUDFLARE && !providers->has_cloudflare)
        return error_set(err, ERR_INVALID, 0,
                         "Cloudflare sandboxes not configured: the setting "
                         "enable-cloudflare-sandboxes is off");
    return 0;
}

enum task_cleanup agentpod_provider_cleanup(enum agentpod_provider provider)
{
    return kinds[provider].cleanup;
}

enum agentpod_provider agentpod_provider_of(enum task_cleanup cleanup)
{
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        if (kinds[i].cleanup == cleanup)
            return (enum agentpod_provider) i;
    }
    return AGENTPOD_DOCKER;
}
