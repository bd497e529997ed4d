#include "load/samples.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"

#define NANOSECONDS_PER_MICROSECOND 1000

uint64_t samples_now(void)
{
    return clock_monotonic_ns(clock_system());
}

void samples_add(struct samples *samples, uint64_t nanoseconds)
{
    if (samples->count == samples->room) {
        samples->room = samples->room ? 2 * samples->room : 64;
        samples->nanoseconds =
            mem_resize(samples->nanoseconds, samples->room * sizeof(*samples->nanoseconds));
    }
    samples->nanoseconds[samples->count++] = nanoseconds;
}

void samples_print(const struct samples *samples, const char *name)
{
    printf("\"%s\":[", name);
    for (size_t i = 0; i < samples->count; i++)
        printf("%s%" PRIu64, i ? "," : "", samples->nanoseconds[i] / NANOSECONDS_PER_MICROSECOND);
    printf("]");
}

void samples_done(struct samples *samples)
{
    free(samples->nanoseconds);
    *samples = (struct samples){.count = 0};
}
