/* Time enters the program here, so that tests can hold the clock.
 *
 * Two times: wall time for people and records, monotonic time for durations and deadlines. A
 * clock is passed down from main; nothing else but the trace calls clock_gettime. */
#pragma once

#include <stdint.h>

struct clock {
    /* Milliseconds since 1970 UTC. May jump. */
    int64_t (*wall_ms)(const struct clock *clock);
    /* Nanoseconds since an arbitrary start. Never goes back. */
    uint64_t (*monotonic_ns)(const struct clock *clock);
};

/* The clock of the system. Static, never freed. */
const struct clock *clock_system(void);

/* A clock that stands still until a test moves it. */
struct clock_manual {
    struct clock clock; /* first: pass &manual.clock */
    int64_t wall_ms;
    uint64_t monotonic_ns;
};

void clock_manual_init(struct clock_manual *manual, int64_t wall_ms);

/* Move both times forward. */
void clock_manual_advance(struct clock_manual *manual, uint64_t milliseconds);

static inline int64_t clock_wall_ms(const struct clock *clock)
{
    return clock->wall_ms(clock);
}

static inline uint64_t clock_monotonic_ns(const struct clock *clock)
{
    return clock->monotonic_ns(clock);
}

#define CLOCK_TEXT_SIZE 25

/* "2026-11-15T20:18:28.123Z" and a NUL. Years outside 0000-9999 are clamped. */
void clock_format(int64_t wall_ms, char ret_text[static CLOCK_TEXT_SIZE]);

/* The other way. Returns 0, or -EINVAL for anything but that exact form. */
int clock_parse(const char *text, int64_t *ret_wall_ms);
