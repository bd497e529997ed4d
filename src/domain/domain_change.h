/* One change of what the store keeps, from its check to its answer: the part that is the same for
 * users, keys, logins, ports, templates and webhooks, which begin their own struct with it.
 *
 *     struct port_change {
 *         struct domain_change base;
 *         struct port *port;
 *         port_done *done;
 *         void *context;
 *     };
 *
 *     change = domain_change_new(sizeof(*change), domain, caller, port_exposed);
 *     if (check_spec(spec, &change->base.failure) < 0) {
 *         domain_change_refuse(&change->base);
 *         return;
 *     }
 *     rows = store_begin(domain->options.store);
 *     ... the row, and its event
 *     domain_change_commit(&change->base, rows);
 *
 * Either way `end` is called once, from the loop and never from inside the call. It changes memory
 * unless there is a failure, answers, and frees the change. */
#pragma once

#include "domain/domain_internal.h"

struct domain_change;

/* `receipt` is NULL when nothing was kept. Events of a change that was kept are told to their
 * followers already. */
typedef void domain_change_end(struct domain_change *change, const struct error *failure,
                               const struct store_receipt *receipt);

struct domain_change {
    struct domain *domain;
    struct caller caller;
    bool is_refused;      /* it never got to the store */
    struct error failure; /* why; for whoever checks to fill */
    domain_change_end *end;
    struct domain_task task;
};

/* `size` bytes of zeros that begin with a struct domain_change. `caller` is copied; NULL: nobody. */
void *domain_change_new(size_t size, struct domain *domain, const struct caller *caller,
                        domain_change_end *end);

/* Soon: `end` with its failure; without one, that there was nothing to do. */
void domain_change_refuse(struct domain_change *change);

/* Keep the rows; they are gone. */
void domain_change_commit(struct domain_change *change, struct store_transaction *rows);

/* Check a name that people give: 1 to `max` bytes of UTF-8 without control characters; `what` is
 * how a sentence about it begins. 0, or -1 with ERR_INVALID. */
int domain_check_name(const char *name, size_t max, const char *what, struct error *err);
