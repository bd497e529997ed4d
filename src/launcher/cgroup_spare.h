/* Groups of dead sandboxes, for the next ones: making and removing groups was a seventh of all the
 * work for a short sandbox on a host with v1 controllers (1.6 of 11.4 ms, two thirds of it memory).
 *
 *     <id> ── cgroup_retire ──► spare-<id> ── cgroup_spare_settle ──► spare-<id>, listed
 *                                                   <next id> ◄── cgroup_create_rest ──┘
 *
 * Nothing of who had them may be seen in them, so a group is kept only
 *
 *     - on v1, where groups can be renamed (on v2 they cannot, and a peak cannot be set back);
 *     - when nobody is in it, nor can be frozen by it;
 *     - when what it counted and cannot forget is 0: victims of a lack of memory, forks refused,
 *       time throttled, bytes of disks. What can be set back (peak of memory, CPU time) is;
 *     - when no memory is charged to it any more, but for a page or two of the kernel's that hold
 *       others' objects, too (CGROUP_SPARE_MEMORY_MAX). Page cache that it brought in for all stays
 *       where it is, and the group is removed instead.
 *
 * All other groups are removed. Limits are written anew whenever a group gets an owner.
 *
 * The janitor makes spares, the launcher uses them and has the list. The list may lack some or name
 * some that are gone: then groups are made. Spares that nobody knows are found by their name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/id.h"
#include "launcher/cgroup_host.h"

/* At most so many are kept: what a busy janitor gives back at a time. */
#define CGROUP_SPARES_MAX 128

/* Measured 12 to 32 kB after short commands. The kernel charges up to 256 kB per CPU in advance,
 * which goes to others as soon as others work there: on a host where nothing else happens groups
 * are removed, but there nobody waits for it. */
#define CGROUP_SPARE_MEMORY_MAX (UINT64_C(64) << 10)

/* --- the list: no system calls ---------------------------------------------------------------- */

struct cgroup_spares {
    struct id ids[CGROUP_SPARES_MAX]; /* of who had them */
    size_t count;
    size_t awaited; /* the janitor may still give back */
};

/* Whether one more may be kept. If so it is awaited from now on, until cgroup_spares_add. */
bool cgroup_spares_await(struct cgroup_spares *spares);

/* One that was awaited came, or (NULL) it did not. */
void cgroup_spares_add(struct cgroup_spares *spares, const struct id *id);

/* Take the last one off the list. False when there is none. */
bool cgroup_spares_take(struct cgroup_spares *spares, struct id *ret_id);

/* Forget all, those that are awaited, too. */
void cgroup_spares_clear(struct cgroup_spares *spares);

/* --- the groups ------------------------------------------------------------------------------- */

/* cgroup_remove_dead, but what can be used again becomes a spare. `*ret_kept`: whether there is
 * any; cgroup_spare_settle says whether it stays. */
int cgroup_retire(const struct cgroup_host *host, const struct id *id, bool *ret_kept,
                  struct error *err);

/* Once its mounts are gone, too. False when nothing can be kept after all; it is removed then. */
bool cgroup_spare_settle(const struct cgroup_host *host, const struct id *id);

/* Remove all spares: when a janitor starts, for those of a dead one, and when a launcher ends.
 * Never fails; what cannot be removed is there the next time. */
void cgroup_spare_remove_all(const struct cgroup_host *host);
