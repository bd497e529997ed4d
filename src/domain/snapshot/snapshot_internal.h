/* What the files of domain/snapshot share. Included by src/domain and its tests only. */
#pragma once

#include "domain/domain_internal.h"
#include "domain/sandbox/sandbox_wish.h"
#include "domain/snapshot/snapshot.h"

/* --- one copy of a disk (snapshot_shot.c) ------------------------------------------------------
 */

/* Of the sandbox of a wish, whose turn it is and which is held (is_held) by the caller. A running
 * one is asked for its sessions first. Embedded in what needs it. */
struct snapshot_shot {
    struct sandbox_wish *wish;
    struct id id; /* of the copy */
    bool no_freeze;
    void (*done)(struct snapshot_shot *shot, const struct error *failure);
    char *inside; /* owned, may be NULL; from `done` on */
    struct snapshot_made how;
};

void snapshot_shoot(struct snapshot_shot *shot);

/* What an agent saved, as a copy for the row; NULL: nothing, or too much. */
char *snapshot_sessions(const struct error *failure, const struct inside_answer *answer);

/* Whether a running sandbox is held still for a copy: unless that is not wanted, or nothing can be
 * frozen here. For provider_snapshot. */
bool snapshot_freezes(const struct domain *domain, bool no_freeze);
/* One more copy for the metrics. */
void snapshot_count(struct domain *domain, const struct snapshot_made *how);
void snapshot_shot_done(struct snapshot_shot *shot);

/* Let others have their turn at a sandbox that was held. */
void snapshot_release(struct domain *domain, struct sandbox *sandbox);

/* Whether the provider has snapshots; else ERR_NOT_IMPLEMENTED. */
int snapshot_check_provider(const struct domain *domain, struct error *err);

/* --- the row of one (snapshot_make.c) ----------------------------------------------------------
 */

/* Ask for the size, and the quota with it; keep the row with the event snapshot.created. On failure the snapshot has left
 * memory, and goes at the provider. */
struct snapshot_keeping {
    struct domain *domain;
    struct snapshot *snapshot; /* of the set, not kept yet */
    struct caller caller;
    void (*done)(struct snapshot_keeping *keeping, const struct error *failure);
};

void snapshot_keep(struct snapshot_keeping *keeping);

/* Whether the sandbox's owner may have one more, of so many bytes (0: not known yet; snapshot_keep
 * looks again when they are). Whoever makes snapshots asks this first, whatever they are for. */
int snapshot_check_room(const struct domain *domain, const struct sandbox *sandbox, uint64_t bytes,
                        struct error *err);

void snapshot_add_event(struct domain *domain, struct store_transaction *change,
                        const struct caller *caller, const struct snapshot *snapshot,
                        const char *type);

/* --- to the object store and back (snapshot_store.c, snapshot_fetch.c) -------------------------
 */

/* Several may want the same of a snapshot: it happens once. Embedded in what waits. `done` comes
 * from the loop. */
struct snapshot_waiter {
    struct list link; /* of snapshot.waiters */
    void (*done)(struct snapshot_waiter *waiter, const struct error *failure);
};

/* It is ready, and shall be in the object store too: `layers` is set when that succeeded. Whoever
 * asks has a pin, and counts among domain->saves. */
void snapshot_store(struct domain *domain, struct snapshot *snapshot,
                    struct snapshot_waiter *waiter);

/* Its disk is needed here. Whoever asks has a pin, and keeps it as long as it needs the disk.
 * Failures are those of snapshot_check_ready, of the vault and of the provider; what is stored
 * stays as it is. */
void snapshot_fetch(struct domain *domain, struct snapshot *snapshot,
                    struct snapshot_waiter *waiter);

/* Whether that is not necessary. */
bool snapshot_is_here(const struct domain *domain, struct snapshot *snapshot);

/* One movement is over: is_moving ends, and who waits is told, or has the disk fetched after all.
 */
void snapshot_moved(struct domain *domain, struct snapshot *snapshot, const struct error *failure);

/* Once a second: those that are stored as well leave this machine when they are too many. */
void snapshot_evict(struct domain *domain);

/* --- what a disk was like (snapshot_base.c) ----------------------------------------------------
 */

/* What the sandbox's disk can be told apart from: pinned, ready, not too long a list. NULL:
 * nothing.
 */
struct snapshot *snapshot_base_take(struct domain *domain, const struct sandbox *sandbox);

/* The one that was made for this sandbox alone, when its disk came back; NULL: it has none. */
struct snapshot *snapshot_own_base(const struct domain *domain, const struct sandbox *sandbox);

/* Its disk is like another one from now on: what was made for the last one goes. */
void snapshot_base_set(struct domain *domain, struct sandbox *sandbox, const struct id *base);

/* A snapshot that is here and has the first layers of the stored disk, as many as possible: pinned,
 * and how many those are. NULL: there is none. */
struct snapshot *snapshot_start_take(struct domain *domain, const struct sandbox *sandbox,
                                     size_t *ret_layers);

/* Whether one shall be made when the disk of this sandbox comes back. */
bool snapshot_base_is_wanted(const struct domain *domain, const struct sandbox *sandbox,
                             uint64_t bytes);

/* One for a disk that is `stored`; not kept yet. */
struct snapshot *snapshot_base_add(struct domain *domain, const struct sandbox *sandbox,
                                   const struct id *id, uint64_t bytes);

/* --- ends (snapshot_delete.c) ------------------------------------------------------------------
 */

/* Whose row is gone, or never was: have the provider delete it, again until it is gone. */
void snapshot_orphan(struct domain *domain, const struct id *id);
bool snapshot_is_orphan(const struct domain *domain, const struct id *id);
void snapshot_orphans_retry(struct domain *domain); /* once a second */
void snapshot_orphans_end(struct domain *domain);

/* Its disk is needed: also when it is deleted meanwhile. */
void snapshot_pin(struct snapshot *snapshot);
void snapshot_unpin(struct domain *domain, struct snapshot *snapshot);

/* The row is gone: leave memory, and the provider once nobody needs it. */
void snapshot_leave(struct domain *domain, struct snapshot *snapshot);

/* Whether it can be used as a disk, if need be after snapshot_fetch; else ERR_NOT_FOUND or
 * ERR_GONE.
 */
int snapshot_check_ready(const struct snapshot *snapshot, struct error *err);

/* --- by themselves (snapshot_prune.c) ----------------------------------------------------------
 */

/* When the next one of this sandbox is due, monotonic; UINT64_MAX: never. */
uint64_t snapshot_due(const struct domain *domain, const struct sandbox *sandbox);
void snapshot_make_due(struct domain *domain, struct sandbox *sandbox);

/* One of these was made: those beyond what shall be kept go. */
void snapshot_prune(struct domain *domain, const struct sandbox *sandbox,
                    enum snapshot_reason reason);

/* Once a second: those whose time is over go. */
void snapshot_prune_expired(struct domain *domain);

/* --- after a restart (snapshot_recovery.c) -----------------------------------------------------
 */

/* All rows are in memory: compare them with what the provider has. Answered when it was asked; a
 * provider that does not say changes nothing. */
void snapshot_recover(struct domain *domain, void (*done)(void *context), void *context);
