/* How long messages to agents take, from the request to the end of the turn: for metrics, and a line in
 * the log for each that took longer than people wait. */
#pragma once

#include <stdint.h>

#include "base/log.h"
#include "base/text.h"

#define MESSAGE_BUCKETS 9

struct message_meter {
    uint64_t threshold_ms;             /* 0: none is slow */
    uint64_t buckets[MESSAGE_BUCKETS]; /* cumulative; the last is all */
    uint64_t ms_total, slow;
};

/* One is over. `sandbox` is for the log, which may be NULL. */
void message_meter_add(struct message_meter *meter, uint64_t milliseconds, const char *sandbox,
                       struct log *log);

/* Append it in Prometheus' format. */
void message_meter_write(const struct message_meter *meter, struct text *out);
