/* Whether an owner may have one more sandbox, run one more, or have a bigger one. Returns 0, or -1
 * with ERR_QUOTA that names the limit, what is there and what was asked for.
 *
 * Frozen sandboxes count as not running, though their memory is in use until they are hibernated.
 * Where memory or cpu is limited, a sandbox without such a limit of its own is refused: it could
 * use all of it. ERR_NO_SPACE: the disk of this machine is full but for its floor. Disks count with their limits, snapshots with what they hold. */
#pragma once

#include "domain/domain_internal.h"

/* A new one, which runs at once. */
int sandbox_quota_create(const struct domain *domain, const struct id *owner,
                         const struct limits *limits, struct error *err);

/* A snapshot, where there are `count`, of so many bytes; 0: not known yet, and then only what is
 * held already counts. */
int sandbox_quota_snapshot(const struct domain *domain, const struct id *owner, uint64_t count,
                           uint64_t bytes, struct error *err);

/* A snapshot of so many bytes, counted already or not asked for: it counts in bytes alone. */
int sandbox_quota_base(const struct domain *domain, const struct id *owner, uint64_t bytes,
                       struct error *err);

/* How much one backup or workspace may hold in the object store, when all else that its owner has
 * there (SHARE_STORAGE) is `others` bytes; 0: as much as it likes. */
int sandbox_quota_storage(const struct domain *domain, const struct id *owner, uint64_t others,
                          uint64_t *ret_maximum, struct error *err);
bool sandbox_quota_limits_storage(const struct domain *domain, const struct id *owner);

/* One that is there and shall run. */
int sandbox_quota_run(const struct domain *domain, const struct sandbox *sandbox,
                      struct error *err);

/* One that is there and shall have other limits. */
int sandbox_quota_resize(const struct domain *domain, const struct sandbox *sandbox,
                         const struct limits *limits, struct error *err);
