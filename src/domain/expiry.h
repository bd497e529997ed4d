/* What happens to sandboxes because time passes:
 *
 *     idle for sleep_after     its agent is asked; when that is idle too, or silent: sleep
 *     frozen for hibernate_after_ms of the domain: its memory is given up
 *     runs for max_runtime     stop; the next use starts it again
 *     exists for lifetime      destroy
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

#define EXPIRY_AGAIN_MS     10000
#define EXPIRY_PER_TICK_MAX 256 /* things begun in one tick; the rest is next */

struct expiry *expiry_new(void);

/* The sandboxes need not be there any more. Accepts NULL. */
void expiry_free(struct expiry *expiry);

/* Something changed that it depends on: status, spec, uses, times. */
void expiry_watch(struct domain *domain, struct sandbox *sandbox);

void expiry_forget(struct domain *domain, struct sandbox *sandbox);

/* What was tried for this module failed. */
void expiry_postpone(struct domain *domain, struct sandbox *sandbox);

void expiry_tick(struct domain *domain);
