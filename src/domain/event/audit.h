/* The audit log: every change, and every denial, with who, from where and what came of it. Never
 * with a secret.
 *
 * A change is written in its own transaction, by event_add. What changes no row (a login, a denial)
 * is written behind the answer: a denial must not cost more than the attack. At most
 * AUDIT_WAITING_MAX wait to be written. Floods of the same denial are counted and written once a
 * second; when there are too many different ones, only how many. */
#pragma once

#include "domain/caller.h"
#include "domain/domain.h"

#define AUDIT_WAITING_MAX      1024
#define AUDIT_DENIALS_BURST    200 /* written one by one, at once */
#define AUDIT_DENIALS_A_SECOND 2   /* and later on */
#define AUDIT_PAGE_MAX         1000
#define AUDIT_KEPT_MS          ((int64_t) 365 * 24 * 3600 * 1000)
#define AUDIT_LEAST_MS         ((int64_t) 7 * 24 * 3600 * 1000) /* on a full disk, too */

/* `failure` NULL: it was done. All is copied. */
void audit_add(struct domain *domain, const struct caller *caller, const char *action,
               const char *object, const struct error *failure);

struct audit_entry {
    int64_t number, time_ms;
    const char *owner, *credential, *address, *request, *action, *object, *outcome, *detail;
};

/* Newest first, before `before` (0: from the end). Administrators only. */
typedef void audit_page_done(void *context, const struct error *failure,
                             const struct audit_entry *entries, size_t count);
void audit_page(struct domain *domain, const struct caller *caller, int64_t before, size_t limit,
                audit_page_done *done, void *context);

/* For event_add: a change of `object`, into its own transaction. `detail` is what the event says.
 * What the system does by itself is in the event log only. */
void audit_add_change(struct domain *domain, struct store_transaction *change,
                      const struct caller *caller, const char *action, const char *object,
                      const char *detail);
