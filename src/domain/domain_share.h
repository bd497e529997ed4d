/* In whose name something that all share is claimed (share.h): who asks, or to whom it belongs.
 *
 * Administrators and the daemon itself may use what is kept back from all others. */
#pragma once

#include "domain/caller.h"
#include "domain/domain.h"
#include "share/share.h"

/* What a caller takes for as long as it is connected. */
struct share_asker domain_asker(const struct domain *domain, const struct caller *caller);

/* What an owner has. An empty id is the daemon's. */
struct share_asker domain_asker_of(const struct domain *domain, const struct id *owner);

/* share_claim and share_claim_anyway for an owner, in the books of the domain. */
int domain_claim(struct domain *domain, const struct id *owner, enum share share, uint64_t amount,
                 struct share_claim *ret_claim, struct error *err);
void domain_claim_anyway(struct domain *domain, const struct id *owner, enum share share,
                         uint64_t amount, struct share_claim *ret_claim);

/* Whether it could be claimed now: for those whose claim begins when they are in memory. */
int domain_check_share(const struct domain *domain, const struct id *owner, enum share share,
                       uint64_t amount, struct error *err);

/* share_hold, share_hold_anyway and share_drop likewise. */
int domain_hold(struct domain *domain, const struct id *owner, enum share share, uint64_t amount,
                struct error *err);
void domain_hold_anyway(struct domain *domain, const struct id *owner, enum share share,
                        uint64_t amount);
void domain_drop(struct domain *domain, const struct id *owner, enum share share, uint64_t amount);

/* His rights or quotas are others from now on. */
void domain_note(struct domain *domain, const struct id *owner);
