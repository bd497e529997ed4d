/* What OpenCode is configured with: the caller's own, and over it what we insist on.
 *
 *     {"model": ..., "mcp": ...}   the caller's
 *   + {"autoupdate": false, "share": "disabled", "permission": {"*": "allow"},
 *      "provider": {"anthropic": {"options": {"baseURL": "http://127.66.0.1:8790/anthropic/v1",
 *                                             "apiKey": "burrow-anthropic"}}},
 *      "enabled_providers": [those of the broker, and whatever the caller's `provider` has]}
 *
 * Pure. */
#pragma once

#include "base/error.h"
#include "base/text.h"
#include "domain/harness.h"

#define OPENCODE_CONFIG_MAX ((size_t) 96 * 1024) /* a variable of a process holds 128 kB */

/* Where the broker listens in a sandbox, for base URLs. */
#define HARNESS_BROKER_BASE "http://127.66.0.1:8790/"

/* Append it. 0, or -1 with ERR_INVALID (the caller's is no JSON object, a permission unknown) or
 * ERR_TOO_LARGE. */
int opencode_config_write(const struct harness_place *place, struct text *config,
                          struct error *err);
