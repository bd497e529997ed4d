/* Latencies counted in buckets about 1.6 % wide: constant memory, however many samples.
 *
 *     histogram_add(&latency, nanoseconds);
 *     printf("%.1f us", histogram_percentile(&latency, 99) / 1e3); */
#pragma once

#include <stdint.h>

/* 64 linear steps within each power of two. */
#define HISTOGRAM_STEP_BITS 6
#define HISTOGRAM_BUCKETS   ((64 - HISTOGRAM_STEP_BITS + 1) << HISTOGRAM_STEP_BITS)

/* Zeroed is empty. */
struct histogram {
    uint64_t count;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *histogram, uint64_t value);

/* The smallest bucket bound at or under which `percent` (0-100) of the samples lie; at most 1.6 %
 * above the true value. 0 when empty. */
uint64_t histogram_percentile(const struct histogram *histogram, double percent);
