/* Egress: what leaves sandboxes by a policy, and what it cost.
 *
 * A sandbox whose spec has a policy (model/egress_policy.h) has a way out: an outlet of the broker
 * (domain/broker.h) in its network, opened before any of its processes but the agent runs, kept while
 * it is frozen, closed with its processes. Each request is decided here: policy, then budgets, then
 * the credential that is put in. What a reply tells of tokens is counted as it comes; rows by owner,
 * sandbox, day, route and model are kept once a second and with the end of each request, and outlast
 * the sandbox. A request that is under way counts as partial in its row until it has ended, so that a
 * daemon that dies leaves it so, with what was seen of it.
 *
 * Budgets are of a sandbox, of a task (all sandboxes of an owner with the same label `task`) and of an
 * owner; egress_meter.h says how they are held. Days are those of UTC. */
#pragma once

#include "base/pool.h"
#include "domain/caller.h"
#include "domain/domain.h"
#include "domain/egress/egress_price.h"
#include "domain/sandbox/sandbox.h"
#include "json/json_write.h"
#include "model/egress_policy.h"

#define EGRESS_RECENT_MAX 50
#define EGRESS_KEPT_DAYS  400

/* Since the daemon started. */
struct egress_counters {
    uint64_t requests, denied, violations, cut; /* cut: by a budget */
    uint64_t sent, received;
    uint64_t tokens, micros, unpriced;
};

/* One that ended, for those who look. */
struct egress_request {
    int64_t time_ms;
    const char *way; /* static; NULL: none */
    char route[EGRESS_NAME_MAX + 1], host[EGRESS_HOST_MAX + 1], method[16], path[200];
    char model[EGRESS_MODEL_MAX + 1];
    uint16_t port;
    unsigned int status;
    uint64_t sent, received, ms, tokens, micros;
    bool has_cost, is_partial;
};

/* What there is of a sandbox's way out: members of an object that is open. */
void egress_write(const struct domain *domain, const struct sandbox *sandbox,
                  struct json_writer *json);

void egress_counters(const struct domain *domain, struct egress_counters *ret_counters);
/* How many are open; and requests under way. */
void egress_gauges(const struct domain *domain, size_t *ret_open, size_t *ret_under_way);

/* --- what was used --------------------------------------------------------------------------- */

#define EGRESS_GROUPS(W)                                                                           \
    W(EGRESS_BY_OWNER, "owner", "")                                                                \
    W(EGRESS_BY_MODEL, "model", "")                                                                \
    W(EGRESS_BY_DAY, "day", "")                                                                    \
    W(EGRESS_BY_SANDBOX, "sandbox", "")                                                            \
    W(EGRESS_BY_ROUTE, "route", "")                                                                \
    W(EGRESS_BY_TASK, "task", "")

enum egress_group { EGRESS_GROUPS(WORD_CONSTANT) EGRESS_GROUP_COUNT };

#define EGRESS_USAGE_MAX 1000 /* groups of one page */

struct egress_usage {
    char *key; /* owned: an id, a model, "2026-11-19", ... */
    uint64_t requests, partial, unpriced;
    struct egress_tokens tokens;
    uint64_t micros; /* of those whose price is known */
};

struct egress_usage_filter {
    enum egress_group by;
    int64_t from_ms, to_ms; /* days that begin in [from, to) */
    const struct id *owner; /* for administrators: of one; NULL: of all that are seen */
    const char *after;      /* the last key of the page before; NULL: from the start */
    size_t limit;
};

/* Sorted by key; `next` is NULL when this was the last page, else borrowed. What is in rows: what is
 * under way is in them a second later. Callers see their owner's, narrow keys their sandbox's. */
typedef void egress_usage_done(void *context, const struct error *failure,
                               const struct egress_usage *usage, size_t count, const char *next);
void egress_usage(struct domain *domain, const struct caller *caller,
                  const struct egress_usage_filter *filter, egress_usage_done *done, void *context);

/* --- what an owner says of all --------------------------------------------------------------- */

struct egress_owner_spec {
    bool has_policy, has_budget; /* what shall be different */
    const char *policy;          /* of new sandboxes that say nothing, as JSON; NULL: none */
    struct egress_budget budget; /* of all sandboxes together: administrators say it */
};

typedef void egress_owner_done(void *context, const struct error *failure);
void egress_owner_put(struct domain *domain, const struct caller *caller,
                      const struct egress_owner_spec *spec, egress_owner_done *done, void *context);
/* Members of an object that is open. */
void egress_owner_write(const struct domain *domain, const struct id *owner,
                        struct json_writer *json);
