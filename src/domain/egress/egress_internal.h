/* What the files of domain/egress share: the module's own struct, ways out, and what is under way.
 *
 *     egress_credential*   secrets: kept, read, put into requests; egress_renewal renews them
 *     egress_decide        what a policy says of a request: pure
 *     egress_meter         budgets: what was used, what is held for requests under way: pure
 *     egress_price         what tokens cost: one table
 *     egress_total         rows of what was used, by day
 *     egress_way           the way out of one sandbox: opened, changed, closed
 *     egress_ask           answers the broker: policy, budget and credential together
 *     egress_grant         what was let go: what it holds, uses and how it ends
 *     egress_tell          events, and floods of them */
#pragma once

#include "domain/broker.h"
#include "domain/domain_internal.h"
#include "domain/egress/egress.h"
#include "domain/egress/egress_credential.h"
#include "domain/egress/egress_decide.h"
#include "domain/egress/egress_meter.h"
#include "domain/egress/egress_price.h"
#include "domain/retention.h"
#include "model/egress_policy.h"

#define EGRESS_UNDER_WAY_MAX 1024 /* requests of one sandbox at a time */
#define EGRESS_REPEATS_MAX   16   /* different denials that are counted at a time */

/* A budget's scope: a sandbox, a task, an owner. Found by its key, and there as long as somebody
 * needs it; what it used today is added up from the rows. */
struct egress_scope {
    struct table_link by_key;
    char *key; /* owned: "sandbox/ID", "task/OWNER/LABEL", "owner/ID" */
    struct egress_meter meter;
    unsigned int references;
};

enum egress_scope_kind { EGRESS_SANDBOX, EGRESS_TASK, EGRESS_OWNER, EGRESS_SCOPE_COUNT };

/* The same denial, again and again, is told once and counted. */
struct egress_repeat {
    uint64_t hash; /* 0: free */
    uint64_t until_ns;
    uint64_t times;
    char type[24], reason[32], host[EGRESS_HOST_MAX + 1];
    const char *way;
    uint16_t port;
};

/* The way out of one sandbox. */
struct egress_way {
    struct table_link by_sandbox;
    struct list link; /* of all */
    struct domain *domain;
    struct id sandbox, owner;
    char *text; /* owned: the policy as its spec had it, NULL: none any more */
    char *task; /* owned: its label `task`, "" */
    struct egress_policy policy;
    struct egress_scope *scopes[EGRESS_SCOPE_COUNT]; /* NULL: none, as of a task */

    struct broker_outlet *outlet;  /* NULL: not open */
    struct sandbox_texts forwards; /* of the outlet that is open: egress_place.h */
    char *certificate, *key;       /* owned: its authority, NULL: none yet */
    bool is_looked_up;             /* what the store has of that is known */
    bool is_stale;                 /* its agent was not told what is so now */
    bool is_forgotten;             /* its processes are over: it is in no table any more */
    struct list openings;          /* of egress_opening: the first is under way */
    unsigned int holds;            /* asks that wait for an answer */
    uint64_t retry_ns;             /* monotonic: not opened again by itself before that */

    struct list grants; /* of egress_grant */
    size_t grant_count;
    unsigned int model_count; /* rows it has made: replies name models, and could name any number */
    char models[EGRESS_API_COUNT][EGRESS_MODEL_MAX + 1]; /* the last one of each API */
    struct egress_counters counters;
    struct egress_request recent[EGRESS_RECENT_MAX]; /* a ring */
    size_t recent_next;

    double tokens; /* of events that may be told one by one */
    uint64_t filled_ns;
    uint64_t untold; /* since the last one that was told */
    struct egress_repeat repeats[EGRESS_REPEATS_MAX];
};

/* Something that the broker was let do, until it says how it ended. */
struct egress_grant {
    struct table_link by_number;
    struct list link; /* of its way */
    struct list all;
    struct egress_way *way;
    uint64_t number;
    char route[EGRESS_NAME_MAX + 1];
    char credential[EGRESS_NAME_MAX + 1]; /* "": none */
    enum egress_api api;
    bool is_metered;
    struct broker_usage usage;                       /* seen so far */
    struct egress_cost cost;                         /* of that */
    struct egress_scope *scopes[EGRESS_SCOPE_COUNT]; /* references: those it began with */
    struct egress_hold holds[EGRESS_SCOPE_COUNT];
    struct egress_total *total; /* the row it is counted in; NULL: none */
};

/* One row of what was used: in memory as long as it is today's, or has to be kept. */
struct egress_total {
    struct table_link by_key;
    struct list link;
    struct id owner, sandbox;
    int64_t day_ms;
    char route[EGRESS_NAME_MAX + 1], model[EGRESS_MODEL_MAX + 1];
    char *task; /* owned */
    uint64_t requests, partial, unpriced;
    struct egress_tokens tokens;
    uint64_t micros;
    bool is_dirty;      /* more than the store has */
    unsigned int holds; /* grants that count in it, and rows on their way */
};

/* What an owner says of all its sandboxes. */
struct egress_owner {
    struct table_link by_id;
    struct list link;
    struct id id;
    char *policy; /* owned; NULL: none */
    struct egress_budget budget;
};

struct egress {
    struct table credentials;    /* by owner and name */
    struct list credential_list; /* oldest first */
    struct table ways;           /* by sandbox */
    struct list way_list;
    struct table scopes; /* by key */
    struct table grants; /* by number */
    struct list grant_list;
    uint64_t last_grant;
    struct table totals;
    struct list total_list;
    struct table owners;
    struct list owner_list;
    struct retention old; /* rows of what was used */
    struct egress_prices prices;
    struct sandbox_pairs upstreams;  /* by API's name */
    struct sandbox_texts local;      /* "127.0.0.1:8787" */
    struct egress_counters counters; /* of all, for metrics */
    bool is_closing;
};

/* --- egress_way.c ----------------------------------------------------------------------------- */

struct egress_way *egress_way_of(const struct domain *domain, const struct id *sandbox);
struct egress_scope *egress_scope_get(struct domain *domain, const char *key);
void egress_scope_release(struct domain *domain, struct egress_scope *scope);
/* Freed when nothing of it is under way. */
void egress_way_release(struct egress_way *way);
/* Those of an owner are cut off from what is open; of one credential, or (NULL) all. */
void egress_ways_cut(struct domain *domain, const struct id *owner, const char *credential);
void egress_way_tick(struct egress_way *way);
void egress_ways_close(struct domain *domain);
void egress_way_free(struct egress_way *way);

/* As members of the module. */
void egress_open_way(struct domain *domain, struct sandbox *sandbox, domain_done *done,
                     void *context);
void egress_forgotten(struct domain *domain, const struct id *sandbox);
void egress_recovered(struct domain *domain);
void egress_variables(const struct domain *domain, const struct sandbox *sandbox,
                      void (*each)(void *context, const char *name, const char *value),
                      void *context);

/* --- egress_authority.c ------------------------------------------------------------------------ */

void egress_made_authority(void *self, const struct id *sandbox, const char *certificate,
                           const char *key);
typedef void egress_authority_done(void *context, const struct error *failure,
                                   const char *certificate, const char *key);
/* What was kept of a sandbox's; NULL: nothing. */
void egress_authority_find(struct domain *domain, const struct id *sandbox,
                           egress_authority_done *done, void *context);

/* --- egress_ask.c ------------------------------------------------------------------------------ */

void egress_ask(void *self, const struct broker_ask *ask, broker_answer *done, void *context);

/* --- egress_grant.c ---------------------------------------------------------------------------- */

const char *egress_scope_text(enum egress_scope_kind kind);
const struct egress_budget *egress_budget_of(const struct egress_way *way,
                                             enum egress_scope_kind kind);
enum egress_api egress_api_of(enum broker_format format);

/* What the verdict lets go, with an estimate of what it uses. `credential` may be NULL. */
struct egress_grant *egress_grant_new(struct egress_way *way, const struct egress_verdict *verdict,
                                      const char *credential, uint64_t tokens, uint64_t micros);

bool egress_used(void *self, uint64_t grant, enum broker_format format,
                 const struct broker_usage *usage);
void egress_ended(void *self, const struct broker_record *record);
void egress_violated(void *self, const struct id *sandbox, const char *reason, const char *host,
                     uint16_t port);
/* Nobody tells any more how they end. */
void egress_grants_end(struct domain *domain);

/* --- egress_total.c ---------------------------------------------------------------------------- */

int64_t egress_day(const struct domain *domain);
/* The row of today. */
struct egress_total *egress_total_get(struct egress_way *way, const char *route, const char *model);
/* Its row into a transaction, to whose commit egress_total_kept is the answer. */
struct egress_keeping *egress_total_add(struct domain *domain, struct store_transaction *rows,
                                        struct egress_total *total);
void egress_total_kept(void *context, const struct error *failure,
                       const struct store_receipt *receipt);
void egress_totals_tick(struct domain *domain);
void egress_totals_load(struct domain *domain, domain_done *done, void *context);
void egress_totals_end(struct domain *domain);

/* --- egress_tell.c ----------------------------------------------------------------------------- */

/* The end of a request: into the ring, and into the log with its row. */
void egress_tell_request(struct egress_way *way, struct egress_grant *grant,
                         const struct broker_record *record);
/* `type` is "egress.denied" or "egress.violation"; static, as `way_text` and `reason`. */
void egress_tell_denial(struct egress_way *way, const char *type, const char *way_text,
                        const char *host, uint16_t port, const char *reason);
void egress_tell_budget(struct egress_way *way, const char *scope, const char *what);
void egress_tell_tick(struct egress_way *way);
const char *egress_way_text(enum broker_way way);

/* --- egress_owner.c ---------------------------------------------------------------------------- */

const struct egress_owner *egress_owner_of(const struct domain *domain, const struct id *owner);
void egress_owners_load(struct domain *domain, domain_done *done, void *context);
void egress_owner_forget(struct domain *domain, const struct id *owner);
void egress_owners_end(struct domain *domain);
void egress_fill(const struct domain *domain, const struct id *owner, struct sandbox_spec *spec);

/* --- egress_credential_keep.c, egress_renewal.c ------------------------------------------------ */

void egress_credentials_load(struct domain *domain, domain_done *done, void *context);
void egress_credentials_end(struct domain *domain);
void egress_credentials_tick(struct domain *domain);
void egress_credentials_forget(struct domain *domain, const struct id *owner);
/* Its row as it is; into a transaction. */
void egress_credential_add_row(struct store_transaction *rows,
                               const struct egress_credential *credential);
void egress_credential_release(struct egress_credential *credential);

/* Have a value that is good for a request: `done` may be called from inside when there is one. */
void egress_renew(struct domain *domain, struct egress_credential *credential, domain_done *done,
                  void *context);
bool egress_needs_renewal(const struct domain *domain, const struct egress_credential *credential);
void egress_renewal_tick(struct domain *domain, struct egress_credential *credential);
void egress_renewal_end(struct egress_credential *credential, const struct error *failure);
