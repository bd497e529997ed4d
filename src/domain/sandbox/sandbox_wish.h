/* A wish: one thing that shall be done with one sandbox, from the call to the answer.
 *
 *     wish_make ──► verdict of the table ──┬─ GO ──────► act(wish) ... wish_end(wish, failure)
 *                       ▲                  ├─ WAIT ────► waits in the sandbox
 *                       └─ sandbox_settle ◄┼─ ALREADY ─► answered with success
 *                                          └─ REFUSE ──► answered with ERR_CONFLICT
 *
 * Whoever acts puts the sandbox into a busy status (or holds it), asks the provider, puts it into a
 * settled status again, calls sandbox_settle so that others get their turn, and has the row kept.
 * Then the wish ends. What waits for the same thing shares a failure.
 *
 * Every answer comes from the loop: a wish ends in a task. One thread. */
#pragma once

#include "domain/sandbox/sandbox_record.h"
#include "domain/sandbox/sandboxes.h"
#include "domain/sequence.h"

struct sandbox_wish {
    struct domain_task task; /* when it ends */
    struct list link;        /* of sandbox.waiting */
    struct domain *domain;
    struct sandbox *sandbox; /* a reference */
    enum sandbox_action action;
    void (*act)(struct sandbox_wish *wish);
    struct caller caller;
    struct trace_context trace; /* of whoever wished; it may be another's answer that lets it go */
    sandbox_done *done;         /* may be NULL */
    void *context;
    struct sequence sequence;   /* of an act that takes several steps */
    enum sandbox_status before; /* what it goes back to when this fails */
    uint64_t asked_ns;
    enum sandbox_tier tier;                   /* of a run: where it wakes from */
    const char *why;                          /* static: for the reason; NULL: somebody asked */
    const char *event;                        /* static: what is being kept; NULL: none */
    bool has_failed;                          /* its end: */
    bool is_over;                             /* the sandbox is gone with it: destroy */
    struct error failure;                     /* when has_failed */
    struct sandbox_change change;             /* of an update: what was asked for */
    struct sandbox_spec *spec;                /* owned: of an update, what shall be */
    bool has_new_limits, has_new_environment; /* of an update */
};

/* Made, and acted on, answered or put into the queue, by the table's verdict. `caller` NULL: the
 * system. Nothing is called from inside but the provider and the agent. */
struct sandbox_wish *wish_make(struct domain *domain, const struct caller *caller,
                               struct sandbox *sandbox, enum sandbox_action action,
                               void (*act)(struct sandbox_wish *wish), sandbox_done *done,
                               void *context);
void wish_begin(struct sandbox_wish *wish);

/* Without asking the table: what only the domain itself does. The sandbox is not busy. */
void wish_begin_anyway(struct sandbox_wish *wish);

/* It is over: answered soon, and gone. */
void wish_end(struct sandbox_wish *wish, const struct error *failure);

/* The same with a failure that others share: those who wait for the same thing. */
void wish_fail(struct sandbox_wish *wish, const struct error *failure);

/* Fail right away: for calls that are refused before anything happens. */
void wish_refuse(struct sandbox_wish *wish, enum err_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Nothing is under way any more: exits that came meanwhile, uses and wishes have their turn. */
void sandbox_settle(struct domain *domain, struct sandbox *sandbox);

/* Whether something is under way. */
bool sandbox_is_busy(const struct sandbox *sandbox);

/* Everything that waits for this sandbox is told the same: it is gone, or the domain closes. */
void sandbox_fail_waiting(struct domain *domain, struct sandbox *sandbox,
                          const struct error *failure);

/* --- what has to be kept (sandbox_keep.c) ----------------------------------------------------- */

/* Commit the sandbox as it is, with an event of this type (static; NULL: none), then end the wish.
 * When the store fails, the wish fails, and the row is kept later (sandbox_keep_unkept). */
void wish_keep(struct sandbox_wish *wish, const char *event);

/* The same without a wish: nobody waits. */
void sandbox_keep(struct domain *domain, struct sandbox *sandbox, const char *event);

/* Later: what the row says is not what is. */
void sandbox_set_unkept(struct domain *domain, struct sandbox *sandbox, const char *event);

/* Once a second: some rows that were not kept are tried again. */
void sandbox_keep_unkept(struct domain *domain);

/* Add the event of a change to a transaction. `next` as for the row. */
void sandbox_add_event(struct domain *domain, struct store_transaction *change,
                       const struct caller *caller, const struct sandbox *sandbox,
                       const struct sandbox_next *next, const char *type);

/* What the acts do, step by step. */
extern const struct sequence_table sandbox_run_sequence, sandbox_stop_sequence,
    sandbox_freeze_sequence, sandbox_hibernate_sequence, sandbox_restore_sequence,
    sandbox_rebuild_sequence, sandbox_offload_sequence;

/* --- the acts --------------------------------------------------------------------------------- */

void sandbox_act_run(struct sandbox_wish *wish);       /* use, start, wake: sandbox_run.c */
void sandbox_act_stop(struct sandbox_wish *wish);      /* sandbox_stop.c */
void sandbox_act_sleep(struct sandbox_wish *wish);     /* sandbox_sleep.c */
void sandbox_act_hibernate(struct sandbox_wish *wish); /* frozen, and its memory is given up */
void sandbox_act_reclaim(struct sandbox_wish *wish);   /* sandbox_tier.c */
void sandbox_act_update(struct sandbox_wish *wish);    /* sandbox_update.c */
void sandbox_act_destroy(struct sandbox_wish *wish);   /* sandbox_destroy.c */

/* Steps of those that end its processes (sandbox_stop.c) and those that start them (sandbox_run.c),
 * of the wish's sequence, with the wish as their context. */
void wish_quiesce(void *context);
void wish_unmount(void *context);
void wish_stop(void *context);
void wish_set_unstarted(struct sandbox_wish *wish);
void wish_start(void *context);
void wish_open_way(void *context);
bool wish_has_way(const void *context);
void wish_tell_agent_news(void *context);
void wish_mount(void *context);

/* Its disk goes to the object store, or, when it is there, away from here (sandbox_offload.c). It
 * is hibernated or stopped, and not busy. */
void sandbox_offload(struct domain *domain, struct sandbox *sandbox);

/* `stored` is set, and the wish needs the disk: it is brought back and kept as being here, then
 * `done` is called with a sandbox that is held no more. After a failure, which the sandbox's reason
 * and an event tell, `stored` is as it was (sandbox_restore.c); for SANDBOX_RESTORE_AGAIN_MS others
 * then fail alike, without another try. May answer from inside. */
#define SANDBOX_RESTORE_AGAIN_MS 5000
void sandbox_bring_back(struct sandbox_wish *wish, domain_done *done, void *context);

/* Start its startup commands, one after the other, behind whatever goes on; failures are told by
 * an event (sandbox_startup.c). */
void sandbox_run_startup(struct domain *domain, struct sandbox *sandbox);

/* Start one whose disk is lost (sandbox_rebuild.c): `started` gets the wish, as from
 * provider_start. */
void sandbox_rebuild(struct sandbox_wish *wish, provider_sandbox_done *started);

/* A call of the provider failed for this wish: the sandbox is as before, or in error when the
 * provider does not know it. Ends the wish. */
void wish_provider_failed(struct sandbox_wish *wish, const struct error *failure);

/* It is broken for good: only to be looked at and destroyed. Kept, and told. `why` is copied. */
void sandbox_break(struct domain *domain, struct sandbox *sandbox, const char *why);

/* It ended by itself; the provider's watcher, and recovery. Waits while something is under way. */
void sandbox_ended(struct domain *domain, struct sandbox *sandbox, const struct ending *ending);
void sandbox_handle_end(struct domain *domain, struct sandbox *sandbox);

/* It is stopped, as sandbox.ending says; returns the event to tell, which is the caller's. */
const char *sandbox_set_ended(struct domain *domain, struct sandbox *sandbox);

/* Tell the uses that wait: it runs, or why not. Those that an explicit stop keeps out fail. */
void sandbox_let_uses_go(struct domain *domain, struct sandbox *sandbox);
void sandbox_fail_uses(struct sandbox *sandbox, const struct error *failure);

/* --- sandboxes of the provider that nobody may see any more ------------------------------------
 */

/* Take it down, and try again until it is gone; `done` (may be NULL) after the first try. */
void sandbox_orphan(struct domain *domain, const struct id *id, void (*done)(void *context),
                    void *context);
void sandbox_orphans_retry(struct domain *domain); /* once a second */
void sandbox_orphans_end(struct domain *domain);

/* --- specs (sandbox_plan.c) ------------------------------------------------------------------- */

/* What the provider is told of a sandbox; borrows from it. */
struct sandbox_plan {
    struct provider_spec spec;
    struct provider_bind *binds;           /* owned */
    struct provider_variable *environment; /* owned */
    char hostname[64];
};

void sandbox_plan_init(struct sandbox_plan *plan, const struct sandbox *sandbox);
void sandbox_plan_done(struct sandbox_plan *plan);
AUTO_DEFINE(sandbox_plan, struct sandbox_plan, sandbox_plan_done);
