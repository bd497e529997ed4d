/* Between owner.c (who is there) and owner_change.c (what is done to them). */
#pragma once

#include "domain/identity/owner.h"

struct owners {
    struct table by_id, by_email;
    struct list all; /* oldest first */
    size_t count;
};

/* Accepts NULL. */
void owner_free(struct owner *owner);
AUTO_DEFINE_PTR(owner, struct owner, owner_free);

/* Into the tables, and out of them: around a change of id or email. */
void owner_enter_tables(struct domain *domain, struct owner *owner);
void owner_leave_tables(struct domain *domain, struct owner *owner);

/* One more owner, which is taken. */
void owner_remember(struct domain *domain, struct owner *owner);

/* Set what holds: the defaults, and the wishes in `quotas` over them. -1 with ERR_INVALID. */
int owner_set_quotas(const struct domain *domain, struct owner *owner, const char *quotas,
                     struct error *err);

/* In lower case; what does not fit is cut. */
void owner_lower(const char *text, char *ret_text, size_t size);
