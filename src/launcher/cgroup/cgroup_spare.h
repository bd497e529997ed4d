/* Groups of dead sandboxes, for the next ones: making and removing groups was a seventh of all the
 * work for a short sandbox on a host with v1 controllers (1.6 of 11.4 ms, two thirds of it memory).
 *
 *     <id> ── cgroup_retire ──► spare-<new> ── cgroup_spare_settle ──► spare-<new>, listed
 *                                                    <next id> ◄── cgroup_create_rest ──┘
 *
 * A spare has a name of its own and not the sandbox's, which may live and end again, with other
 * limits, before the groups of its first life were used.
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
 * All other groups are removed. Limits are written anew when a group gets an owner, unless it is
 * known to have the same already: that was a twentieth of all the work.
 *
 * The janitor makes spares, the launcher uses them and has the list. The list may lack some or name
 * some that are gone: then groups are made. Spares that nobody knows are found by their name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/id.h"
#include "launcher/cgroup/cgroup_host.h"
#include "launcher/cgroup/cgroup_limits.h"

/* At most so many are kept, about 90 kB each: what a busy janitor gives back at a time. When nobody
 * wants them any more they go, a few at a time. */
#define CGROUP_SPARES_MAX 256

/* Measured 12 to 32 kB after short commands. The kernel charges up to 256 kB per CPU in advance,
 * which goes to others as soon as others work there: on a host where nothing else happens groups
 * are removed, but there nobody waits for it. */
#define CGROUP_SPARE_MEMORY_MAX (UINT64_C(64) << 10)

/* --- the list: no system calls ---------------------------------------------------------------- */

struct cgroup_spare {
    struct id id; /* its own, new */
    struct cgroup_known_limits limits;
};

struct cgroup_spares {
    struct cgroup_spare spares[CGROUP_SPARES_MAX];
    size_t count;
    size_t awaited; /* the janitor may still give back */
    bool was_taken; /* since cgroup_spares_age was asked */
};

/* Whether one more may be kept. If so it is awaited from now on, until cgroup_spares_add. */
bool cgroup_spares_await(struct cgroup_spares *spares);

/* One that was awaited came, or (NULL) it did not. */
void cgroup_spares_add(struct cgroup_spares *spares, const struct cgroup_spare *spare);

/* Take the last one off the list. False when there is none. */
bool cgroup_spares_take(struct cgroup_spares *spares, struct cgroup_spare *ret_spare);

/* Take one that nobody needs, to be removed; for every few seconds. False when there is none, or
 * when somebody took one since this was last asked. */
bool cgroup_spares_age(struct cgroup_spares *spares, struct cgroup_spare *ret_spare);

/* Forget all, those that are awaited, too. */
void cgroup_spares_clear(struct cgroup_spares *spares);

/* --- the groups ------------------------------------------------------------------------------- */

/* cgroup_remove_dead of `id`, but what can be used again becomes `spare`, a name that nothing has
 * yet. `*ret_kept`: whether there is any; cgroup_spare_settle says whether it stays. */
int cgroup_retire(const struct cgroup_host *host, const struct id *id, const struct id *spare,
                  bool *ret_kept, struct error *err);

/* Once the mounts of who had it are gone, too. False when nothing can be kept after all; it is
 * removed then. */
bool cgroup_spare_settle(const struct cgroup_host *host, const struct id *spare);

/* Remove one. 0.3 ms; what cannot be removed is removed with all others. */
void cgroup_spare_remove(const struct cgroup_host *host, const struct id *spare);

/* Remove all spares: when a janitor starts, for those of a dead one, and when a launcher ends.
 * Never fails; what cannot be removed is there the next time. */
void cgroup_spare_remove_all(const struct cgroup_host *host);
