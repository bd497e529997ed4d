/* How often something may be tried: a token bucket per name (an address, an email), in a table of
 * fixed size.
 *
 * A flood of names pushes out those that tried least, so that the table stays small and whoever
 * tries most stays in it. Names are kept as keyed hashes: two that collide share a bucket. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define THROTTLE_SETS 512 /* a power of two */
#define THROTTLE_WAYS 8

struct throttle_bucket {
    uint64_t name; /* 0: free */
    uint64_t filled_ns;
    double tokens;
};

struct throttle {
    uint64_t seed;
    double burst;                    /* so many at once */
    double per_minute;               /* so many later on */
    struct throttle_bucket *buckets; /* owned; THROTTLE_SETS * THROTTLE_WAYS */
};

void throttle_init(struct throttle *throttle, unsigned int burst, unsigned int per_minute);
void throttle_done(struct throttle *throttle);

/* One more try of `name`. False when it had too many; then in how many seconds the next is allowed,
 * at least 1. */
bool throttle_take(struct throttle *throttle, const char *name, uint64_t now_ns,
                   unsigned int *ret_retry_s);

/* The try was a good one: it does not count. */
void throttle_give_back(struct throttle *throttle, const char *name, uint64_t now_ns);
