/* A budget's counter: how much was used today and in this minute, and how much is held for requests
 * that are under way. Pure: time is given.
 *
 * Nobody knows what a request will cost. So each holds an estimate from the moment it is let go; what
 * its reply tells takes the place of that. A request is let go when what was used, what is held and
 * its own estimate fit; or when it is the only one, as long as anything is left: else a small budget
 * could never be used up. What passes a budget is then at most what that one spends until it is cut. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/egress_policy.h"

#define EGRESS_SECONDS 60

struct egress_meter {
    int64_t day_ms; /* the day that these are of */
    uint64_t tokens, micros;
    uint64_t held_tokens, held_micros; /* by requests under way, of what they have not used yet */
    unsigned int under_way;            /* metered ones */
    uint32_t seconds[EGRESS_SECONDS];  /* requests, by second; a ring */
    uint64_t second;                   /* the last one counted in */
};

/* What one request holds in one meter. */
struct egress_hold {
    uint64_t tokens, micros;
    bool is_held;
};

enum egress_limit {
    EGRESS_WITHIN,
    EGRESS_MINUTE,      /* so many requests were made in this minute */
    EGRESS_DAY_TOKENS,  /* used up */
    EGRESS_DAY_COST,    /* used up */
    EGRESS_HELD_TOKENS, /* what is left is held by requests under way */
    EGRESS_HELD_COST,
};

/* Whether one more is within the budget, of which nothing changes. An estimate of 0 tokens is a
 * request that is not metered. */
enum egress_limit egress_meter_check(struct egress_meter *meter, const struct egress_budget *budget,
                                     int64_t day_ms, uint64_t now_s, uint64_t tokens,
                                     uint64_t micros);

/* It is let go. `tokens` 0: it is only counted. */
void egress_meter_begin(struct egress_meter *meter, int64_t day_ms, uint64_t now_s, uint64_t tokens,
                        uint64_t micros, struct egress_hold *ret_hold);

/* It used so much more than it was seen to. False: the budget is used up. */
bool egress_meter_use(struct egress_meter *meter, const struct egress_budget *budget,
                      int64_t day_ms, uint64_t tokens, uint64_t micros, struct egress_hold *hold);

/* It is over. */
void egress_meter_end(struct egress_meter *meter, struct egress_hold *hold);

/* What was used before a restart. */
void egress_meter_add(struct egress_meter *meter, int64_t day_ms, uint64_t tokens, uint64_t micros);

/* Words for people: "its 20000 tokens of today are used up". */
const char *egress_limit_text(enum egress_limit limit);
/* And for events: "requests_per_minute". */
const char *egress_limit_word(enum egress_limit limit);
