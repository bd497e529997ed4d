/* What the files of domain/snapshot share. Included by src/domain and its tests only. */
#pragma once

#include "domain/domain_internal.h"
#include "domain/sandbox_wish.h"
#include "domain/snapshot.h"

/* --- one copy of a disk (snapshot_shot.c) ------------------------------------------------------
 */

/* Of the sandbox of a wish, whose turn it is and which is held (is_held) by the caller. A running
 * one is asked for its sessions first. Embedded in what needs it. */
struct snapshot_shot {
    struct sandbox_wish *wish;
    struct id id; /* of the copy */
    bool freeze;
    void (*done)(struct snapshot_shot *shot, const struct error *failure);
    char *inside; /* owned, may be NULL; from `done` on */
    struct provider_snapshot how;
};

void snapshot_shoot(struct snapshot_shot *shot);
void snapshot_shot_done(struct snapshot_shot *shot);

/* Let others have their turn at a sandbox that was held. */
void snapshot_release(struct domain *domain, struct sandbox *sandbox);

/* Whether the provider has snapshots; else ERR_NOT_IMPLEMENTED. */
int snapshot_check_provider(const struct domain *domain, struct error *err);

/* --- the row of one (snapshot_make.c) ----------------------------------------------------------
 */

/* Ask for the size, keep the row with the event snapshot.created. On failure the snapshot has left
 * memory, and goes at the provider. */
struct snapshot_keeping {
    struct domain *domain;
    struct snapshot *snapshot; /* of the set, not kept yet */
    struct caller caller;
    void (*done)(struct snapshot_keeping *keeping, const struct error *failure);
};

void snapshot_keep(struct snapshot_keeping *keeping);

void snapshot_add_event(struct domain *domain, struct store_transaction *change,
                        const struct caller *caller, const struct snapshot *snapshot,
                        const char *type);

/* --- ends (snapshot_delete.c) ------------------------------------------------------------------
 */

/* Whose row is gone, or never was: have the provider delete it, again until it is gone. */
void snapshot_doom(struct domain *domain, const struct id *id);
bool snapshot_is_doomed(const struct domain *domain, const struct id *id);
void snapshot_doom_again(struct domain *domain); /* once a second */
void snapshot_doom_end(struct domain *domain);

/* Its disk is needed: also when it is deleted meanwhile. */
void snapshot_pin(struct snapshot *snapshot);
void snapshot_unpin(struct domain *domain, struct snapshot *snapshot);

/* The row is gone: leave memory, and the provider once nobody needs it. */
void snapshot_leave(struct domain *domain, struct snapshot *snapshot);

/* Whether it can be used as a disk now; else ERR_GONE or ERR_CONFLICT. */
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
