/* Old rows go, a slice at a time: one large delete would make every other commit wait.
 *
 *     struct retention old = {.kind = STORE_AUDIT, .time = STORE_AUDIT_TIME, .kept_ms = ...};
 *
 *     static void tick(struct domain *domain)
 *     {
 *         retention_tick(domain, &domain->audit->old);
 *     }
 *
 * While the disk is full but for its floor (domain_options.disk_has_room), the time for which rows are
 * kept is halved again and again, down to least_ms: the database must go on, and whoever makes rows
 * without end is no reason for it to stop.
 *
 * It lives in the module's own struct: the domain waits for its answers before it ends. */
#pragma once

#include "domain/domain_internal.h"

#define RETENTION_SLICE 500 /* rows; and those of the same millisecond as the last */

struct retention {
    enum store_kind kind;
    unsigned int time;  /* the column that says how old a row is; it has an index */
    bool has_condition; /* only rows of which this is true, too */
    struct store_condition condition;
    int64_t kept_ms;   /* rows older than this go */
    int64_t least_ms;  /* younger ones stay even when the disk is full */
    uint64_t every_ns; /* how often to look */
    /* After rows were deleted; may be NULL. */
    void (*deleted)(struct domain *domain);

    /* Its own. */
    struct domain *domain;
    uint64_t due_ns, room_ns; /* when to look for old rows, and for room */
    unsigned int halvings;    /* of kept_ms, for want of room */
    bool is_busy;
    bool has_more;
};

/* Look for old rows if it is time to. Once a second. */
void retention_tick(struct domain *domain, struct retention *retention);
