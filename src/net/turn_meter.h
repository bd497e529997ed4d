/* How long the loop was held: the time of each turn that was not spent waiting in the kernel.
 *
 * One thread serves everybody, so whoever makes one turn long makes everybody wait. All turns are
 * counted by length. A long one is logged with the request it was for, which the trace knows: the
 * entry behind which most of the turn went by. */
#pragma once

#include <stdint.h>

#include "base/log.h"
#include "net/loop.h"

/* Up to 1, 5, 10, 50, 100, 500 and 5000 ms, and all. */
#define TURN_METER_BUCKETS 8
#define TURN_METER_LONG_MS 50 /* from here on it is logged, once a second at most */

struct turn_meter_counts {
    uint64_t buckets[TURN_METER_BUCKETS]; /* each with those of the ones before */
    uint64_t ns_total;
    uint64_t longest_ns; /* since the start */
};

struct turn_meter;

/* Measures from the next turn on. `log` may be NULL. Both are borrowed. */
struct turn_meter *turn_meter_new(struct loop *loop, struct log *log);

void turn_meter_read(const struct turn_meter *meter, struct turn_meter_counts *ret_counts);

/* Frees itself once the loop has turned. Accepts NULL. */
void turn_meter_close(struct turn_meter *meter);
