/* Times that a load program took, to be printed one by one: rows make their own medians. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"

/* Zeroed is empty. */
struct samples {
    uint64_t *nanoseconds; /* owned */
    size_t count, room;
};

/* Now, on the clock that samples are taken with. */
uint64_t samples_now(void);

void samples_add(struct samples *samples, uint64_t nanoseconds);

/* Prints "NAME":[microseconds, ...] to stdout, without a comma around it. */
void samples_print(const struct samples *samples, const char *name);

void samples_done(struct samples *samples);

AUTO_DEFINE(samples, struct samples, samples_done);
