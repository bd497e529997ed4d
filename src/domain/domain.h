/* The domain: what Burrow is about, without HTTP, SQL or system calls.
 *
 * One struct that everything in domain/ shares: the tables in memory, the store behind them, the
 * provider where sandboxes run. One thread.
 *
 * Life: domain_new -> domain_open (loads the rows, opens the provider, recovers) -> work, with
 * domain_tick once a second -> domain_close. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "domain/broker.h"
#include "domain/harness.h"
#include "domain/identity/quota.h"
#include "domain/inside.h"
#include "domain/mounter.h"
#include "domain/token_source.h"
#include "domain/vault.h"
#include "objects/objects.h"
#include "provider/provider.h"
#include "share/share.h"
#include "store/store.h"

struct domain;

struct domain_options {
    struct store *store;           /* borrowed; closed by its owner after the domain */
    struct provider *provider;     /* taken: closed with the domain. NULL: there are no sandboxes */
    const struct inside *inside;   /* borrowed; may be NULL: nothing is asked, all count as idle */
    const struct vault *vault;     /* borrowed; may be NULL: nothing is stored but on disks */
    struct objects *objects;       /* borrowed; NULL where `vault` is. Both end before the domain */
    const struct mounter *mounter; /* borrowed; may be NULL: buckets cannot be mounted */
    const struct broker *broker;   /* borrowed; may be NULL: nothing leaves by a policy */
    const struct harness *harness; /* borrowed; may be NULL: no agents are driven */
    const struct token_source *tokens; /* borrowed; may be NULL: no credential is renewed */
    struct shares *shares;             /* borrowed; may be NULL: nothing is counted (share.h) */
    const struct clock *clock;         /* borrowed */
    struct log *log;                   /* borrowed, may be NULL */
    const char *node;                  /* name of this machine, copied */
    enum network_mode default_network;
    struct limits default_limits; /* for specs that say nothing */
    struct quota default_quota;   /* of owners without their own who are no administrators */
    uint64_t event_retention_ms;  /* 0: for ever */
    const char
        *sync_excludes; /* names that workspaces are synced without, commas between; copied */
    /* For specs that say nothing; 0: never. */
    uint64_t reclaim_after_ms; /* frozen that long: its memory goes to swap, where there is some */
    uint64_t hibernate_after_ms; /* frozen that long: its memory is given up */
    uint64_t offload_after_ms;   /* hibernated that long: its disk goes to the object store */
    /* Percent of the host's memory that is available, negative when not known. While it is less
     * than `memory_pressure` (0: never) frozen sandboxes give up theirs. May be NULL. */
    int (*memory_available)(void *context);
    unsigned int memory_pressure;
    /* Whether the disk of this machine has more free than must stay so. May be NULL. */
    bool (*disk_has_room)(void *context);
    uint64_t
        snapshot_cache_bytes; /* that snapshots which are stored, too, hold here; 0: no limit */
    uint64_t squash_above;    /* lists of more layers become one layer; 0: never */
    uint64_t gc_every_ms;     /* how often layers that nobody names are taken away; 0: never */
    /* Of the egress broker, all copied, all may be NULL: base URLs by API ("openai=URL,..."), local
     * addresses that rules may name ("127.0.0.1:8787,..."), prices ("pattern=in/out/read/write,..."
     * for a million tokens). domain_check_egress says what is wrong with them. */
    const char *model_upstreams, *broker_local, *prices;
    const char *agent_image; /* borrowed: of tasks that name none; NULL: the usual one */
    /* The provider is lost: the daemon must end. */
    void (*lost)(void *context, const struct error *reason);
    /* The file of a time zone ("Europe/Berlin"), the caller's; -1: there is none. May be NULL: only
     * UTC is known. Names have been checked (domain/task/time_zone.h). */
    int (*read_zone)(void *context, const char *name, char **ret_bytes, size_t *ret_length);
    /* Somebody may have lost a right: standing_check may say something else now. May be NULL. */
    void (*standing_changed)(void *context);
    /* Have domain_turn called once, soon, from the loop and never from inside this call. */
    void (*defer)(void *context);
    /* Have domain_later called once in that time, from the loop; a sooner one that is asked for
     * already is good, too. May be NULL: then it is done with the next tick. */
    void (*later)(void *context, uint64_t ms);
    void *context;
};

/* Whether those settings can be read. 0, or -1 with ERR_INVALID. */
int domain_check_egress(const struct domain_options *options, struct error *err);

/* What a broker is made with: it asks this domain. Valid as long as the domain. */
struct broker_host domain_broker_host(struct domain *domain);

/* Before the broker ends, which has to end before the domain is closed: all ways out are closed, and
 * nothing is granted any more. */
void domain_close_broker(struct domain *domain);

struct domain *domain_new(const struct domain_options *options);

typedef void domain_done(void *context, const struct error *failure);

/* Answered when everything is in memory and recovery has said a line per sandbox. */
void domain_open(struct domain *domain, domain_done *done, void *context);

/* The turn that was asked for with `defer`: answers that were known at once. */
void domain_turn(struct domain *domain);

/* The time that was asked for with `later` is over. */
void domain_later(struct domain *domain);

/* Time passes: expiry, sleep, retention. Once a second, and after the clock jumped. */
void domain_tick(struct domain *domain);

/* Sandboxes go on. Waiting calls are answered with ERR_UNAVAILABLE; `done` when the domain is gone,
 * which waits for open uses (sandbox_use.h) to end and needs domain_turn to be called until then.
 */
void domain_close(struct domain *domain, domain_done *done, void *context);

/* NULL: there is none. */
struct provider *domain_provider(const struct domain *domain);

/* What is under way here, in the store, the objects and the provider, as lines for people. */
void domain_describe(const struct domain *domain, struct text *out);

/* NULL when ready; else what is waited for, as a sentence. Static. */
const char *domain_waits_for(const struct domain *domain);

struct store *domain_store(struct domain *domain);

/* NULL: no agents are driven here. */
const struct harness *domain_harness(const struct domain *domain);

/* Durations, in buckets: under 1, 5, 10, 50, 100, 500, 5000 ms, and all. */
#define DOMAIN_LATENCY_BUCKETS 8
struct domain_latency {
    uint64_t buckets[DOMAIN_LATENCY_BUCKETS];
    uint64_t us_total;
};

/* Numbers since the start, for metrics. */
struct domain_counters {
    uint64_t created, destroyed, woken, slept, started, stopped, failed;
    uint64_t wakes_us_total;        /* from the first wish to running */
    uint64_t wake_buckets[8];       /* under 1, 5, 10, 50, 100, 500, 5000 ms, and all */
    struct domain_latency wakes[5]; /* by enum sandbox_tier: from where they woke */
    struct domain_latency saves[5]; /* by the tier they went to */
    uint64_t reclaimed_bytes, offloaded_bytes, save_failures, restore_failures;
    uint64_t create_us_total;
    uint64_t events;
    uint64_t snapshots, forked, rolled_back;
    uint64_t snapshot_pause_us_total; /* that sandboxes stood still for snapshots */
    struct domain_latency syncs;      /* of workspaces, those that succeeded */
    uint64_t sync_failures;
};
void domain_counters(const struct domain *domain, struct domain_counters *ret_counters);
