/* AgentPod's `config`, taken apart into files: what to write where, decided before anything is
 * done.
 *
 * It is OpenCode's own configuration and three keys more:
 *
 *     agents_md   ──► AGENTS.md
 *     files       ──► .opencode/{agent,command,tool,plugin}/<name>.<md|ts|js>
 *     auth        ──► credentials, which never enter the workspace
 *     the rest    ──► .opencode/opencode.json, without provider.*.options.apiKey: those are
 *                     credentials, too
 *
 * Names are [A-Za-z0-9._-]+ without a dot in front, so none leads elsewhere. Pure functions. */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "base/pool.h"
#include "json/json_read.h"

#define AGENTPOD_FILES_MAX     ((size_t) 256)
#define AGENTPOD_NAME_MAX      ((size_t) 100)
#define AGENTPOD_CONTENT_MAX   ((size_t) 4 * 1024 * 1024)
#define AGENTPOD_PROVIDERS_MAX ((size_t) 64)

struct agentpod_file {
    const char *path; /* below the working folder */
    const char *content;
};

/* All in the pool. */
struct agentpod_config {
    struct agentpod_file *files;
    size_t count;
    const char *credentials; /* a JSON object as OpenCode keeps it; NULL: none */
    const char *opencode;    /* the rest, without keys; NULL: nothing */
};

/* Read body.config; absent: nothing to write. Returns 0, or -1 with ERR_INVALID and a message that
 * repeats no secret. */
int agentpod_config_read(const struct json_place *body, struct pool *pool,
                         struct agentpod_config *ret_config, struct error *err);
