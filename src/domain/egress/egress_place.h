/* What a policy makes of a sandbox's network: where is listened, which names lead there, what programs
 * inside are told. Pure. */
#pragma once

#include "domain/broker.h"
#include "model/egress_policy.h"
#include "model/pairs.h"

/* Files that the agent writes (agent/control/way_out.h). */
#define EGRESS_CA_FILE     "/run/burrow/ca.pem"
#define EGRESS_BUNDLE_FILE "/run/burrow/ca-bundle.pem"

struct egress_place {
    struct broker_forward forwards[BROKER_FORWARDS_MAX]; /* hosts: the policy's, borrowed */
    char addresses[BROKER_FORWARDS_MAX][16];
    size_t forward_count;
    const char *intercepted[EGRESS_RULES_MAX]; /* likewise; of "*.x.org" it is x.org */
    size_t intercepted_count;
    struct sandbox_texts listening; /* "127.66.1.1:5432 db.internal": one for each forward */
};

/* `local` are addresses of this machine that an operator lets rules name, "127.0.0.1:8787": those are
 * listened on as they are, so that a URL is true on both sides. */
void egress_place_init(struct egress_place *place, const struct egress_policy *policy,
                       const struct sandbox_texts *local);
void egress_place_done(struct egress_place *place);
AUTO_DEFINE(egress_place, struct egress_place, egress_place_done);

bool egress_is_local(const struct sandbox_texts *local, const char *host, uint16_t port);

/* What the agent is told: {"hosts": [...], "authority": PEM or null}. */
void egress_place_write(const struct egress_place *place, const struct egress_policy *policy,
                        const char *authority, struct text *text);

void egress_place_variables(const struct egress_policy *policy, const struct egress_place *place,
                            void (*each)(void *context, const char *name, const char *value),
                            void *context);
