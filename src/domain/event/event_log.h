/* Between event.c (the log: what is added, kept and forgotten) and event_follow.c (who follows it).
 */
#pragma once

#include "domain/domain_internal.h"
#include "domain/event/event.h"
#include "domain/retention.h"

struct event_log {
    int64_t head;            /* cursor of the last event that is known to be kept */
    int64_t trimmed;         /* cursor of the last one that is not kept any more; 0: none */
    int64_t tail;            /* what live followers have seen */
    bool is_reading;         /* a query for live followers is under way */
    bool is_stale;           /* more was kept since it was asked */
    struct list followers;   /* of struct event_follower */
    unsigned int telling;    /* followers are being called: none is freed */
    struct event_news *news; /* what live followers are being told; NULL: nothing */
    struct retention old;    /* those that go */
};

/* Whether the cursor is one behind which events are missing. 0 is the beginning, whatever that is
 * by now. */
bool event_is_gone(const struct domain *domain, int64_t after, struct error *err);

/* The conditions for what this caller sees of the log behind `after`. The values borrow. */
size_t event_conditions(const struct caller *caller, const char *stream, int64_t after,
                        struct store_condition ret_conditions[static STORE_CONDITIONS_MAX]);

/* Whether the caller sees events of this owner and stream. */
bool event_is_seen(const struct caller *caller, const struct event *event);

/* NULL and "": all; "sandbox.": all that begin so; else exactly this. */
bool event_type_matches(const char *filter, const char *type);

/* An event of its row; borrows from it. */
struct event event_from_row(const struct store_value *row);

/* For event.c: the log grew; the domain closes. */
void event_followers_read(struct domain *domain);
void event_followers_tick(struct domain *domain);
void event_followers_end(struct domain *domain);
