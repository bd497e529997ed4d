#include "api/access/throttle.h"

#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "base/memory.h"
#include "base/table.h"

#define MINUTE_NS 60e9

_Static_assert((THROTTLE_SETS & (THROTTLE_SETS - 1)) == 0, "sets are found by a mask");

void throttle_init(struct throttle *throttle, unsigned int burst, unsigned int per_minute)
{
    *throttle = (struct throttle){.burst = burst, .per_minute = per_minute};
    random_bytes(&throttle->seed, sizeof(throttle->seed));
    throttle->buckets =
        mem_alloc_array((size_t) THROTTLE_SETS * THROTTLE_WAYS, sizeof(*throttle->buckets));
}

void throttle_done(struct throttle *throttle)
{
    free(throttle->buckets);
    throttle->buckets = NULL;
}

static double filled(const struct throttle *throttle, const struct throttle_bucket *bucket,
                     uint64_t now_ns)
{
    double passed = now_ns > bucket->filled_ns ? (double) (now_ns - bucket->filled_ns) : 0;
    double tokens = bucket->tokens + passed / MINUTE_NS * throttle->per_minute;

    return tokens < throttle->burst ? tokens : throttle->burst;
}

/* The bucket of this name, brought up to now. A new one takes the place of the fullest of its set:
 * forgetting that one costs least. */
static struct throttle_bucket *bucket_of(struct throttle *throttle, const char *name,
                                         uint64_t now_ns)
{
    uint64_t hash = table_hash(throttle->seed, name, strlen(name)) | 1;
    struct throttle_bucket *set =
        &throttle->buckets[((hash >> 1) & (THROTTLE_SETS - 1)) * THROTTLE_WAYS];
    struct throttle_bucket *fullest = NULL;

    for (size_t i = 0; i < THROTTLE_WAYS; i++) {
        struct throttle_bucket *at = &set[i];

        at->tokens = at->name ? filled(throttle, at, now_ns) : throttle->burst;
        at->filled_ns = now_ns;
        if (at->name == hash)
            return at;
        if (!fullest || at->tokens > fullest->tokens)
            fullest = at;
    }
    *fullest =
        (struct throttle_bucket){.name = hash, .filled_ns = now_ns, .tokens = throttle->burst};
    return fullest;
}

bool throttle_take(struct throttle *throttle, const char *name, uint64_t now_ns,
                   unsigned int *ret_retry_s)
{
    struct throttle_bucket *bucket = bucket_of(throttle, name, now_ns);

    if (bucket->tokens >= 1) {
        bucket->tokens -= 1;
        return true;
    }
    *ret_retry_s = (unsigned int) ((1 - bucket->tokens) * 60 / throttle->per_minute) + 1;
    return false;
}

void throttle_give_back(struct throttle *throttle, const char *name, uint64_t now_ns)
{
    struct throttle_bucket *bucket = bucket_of(throttle, name, now_ns);

    if (bucket->tokens + 1 <= throttle->burst)
        bucket->tokens += 1;
}
