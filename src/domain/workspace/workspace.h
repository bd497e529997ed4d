/* Workspaces: the working folder of a sandbox, mirrored file by file in the object store.
 *
 *     workspaces/<sandbox>/<path>      contents of files, so that people find them
 *     manifests/<sandbox>.json         the list of all that is in it
 *
 * A mirror is of one moment: a snapshot is taken, for which the sandbox stands still, and read
 * while it goes on. Only what changed is put, and what is gone is deleted. One thing at a time is
 * done with a workspace: whoever asks for a sync while one is under way waits, and shares the next
 * one with all others who wait, because the one under way may not have seen the last change.
 *
 *     row ──► snapshot ──► vault: contents, list, deletions ──► row, event ──► answer
 *
 * The row is there before the first object, and goes after the last one: when the sandbox is
 * destroyed, its objects are deleted behind the answer, and a restart finds what is left by rows
 * without a sandbox. Until then they count.
 *
 * Answers come exactly once, from the loop, never from inside a call. */
#pragma once

#include "domain/caller.h"
#include "domain/domain.h"
#include "domain/sandbox/sandbox.h"

struct workspace_synced {
    uint64_t files;              /* put now, because they are new or changed */
    uint64_t skipped;            /* left out: domain_options.sync_excludes */
    uint64_t unchanged, removed; /* files */
    uint64_t total_files, total_bytes;
    int64_t time_ms;
    uint64_t pause_us; /* how long the sandbox stood still */
};

/* `synced` is borrowed for the call; NULL on failure. */
typedef void workspace_sync_done(void *context, const struct error *failure,
                                 const struct workspace_synced *synced);
typedef void workspace_restore_done(void *context, const struct error *failure, uint64_t files,
                                    uint64_t bytes);

/* Mirror the working folder. A sandbox whose disk is here is not woken for it. Without `freeze` a
 * running one goes on meanwhile, unless another who shares the sync wants it, and the mirror is not
 * of one moment. ERR_INVALID: its folder is none that can be mirrored (backup.h: backup_folders);
 * ERR_QUOTA: more than the owner may store; ERR_NOT_IMPLEMENTED: no object store or no disks here;
 * errors of vault.h. After a failure the mirror is as it was, perhaps with some newer contents. */
void workspace_sync(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                    bool freeze, workspace_sync_done *done, void *context);

/* Make the working folder what the mirror holds. The sandbox is woken. ERR_NOT_FOUND: it was never
 * mirrored. After a failure the folder has what it had. */
void workspace_restore(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                       workspace_restore_done *done, void *context);

struct workspace_state {
    uint64_t files, bytes;
    int64_t synced_ms;
};

/* What the mirror of a sandbox holds. False: there is none. */
bool workspace_find(const struct domain *domain, const struct id *sandbox,
                    struct workspace_state *ret_state);

/* What the mirrors of an owner hold together; of all for NULL. */
uint64_t workspace_bytes(const struct domain *domain, const struct id *owner);

/* For a sandbox that is busy waking up (sandbox_rebuild.c): nothing is waited for but its turn. */
void workspace_restore_to_wake(struct domain *domain, struct sandbox *sandbox,
                               workspace_restore_done *done, void *context);
