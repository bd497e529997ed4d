/* What a turn cost, as the agent tells it: as JSON in rows and answers, and added up. Never believed
 * for budgets: for those the broker counts. */
#pragma once

#include "domain/harness.h"
#include "json/json_write.h"

#define TURN_USAGE_MAX 512

/* {"input","output","reasoning","cacheRead","cacheWrite","costMicros","costKnown"} */
void turn_usage_write(struct json_writer *json, const struct harness_usage *usage);
void turn_usage_text(const struct harness_usage *usage, char ret_text[static TURN_USAGE_MAX]);
/* What it does not understand is nothing. */
void turn_usage_read(const char *text, struct harness_usage *ret_usage);
/* A sum is only known when all its parts are. */
void turn_usage_add(struct harness_usage *sum, const struct harness_usage *usage);
