/* Where AgentPod's clients say that a sandbox shall run. Here it is one backend under several names, which
 * differ in what becomes of the sandbox of a task afterwards:
 *
 *     docker        stays as it is
 *     cloudflare    is put to sleep
 *     burrow        is destroyed; the result is kept
 *
 * Pure. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "domain/task/task.h"

enum agentpod_provider { AGENTPOD_DOCKER, AGENTPOD_CLOUDFLARE, AGENTPOD_BURROW };

/* As the settings say. */
struct agentpod_providers {
    bool has_cloudflare;             /* enable-cloudflare-sandboxes */
    bool selects;                    /* auto-select-provider */
    enum agentpod_provider standard; /* default-sandbox-provider */
    const char *image;               /* agent-image, borrowed; NULL: the usual one */
};

const char *agentpod_provider_text(enum agentpod_provider provider);

/* 0, or -1 with ERR_INVALID. */
int agentpod_provider_read(const char *name, enum agentpod_provider *ret_provider,
                           struct error *err);

/* What is asked for by name counts; without a name the use case decides, where that is wanted; else
 * the standard. Either may be NULL. -1 with ERR_INVALID: there is no such name, or it is not
 * enabled. */
int agentpod_provider_select(const struct agentpod_providers *providers, const char *name,
                             const char *use_case, enum agentpod_provider *ret_provider,
                             struct error *err);

enum task_cleanup agentpod_provider_cleanup(enum agentpod_provider provider);
enum agentpod_provider agentpod_provider_of(enum task_cleanup cleanup);
