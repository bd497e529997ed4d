/* Snapshots: the disk of a sandbox at one moment, kept under an id of its own, and what is made of
 * them: other sandboxes (forks), the sandbox as it was (rollback), a list of what changed (diff).
 *
 * A snapshot outlives its sandbox. Those that are made by themselves (on an interval, before a task
 * or a rollback) go with it, unless they were given a time to be kept for.
 *
 * Nothing acknowledged is lost: a snapshot is on disk, then its row is kept, then the answer is
 * given; delete goes the other way round. So what recovery finds at the provider without a row was
 * never acknowledged, or deleted, and goes; a row without a snapshot stays and is told as lost.
 *
 * Answers come exactly once, from the loop, never from inside a call. */
#pragma once

#include "base/list.h"
#include "base/pool.h"
#include "base/table.h"
#include "domain/caller.h"
#include "domain/domain.h"
#include "domain/sandbox/sandbox.h"
#include "domain/sandbox/sandboxes.h"
#include "domain/vault.h"

#define SNAPSHOT_NAME_MAX         63
#define SNAPSHOT_LIST_MAX         1000
#define SNAPSHOT_FORKS_MAX        1000 /* in one call */
#define SNAPSHOT_FORKS_AT_ONCE    64   /* of one call under way; the others wait */
#define SNAPSHOT_ROLLBACK_KEPT_MS INT64_C(7 * 24 * 3600 * 1000)

/* Why it was made. */
#define SNAPSHOT_REASONS(X)                                                                        \
    X(MANUAL, "manual")                                                                            \
    X(TASK, "task")         /* before a task */                                                    \
    X(INTERVAL, "interval") /* by itself: snapshotEvery */                                         \
    X(FORK, "fork")                                                                                \
    X(SLEEP, "sleep") /* what its disk was when it came back from the object store */              \
    X(BACKUP, "backup")                                                                            \
    X(SYNC, "sync")                                                                                \
    X(ROLLBACK, "rollback") /* what a rollback replaced */

enum snapshot_reason {
#define X(name, text) SNAPSHOT_##name,
    SNAPSHOT_REASONS(X)
#undef X
        SNAPSHOT_REASON_COUNT
};

/* Where it is. */
#define SNAPSHOT_STATES(X)                                                                         \
    X(READY, "ready")     /* on the disk of its node */                                            \
    X(STORING, "storing") /* there, and on its way to the object store */                          \
    X(STORED, "stored")   /* in the object store */                                                \
    X(LOST, "lost")       /* it should be on the disk, and is not */

enum snapshot_state {
#define X(name, text) SNAPSHOT_IS_##name,
    SNAPSHOT_STATES(X)
#undef X
        SNAPSHOT_STATE_COUNT
};

struct snapshot {
    struct table_link by_id, by_sandbox;
    struct table_link by_name; /* owner and name; in the table only when it has one */
    struct list link;          /* all that are kept, oldest first */

    struct id id, owner, sandbox;
    char node[64];
    char *name; /* owned, may be NULL */
    enum snapshot_reason reason;
    enum snapshot_state state;
    char *spec;                     /* owned: JSON of the sandbox then, sandbox_record.h */
    char *inside;                   /* owned, may be NULL: its sessions then */
    char *layers;                   /* owned, may be NULL: its disk in the store, stored_disk.h */
    uint64_t size;                  /* what the disk held */
    int64_t created_ms, expires_ms; /* 0: never */

    /* The domain's own. */
    unsigned int references;
    unsigned int pins;   /* whose work needs its disk: until then that stays */
    bool is_kept;        /* there for others */
    bool is_gone;        /* its row is */
    bool is_going;       /* a delete is under way */
    bool is_moving;      /* to or from the object store, or from here: snapshot_store.c */
    int64_t used_ms;     /* wall time: when somebody last needed its disk */
    uint64_t squash_ns;  /* monotonic: its layers are not squashed before that: it failed */
    struct list waiters; /* of struct snapshot_waiter */
    struct share_claim claim;
};

const char *snapshot_reason_text(enum snapshot_reason reason);
const char *snapshot_state_text(enum snapshot_state state);

/* By id, or by name among the caller's own. NULL with ERR_NOT_FOUND. */
struct snapshot *snapshot_find(struct domain *domain, const struct caller *caller,
                               const char *name_or_id, struct error *err);

struct snapshot_filter {
    const struct id *sandbox;       /* NULL: of all */
    const struct id *owner;         /* administrators may ask for one; NULL: all that are seen */
    const char *after;              /* cursor of the last page, NULL: from the start */
    size_t limit;                   /* 1 to SNAPSHOT_LIST_MAX */
    bool (*is_full)(void *context); /* as of sandbox_filter */
    void *full_context;
};

/* Newest first; as sandbox_list. */
int snapshot_list(struct domain *domain, const struct caller *caller,
                  const struct snapshot_filter *filter, struct pool *pool,
                  void (*each)(void *context, struct snapshot *snapshot), void *context,
                  const char **ret_next, struct error *err);

/* --- making ----------------------------------------------------------------------------------- */

struct snapshot_options {
    const char *name; /* unique per owner; NULL: none */
    enum snapshot_reason reason;
    bool no_freeze;     /* a running one goes on meanwhile: not of one moment (provider.h) */
    int64_t expires_ms; /* wall time; 0: never */
};

/* `how` says how long the sandbox stood still. */
typedef void snapshot_done(void *context, const struct error *failure, struct snapshot *snapshot,
                           const struct snapshot_made *how);

/* Of a running, frozen, hibernated or stopped one; others wait, or ERR_CONFLICT. ERR_CONFLICT: the
 * name is taken; ERR_QUOTA; ERR_NO_SPACE; ERR_FORBIDDEN; ERR_NOT_IMPLEMENTED: not here. */
void snapshot_make(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                   const struct snapshot_options *options, snapshot_done *done, void *context);

/* Sandboxes made from it stay. ERR_CONFLICT: a template is made from it. */
typedef void snapshot_gone(void *context, const struct error *failure);
void snapshot_delete(struct domain *domain, const struct caller *caller, struct snapshot *snapshot,
                     snapshot_gone *done, void *context);

/* --- forks ------------------------------------------------------------------------------------ */

/* What a fork has of its origin: the disk, and all of the spec (image, variables, labels, limits,
 * network, times) but the name; its sessions begin where those of the origin were. What is new: its
 * id, host name, id range and the tokens of its agent. What it has not: processes, memory, exposed
 * ports, keys for one sandbox, snapshots, mounts. The label "forkedFrom" names the origin. */
struct fork_options {
    size_t count;                        /* 1 to SNAPSHOT_FORKS_MAX */
    const char *name;                    /* several are NAME-1, NAME-2, ...; NULL: none */
    bool no_freeze;                      /* as of a snapshot */
    const struct sandbox_change *change; /* of the spec; its name is ignored; may be NULL */
};

/* All of them, or a failure and none. `how` is NULL when the origin did not have to be copied
 * first. The sandboxes are borrowed for the call. */
typedef void fork_done(void *context, const struct error *failure, struct sandbox *const *sandboxes,
                       size_t count, const struct snapshot_made *how);

void snapshot_fork(struct domain *domain, const struct caller *caller, struct snapshot *snapshot,
                   const struct fork_options *options, fork_done *done, void *context);

/* Of a sandbox as it is now, whatever its state. One that sleeps or is stopped cannot wake before
 * its forks are there. */
void sandbox_fork(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                  const struct fork_options *options, fork_done *done, void *context);

/* A new sandbox with this spec, which is the whole of it, on the disk of a snapshot. */
void sandbox_create_from_snapshot(struct domain *domain, const struct caller *caller,
                                  struct snapshot *snapshot, const struct sandbox_spec *spec,
                                  sandbox_created *done, void *context);

/* --- rollback --------------------------------------------------------------------------------- */

/* The disk becomes what it was, and the sessions; the spec stays. A running sandbox is stopped for
 * it and started again, a frozen one sleeps on without its memory. What was on the disk is kept as
 * the snapshot `saved`, for SNAPSHOT_ROLLBACK_KEPT_MS. On failure the disk is as it was, and a
 * sandbox that ran runs again. ERR_INVALID: the snapshot is of another image. */
typedef void rollback_done(void *context, const struct error *failure, struct sandbox *sandbox,
                           struct snapshot *saved);
void sandbox_roll_back(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                       struct snapshot *snapshot, rollback_done *done, void *context);

/* --- what changed ----------------------------------------------------------------------------- */

/* A snapshot, or a sandbox as it is now: one of the two. */
struct snapshot_place {
    struct snapshot *snapshot;
    struct sandbox *sandbox;
};

/* From `older` to `newer`, at most one of which is a sandbox. `line` gets what the keeper says,
 * JSON each. ERR_NOT_IMPLEMENTED: not here. */
void snapshot_diff(struct domain *domain, const struct caller *caller, struct snapshot_place older,
                   struct snapshot_place newer, vault_line *line, vault_done *done, void *context);
