/* What the files of domain/bucket_mount share. */
#pragma once

#include "domain/bucket/bucket_mount.h"
#include "domain/domain_internal.h"

struct bucket_mounts {
    struct list all; /* of bucket_mount: few, and looked at when a sandbox starts */
    bool is_recovered;
};

/* A deep copy in memory, not kept. */
struct bucket_mount *bucket_mount_new(struct domain *domain, const struct sandbox *sandbox,
                                      const struct bucket_mount_spec *spec);
void bucket_mount_free(struct bucket_mount *mount);
struct bucket_mount *bucket_mount_find(const struct domain *domain, const struct id *sandbox,
                                       const char *place);

/* 0, or -1 with ERR_INVALID. */
int bucket_mount_check(const struct bucket_mount_spec *spec, struct error *err);

/* Its row into a transaction. */
void bucket_mount_add_row(struct store_transaction *change, const struct bucket_mount *mount);
void bucket_mount_delete_row(struct store_transaction *change, const struct bucket_mount *mount);
void bucket_mount_add_event(struct domain *domain, struct store_transaction *change,
                            const struct caller *caller, const struct bucket_mount *mount,
                            const char *type);

/* Open, serve, attach; the outcome is in its state. A mount that is removed meanwhile is taken down
 * again and freed, and `done` is told ERR_CANCELLED. */
typedef void bucket_mount_brought(void *context, const struct error *failure,
                                  struct bucket_mount *mount);
void bucket_mount_bring(struct domain *domain, struct bucket_mount *mount,
                        bucket_mount_brought *done, void *context);

/* Write back, detach. `is_gone`: its sandbox has no processes any more, there is nothing to detach.
 * The mount must not be under way; it is away at once and may be freed before the answer. */
void bucket_mount_take_down(struct domain *domain, struct bucket_mount *mount, bool is_gone,
                            mounter_done *done, void *context);

/* --- asked by sandboxes (sandbox_hooks.h) ------------------------------------------------------
 */

typedef void bucket_mounts_done(void *context);

/* Bring back what is not there, all of it when the sandbox's processes are new. `done` may be NULL,
 * and is called from inside when there is nothing to do. */
void bucket_mounts_restore(struct domain *domain, struct sandbox *sandbox, bool is_new,
                           bucket_mounts_done *done, void *context);

/* Before its processes are ended: write back what waits, and end the sessions. Bounded in time. May
 * answer from inside the call. */
void bucket_mounts_release(struct domain *domain, struct sandbox *sandbox, bucket_mounts_done *done,
                           void *context);
