/* What webhook.c (the webhooks), webhook_follow.c (events that become deliveries) and
 * webhook_delivery.c (deliveries on their way out) share. */
#pragma once

#include "domain/domain_internal.h"
#include "domain/retention.h"
#include "domain/webhook/webhook.h"

struct webhooks {
    struct list all;      /* of webhook; the one that was sent something last is last */
    struct retention old; /* deliveries that are through */
};

/* --- webhook.c -------------------------------------------------------------------------------- */

/* The row of a webhook as it is in memory. */
void webhook_values(const struct webhook *webhook,
                    struct store_value ret_values[static STORE_WEBHOOK_COLUMN_COUNT]);

/* Bring its row up to date; nobody waits for it. */
void webhook_write_row(struct webhook *webhook);

struct webhook *webhook_by_id(const struct domain *domain, const struct id *id);

/* Free it when it is gone and nothing of it is under way. */
void webhook_release(struct webhook *webhook);

/* --- webhook_follow.c ------------------------------------------------------------------------- */

/* Whether a webhook with these types wants events of this one. `types` is its JSON array. */
bool webhook_wants(const char *types, const char *type);

/* Begin or go on following the log; stop. */
void webhook_follow(struct webhook *webhook);
void webhook_unfollow(struct webhook *webhook);

/* Its owner had so many deliveries that none could be added: perhaps there is room now. */
void webhook_follow_if_room(struct webhook *webhook);

/* --- webhook_delivery.c ----------------------------------------------------------------------- */

/* A delivery of this event, which waits and is not kept yet. `body` is taken. NULL: its owner has as
 * many that wait as he may. */
struct webhook_delivery *webhook_delivery_new(struct webhook *webhook, int64_t cursor,
                                              const char *type, char *body);
void webhook_delivery_free(struct webhook_delivery *delivery);

/* Its row; `detail` at most WEBHOOK_DETAIL_MAX bytes. */
void webhook_delivery_values(const struct webhook_delivery *delivery, const char *state, int status,
                             const char *detail,
                             struct store_value ret_values[static STORE_DELIVERY_COLUMN_COUNT]);

/* Deliveries that waited when the daemon ended; after the webhooks. */
void webhook_deliveries_load(struct domain *domain, domain_done *done, void *context);

/* All but the one that its sender holds. */
void webhook_forget_deliveries(struct webhook *webhook);
