/* Sends webhooks' deliveries (domain/webhook/webhook.h): looks for due ones a few times a second,
 * posts them, and says how it went.
 *
 *     POST URL
 *     Content-Type: application/json
 *     X-Burrow-Event: sandbox.created
 *     X-Burrow-Delivery: <id of the delivery: the same when it is tried again>
 *     X-Burrow-Signature: t=<seconds since 1970>,v1=<hex HMAC-SHA-256 of "t.body" by the secret>
 *     Authorization: Bearer <bearer>                       when the webhook has one (legacy)
 *
 * Addresses that are not of the public internet are refused unless the operator allows them
 * (net/address_rules.h); redirects are not followed; of the answer only its status counts. */
#pragma once

#include "base/error.h"
#include "domain/domain.h"
#include "net/loop.h"

struct webhook_sender;

/* `allowed` are ranges of addresses, separated by commas, that may be dialled besides public ones.
 * NULL with ERR_INVALID. All pointers are borrowed. */
struct webhook_sender *webhook_sender_new(struct loop *loop, struct domain *domain,
                                          const struct clock *clock, const char *allowed,
                                          struct error *err);

/* What is under way is given up; it is tried again after the next start. Before the domain is
 * closed. `done` (may be NULL) when it is gone. */
void webhook_sender_close(struct webhook_sender *sender, void (*done)(void *context),
                          void *context);
