#include "load/histogram.h"

#include <math.h>

#define STEPS (1u << HISTOGRAM_STEP_BITS)

/* Values under STEPS have a bucket each. Above, the highest bit picks a group of STEPS buckets
 * and the six bits behind it the bucket:
 *
 *     value  1 x x x x x x y y y y     group = number of y bits + 1
 *              \_ bucket _/                                              */
static unsigned bucket_of(uint64_t value)
{
    unsigned shift;

    if (value < STEPS)
        return (unsigned) value;
    shift = 63u - (unsigned) __builtin_clzll(value) - HISTOGRAM_STEP_BITS;
    return ((shift + 1) << HISTOGRAM_STEP_BITS) + (unsigned) ((value >> shift) - STEPS);
}

/* The highest value that falls into `bucket`. */
static uint64_t bucket_top(unsigned bucket)
{
    unsigned group = bucket >> HISTOGRAM_STEP_BITS;
    uint64_t step = bucket & (STEPS - 1);

    if (group == 0)
        return step;
    return ((STEPS + step + 1) << (group - 1)) - 1;
}

void histogram_add(struct histogram *histogram, uint64_t value)
{
    histogram->buckets[bucket_of(value)]++;
    histogram->count++;
}

uint64_t histogram_percentile(const struct histogram *histogram, double percent)
{
    uint64_t wanted = (uint64_t) ceil((double) histogram->count * percent / 100);
    uint64_t seen = 0;

    if (histogram->count == 0)
        return 0;
    if (wanted == 0)
        wanted = 1;
    for (unsigned bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++) {
        seen += histogram->buckets[bucket];
        if (seen >= wanted)
            return bucket_top(bucket);
    }
    return bucket_top(HISTOGRAM_BUCKETS - 1);
}
