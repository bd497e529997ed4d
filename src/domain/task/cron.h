/* Cron expressions: when something happens again and again. Pure.
 *
 *     ┌ minute 0-59   ┌ day of the month 1-31   ┌ day of the week 0-7 or sun-sat; 0 and 7 are Sunday
 *     0  6  *  *  mon-fri
 *        └ hour 0-23  └ month 1-12 or jan-dec
 *
 * Each is *, or a list of numbers, ranges (1-5) and steps (*\/15, 8-18/2). When both days are said,
 * either will do. Or @hourly, @daily, @weekly, @monthly, @yearly.
 *
 * Times are local. One that the clock jumps over in spring happens when it has jumped; one that comes
 * twice in autumn happens once. What is said of all hours follows the clock as it is. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "domain/task/time_zone.h"

#define CRON_TEXT_MAX 256

struct cron {
    uint64_t minutes;
    uint32_t hours, days, months, weekdays; /* bits; weekdays 0-6 */
    bool has_all_hours, has_all_days, has_all_weekdays;
};

/* ERR_INVALID says which field and why. */
int cron_parse(const char *text, struct cron *ret_cron, struct error *err);

/* The first time after `after` (both in seconds since 1970); -1: never, in the next CRON_YEARS. */
#define CRON_YEARS 12
int64_t cron_next(const struct cron *cron, const struct time_zone *zone, int64_t after);
