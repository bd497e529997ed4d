/* For the modules of the domain: the struct they share, and what a module brings.
 *
 * A module (owners, keys, logins, ports, audit, ...) keeps its own struct behind its own pointer
 * below, declared in its own .c, and has one line in domain_modules.c:
 *
 *     const struct domain_module domain_ports = {.name = "ports", .load = load, ...};
 *
 * Included by src/domain and its tests only. One thread. */
#pragma once

#include "base/id.h"
#include "base/list.h"
#include "base/table.h"
#include "base/trace.h"
#include "domain/caller.h"
#include "domain/domain.h"
#include "domain/sandbox/sandbox.h"

/* --- modules --------------------------------------------------------------------------------- */

/* Every member may be NULL. */
struct domain_module {
    const char *name; /* for logs */

    /* domain_new: allocate. */
    void (*begin)(struct domain *domain);

    /* domain_open: rows into memory, in the order of the table, before recovery looks at
     * sandboxes. Most are one line: domain_load. */
    void (*load)(struct domain *domain, domain_done *done, void *context);

    /* A sandbox is about to be destroyed: add to the transaction what goes with it. It may fail;
     * nothing is changed in memory yet. At most DOMAIN_MODULE_CHANGES_MAX changes. */
    void (*destroying)(struct domain *domain, struct store_transaction *change,
                       const struct sandbox *sandbox);

    /* That was kept: forget it in memory. Also for sandboxes that failed to come to be. */
    void (*destroyed)(struct domain *domain, const struct id *sandbox);

    /* --- asked by sandbox/, which knows nothing of who answers: sandbox_hooks.h. Of the first
     * three only one module has each, so that nobody has to wait for several. */

    /* It runs, with new processes or old ones, and nobody was told yet. `done` may be NULL, and may
     * be called from inside. */
    void (*running)(struct domain *domain, struct sandbox *sandbox, bool is_new,
                    void (*done)(void *context), void *context);
    /* Its processes are about to be ended. May answer from inside. */
    void (*ending)(struct domain *domain, struct sandbox *sandbox, void (*done)(void *context),
                   void *context);
    /* It is about to sleep without its memory; a failure keeps it awake. May answer from inside. */
    void (*sleeping)(struct domain *domain, struct sandbox *sandbox, domain_done *done,
                     void *context);
    /* Whether its files come back from elsewhere when its disk is lost. */
    bool (*is_mirrored)(const struct domain *domain, const struct id *sandbox);
    /* When something has to be done with it, monotonic (UINT64_MAX: never), and doing it. */
    uint64_t (*due)(const struct domain *domain, const struct sandbox *sandbox);
    void (*act)(struct domain *domain, struct sandbox *sandbox);
    /* What an owner has on disks besides sandboxes. */
    uint64_t (*disk_bytes)(const struct domain *domain, const struct id *owner);

    /* --- its way out: only one module has each of these */

    /* What a new sandbox of this owner gets that says nothing of it. */
    void (*fill)(const struct domain *domain, const struct id *owner, struct sandbox_spec *spec);
    /* It has new processes, of which none but its agent runs yet; or its spec is another one. Both
     * wait for the answer, which may come from inside. Of one with nothing to open it closes. */
    void (*open_way)(struct domain *domain, struct sandbox *sandbox, domain_done *done,
                     void *context);
    /* Variables that its processes get unless it says them itself. */
    void (*variables)(const struct domain *domain, const struct sandbox *sandbox,
                      void (*each)(void *context, const char *name, const char *value),
                      void *context);
    /* Its processes are over. */
    void (*forgotten)(struct domain *domain, const struct id *sandbox);

    /* Once, after recovery. */
    void (*recovered)(struct domain *domain);
    /* Somebody may have lost a right: standing.h. */
    void (*standing_changed)(struct domain *domain);

    /* sandbox_find, for what sandboxes are built on: domain_find_sandbox. */
    struct sandbox *(*find_sandbox)(struct domain *domain, const struct caller *caller,
                                    const char *name_or_id, struct error *err);

    /* --- asked by identity/, which knows nothing of who answers, for an owner that shall go */

    /* Whether something of it is in the way: then -1, and `err` says what. */
    int (*owner_check)(const struct domain *domain, const struct id *owner, struct error *err);
    /* As destroying and destroyed. */
    void (*owner_deleting)(struct domain *domain, struct store_transaction *change,
                           const struct id *owner);
    void (*owner_deleted)(struct domain *domain, const struct id *owner);

    /* Once a second. */
    void (*tick)(struct domain *domain);

    /* The time is over that somebody asked for with domain_options.later. */
    void (*later)(struct domain *domain);

    /* domain_close: what goes on without end ends now, or is left. Rows stay as they are. */
    void (*closing)(struct domain *domain);

    /* domain_close: no answer is outstanding any more; free everything. Also after a failed load.
     */
    void (*end)(struct domain *domain);
};

#define DOMAIN_MODULE_CHANGES_MAX 4

/* All of them, in the order they are loaded; NULL behind the last. */
extern const struct domain_module *const domain_modules[];

/* --- the domain ------------------------------------------------------------------------------ */

struct domain_task {
    struct list link;
    struct trace_context trace; /* of whoever deferred it; it runs as that */
    void (*run)(struct domain_task *task);
};

enum domain_stage { DOMAIN_NEW, DOMAIN_OPENING, DOMAIN_OPEN, DOMAIN_CLOSING };

struct domain {
    struct domain_options options; /* `node` is owned here */
    enum domain_stage stage;
    bool is_provider_open;
    bool is_provider_lost;
    uint64_t seed; /* of all tables whose keys strangers choose */
    struct domain_counters counters;
    struct list tasks;   /* of domain_task, run by domain_turn */
    size_t outstanding;  /* answers of the store that have not come */
    unsigned int turns;  /* domain_turn is running */
    size_t uses;         /* open ones, of all sandboxes */
    size_t saves;        /* disks that are being stored: sandbox_offload.c, squash.c */
    uint64_t collect_ns; /* monotonic: when the collector is due; 0: not known yet */
    bool is_collecting;  /* layers are being deleted: none may be stored meanwhile */
    bool is_inspecting;  /* inspection.c */
    bool is_squashing;   /* squash.c */
    uint64_t squash_ns;  /* monotonic: nothing is squashed before that, because one failed */
    size_t works;        /* things under way that end with an answer of ours: sandbox_wish.h */
    domain_done *closed; /* while closing */
    void *closed_context;

    struct list asked;             /* of struct inside_call: inside_call.h */
    struct sandbox_set *sandboxes; /* sandbox_set.h */
    struct expiry *expiry;         /* expiry.h */
    struct event_log *events;      /* event.c */

    struct owners *owners;               /* owner.c */
    struct api_keys *api_keys;           /* api_key.c */
    struct logins *logins;               /* login.c */
    struct ports *ports;                 /* port.c */
    struct audit *audit;                 /* audit.c */
    struct webhooks *webhooks;           /* webhook.c */
    struct snapshots *snapshots;         /* snapshot_set.h */
    struct templates *templates;         /* template.c */
    struct backups *backups;             /* backup.c */
    struct bucket_mounts *bucket_mounts; /* bucket_mount.c */
    struct workspaces *workspaces;       /* workspace.c */
    struct new_disks *new_disks;         /* new_disks.h */
    struct egress *egress;               /* egress_internal.h */
    struct conversations *conversations; /* conversation_internal.h */
    struct tasks *tasks_kept;            /* task_internal.h */
    struct teams *teams;                 /* team.c */
    struct task_schedules *schedules;    /* task_schedule.c */
    struct workflows *workflows;         /* workflow_internal.h */
};

/* --- calls ----------------------------------------------------------------------------------- */

/* Run `task` once, soon, from the loop. It must not be deferred already. For answers that are known
 * at once and may not come from inside the call. */
void domain_defer(struct domain *domain, struct domain_task *task,
                  void (*run)(struct domain_task *task));

/* As store_commit and store_find, for everything in the domain: domain_close waits for the answers.
 * They come also while closing; whoever gets one then starts nothing new. `done` may be NULL. */
void domain_commit(struct domain *domain, struct store_transaction *change, store_done *done,
                   void *context);
void domain_find(struct domain *domain, const struct store_query *query, store_rows_done *done,
                 void *context);

/* Every row of a kind, in the order of `key`, a column of which at most STORE_ROWS_MAX - 1 rows
 * have the same value. `each` returns 0, or -1 with an error that ends it: the daemon does not
 * start with rows it cannot read. */
typedef int domain_row(struct domain *domain, const struct store_value *row, struct error *err);
void domain_load(struct domain *domain, enum store_kind kind, unsigned int key, domain_row *each,
                 domain_done *done, void *context);

/* As sandbox_find (sandboxes.h), for event/ and identity/, on which sandboxes are built. */
struct sandbox *domain_find_sandbox(struct domain *domain, const struct caller *caller,
                                    const char *name_or_id, struct error *err);

/* Add to a transaction: all rows go that have this id in a column. */
void domain_delete_rows(struct store_transaction *change, enum store_kind kind, unsigned int column,
                        const struct id *id);

/* False while opening or closing: then `err` has ERR_UNAVAILABLE. */
bool domain_is_open(const struct domain *domain, struct error *err);

static inline int64_t domain_wall_ms(const struct domain *domain)
{
    return clock_wall_ms(domain->options.clock);
}

static inline uint64_t domain_now_ns(const struct domain *domain)
{
    return clock_monotonic_ns(domain->options.clock);
}

static inline bool id_equal(const struct id *a, const struct id *b)
{
    return __builtin_strcmp(a->text, b->text) == 0;
}

/* Count something that began at `since_ns`. */
void domain_latency_add(const struct domain *domain, struct domain_latency *latency,
                        uint64_t since_ns);

/* The id in a text column; an empty one for null. Longer texts are cut: they are none of ours. */
struct id domain_row_id(const struct store_value *value);

static inline uint64_t domain_id_hash(const struct domain *domain, const struct id *id)
{
    return table_hash(domain->seed, id->text, __builtin_strlen(id->text));
}

/* --- the end --------------------------------------------------------------------------------- */

struct domain;

void domain_check_gone(struct domain *domain);
