/* The first start: somebody must be able to get in. */
#pragma once

#include "domain/domain.h"
#include "domain/identity/owner.h"

/* Make sure that there is an administrator (named "admin" when there is none), and that it holds
 * the key `secret` (NULL: no key). What is so already stays: a key that was revoked stays revoked.
 * `done` is given the administrator. The domain must be open. */
void identity_first(struct domain *domain, const char *secret, owner_done *done, void *context);
