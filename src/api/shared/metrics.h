/* Figures about sandboxes, the store and agents, as Prometheus text.
 *
 * They are sums over all owners: whoever may read them is an administrator. The five that the
 * first users of this software were promised are here twice, under our own names and under those:
 * cloudflare_sandbox_created, _wake_latency, _message_latency, cloudflare_r2_sync_duration,
 * cloudflare_r2_storage_bytes. packaging/alerts.yml has their alerts. */
#pragma once

#include "api/http/api.h"
#include "base/text.h"
#include "net/turn_meter.h"

/* One figure without labels. `type` is "counter" or "gauge". */
void metrics_add(struct text *out, const char *name, const char *type, const char *help,
                 double value);

/* How long the loop was held. */
void metrics_add_turns(struct text *out, const struct turn_meter *meter);

/* All of the domain and what is below it. */
void metrics_add_domain(struct text *out, const struct api *api);
