/* Standing: whether somebody who was let in may still be there.
 *
 * Admission looks at a credential once. What lasts longer than a moment (terminals, streams of
 * events, uploads, tunnels) is asked about again, by what the caller was known by then, whenever
 * domain_options.standing_changed was called, and when `until_ms` has come. */
#pragma once

#include "domain/caller.h"
#include "domain/domain.h"

/* Returns 0, and until when that holds as far as is known (wall time; 0: for ever). Or -1 with
 * ERR_UNAUTHENTICATED (the key was revoked or has expired, the login has ended, the user was
 * disabled or removed, the port was closed), or with ERR_FORBIDDEN (its scope is not what it was).
 * Callers without a credential are the daemon's own, or those of a daemon without keys. */
int standing_check(const struct domain *domain, const struct caller *caller, int64_t *ret_until_ms,
                   struct error *err);

/* Who was let in by the token of an exposed port, and by nothing else. */
struct port;
struct caller standing_of_port(const struct port *port);

/* For the domain's own modules: a right may be gone, and whoever asked for that has the answer. */
void standing_changed(struct domain *domain);
