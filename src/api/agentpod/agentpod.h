/* The AgentPod worker dialect, /sandbox...: sandboxes made on purpose, with a repository and
 * OpenCode's configuration in them.
 *
 *     POST   /sandbox                 {id, userId, config?, directory?, gitUrl?, gitBranch?}
 *     GET    /sandbox/{id}            the true status; no wake
 *     DELETE /sandbox/{id}            destroys
 *     POST   /sandbox/{id}/wake       {config?}
 *     GET    /api/v2/sandboxes/{id}/terminal   JSON frames (terminal_frames.h), as a WebSocket
 *
 * Ids are kept exactly as they are given: 1 to 128 bytes without control characters. message,
 * opencode, sync and workflow are 501 until there are agents. Errors are {"error": "a sentence"}.
 */
#pragma once

#include "api/http/api.h"
#include "net/http/http_route.h"

/* The table, with `api` as its context (borrowed). */
struct http_mount agentpod_mount(struct api *api);
