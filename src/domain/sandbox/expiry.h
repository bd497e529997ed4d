/* What happens to sandboxes because time passes:
 *
 *     idle for sleep_after     its agent is asked; when that is idle too, or silent: sleep
 *     frozen for freeze_for    its memory goes to swap
 *     ... for hibernate_after  its processes end, its disk is kept
 *     hibernated for offload_after: its disk goes to the object store
 *     memory is short          those that are frozen for longest go a tier down
 *     runs for max_runtime     stop; the next use starts it again
 *     exists for lifetime      destroy
 *     ran for snapshot_every since the last one: a snapshot
 *
 * Idle means: no open use, not keep_alive, and nothing goes on inside. An agent that says busy
 * begins the idle time anew; one that fails counts as idle.
 *
 * Clocks. Durations are counted by the monotonic clock: a wall clock that jumps puts nothing to
 * sleep. A lifetime is an absolute time and compared with the wall clock as it is: a jump forward
 * destroys what is over by that clock and nothing else, a jump backwards lets the rest live longer
 * and revives nothing. After a restart, for which there is no monotonic time, the age of a run is
 * taken from the wall clock once; the idle time begins anew.
 *
 * What fails is tried again after EXPIRY_AGAIN_MS. A tick costs what is due, not what there is. */
#pragma once

#include "domain/domain_internal.h"

#define EXPIRY_AGAIN_MS          10000
#define EXPIRY_SAVE_AGAIN_MS     (5 * 60 * 1000) /* a disk that could not be stored */
#define EXPIRY_RELIEVED_PER_TICK 4   /* that go a tier down in one tick because memory is short */
#define EXPIRY_PER_TICK_MAX      256 /* things begun in one tick; the rest is next */

struct expiry *expiry_new(void);

/* The sandboxes need not be there any more. Accepts NULL. */
void expiry_free(struct expiry *expiry);

/* Something changed that it depends on: status, spec, uses, times. */
void expiry_watch(struct domain *domain, struct sandbox *sandbox);

void expiry_forget(struct domain *domain, struct sandbox *sandbox);

/* What was tried for this module failed. */
void expiry_postpone(struct domain *domain, struct sandbox *sandbox);

void expiry_tick(struct domain *domain);
