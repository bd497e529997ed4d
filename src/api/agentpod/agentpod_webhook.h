/* POST /api/v2/cloudflare/webhook: workers elsewhere tell what happens to their sandboxes.
 *
 *     Authorization: Bearer <service token>        no key and no login opens it
 *     {"event": "sandbox.woken", "data": {"sandboxId": "...", ...}, "timestamp": "..."}
 *     200 {"received": true}
 *
 * Validated as AgentPod does; a body that is not right is 400 {"success": false, "error":
 * {"issues":
 * [...], "name": "ZodError"}}. What arrives is kept in our event log (domain/remote_event.h)
 * before it is acknowledged. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/encoding/sha256.h"
#include "domain/domain.h"
#include "net/http/http_route.h"

#define AGENTPOD_TOKEN_MIN 16

struct agentpod_webhook {
    struct domain *domain; /* borrowed */
    bool has_token;        /* none: nothing is accepted */
    uint8_t token_hash[SHA256_SIZE];
};

/* `token` may be NULL or "": every webhook is refused. Returns 0, or -1 with ERR_INVALID when it is
 * shorter than AGENTPOD_TOKEN_MIN. The token itself is not kept. */
int agentpod_webhook_init(struct agentpod_webhook *webhook, struct domain *domain,
                          const char *token, struct error *err);

/* The table, with `webhook` as its context (borrowed). */
struct http_mount agentpod_webhook_mount(struct agentpod_webhook *webhook);
