#include "base/clock.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#define MS_PER_DAY INT64_C(86400000)

/* 0000-01-01T00:00:00.000Z and 9999-12-31T23:59:59.999Z */
#define WALL_MS_FIRST INT64_C(-62167219200000)
#define WALL_MS_LAST  INT64_C(253402300799999)

static int64_t system_wall_ms(const struct clock *clock)
{
    struct timespec now;

    (void) clock;
    (void) clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static uint64_t system_monotonic_ns(const struct clock *clock)
{
    struct timespec now;

    (void) clock;
    (void) clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
    return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}

const struct clock *clock_system(void)
{
    static const struct clock system_clock = {
        .wall_ms = system_wall_ms,
        .monotonic_ns = system_monotonic_ns,
    };

    return &system_clock;
}

static int64_t manual_wall_ms(const struct clock *clock)
{
    return ((const struct clock_manual *) clock)->wall_ms;
}

static uint64_t manual_monotonic_ns(const struct clock *clock)
{
    return ((const struct clock_manual *) clock)->monotonic_ns;
}

void clock_manual_init(struct clock_manual *manual, int64_t wall_ms)
{
    *manual = (struct clock_manual){
        .clock = {.wall_ms = manual_wall_ms, .monotonic_ns = manual_monotonic_ns},
        .wall_ms = wall_ms,
    };
}

void clock_manual_advance(struct clock_manual *manual, uint64_t milliseconds)
{
    manual->wall_ms += (int64_t) milliseconds;
    manual->monotonic_ns += milliseconds * 1000000;
}

/* Calendar arithmetic of our own: gmtime_r takes glibc's time zone lock, which a child between
 * fork and exec may find held. Years are counted from March, so that the leap day is the last day
 * of a year and the lengths of the months before it follow one formula. */

static int64_t days_before(int64_t year, int64_t month, int64_t day)
{
    int64_t march_year = month > 2 ? year : year - 1;
    int64_t march_month = month > 2 ? month - 3 : month + 9;
    /* + 400 years: keeps January and February of year 0 from dividing a negative number */
    int64_t shifted = march_year + 400;
    int64_t days = shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400;

    /* 719468 days from 0000-03-01 to 1970-01-01, 146097 in 400 years */
    return days + (153 * march_month + 2) / 5 + day - 1 - 719468 - 146097;
}

static void put_digits(char *at, int64_t number, int count)
{
    while (count--) {
        at[count] = (char) ('0' + number % 10);
        number /= 10;
    }
}

static void put_date(char *text, int64_t days)
{
    int64_t from_march = days + 719468 + 146097;
    int64_t era_day = from_march % 146097;
    int64_t era_year = (era_day - era_day / 1460 + era_day / 36524 - era_day / 146096) / 365;
    int64_t year_day = era_day - (365 * era_year + era_year / 4 - era_year / 100);
    int64_t march_month = (5 * year_day + 2) / 153;
    int64_t month = march_month < 10 ? march_month + 3 : march_month - 9;
    int64_t year = from_march / 146097 * 400 + era_year - 400 + (month <= 2);

    put_digits(text, year, 4);
    put_digits(text + 5, month, 2);
    put_digits(text + 8, year_day - (153 * march_month + 2) / 5 + 1, 2);
}

void clock_format(int64_t wall_ms, char ret_text[static CLOCK_TEXT_SIZE])
{
    int64_t days, rest;

    if (wall_ms < WALL_MS_FIRST)
        wall_ms = WALL_MS_FIRST;
    if (wall_ms > WALL_MS_LAST)
        wall_ms = WALL_MS_LAST;
    days = wall_ms / MS_PER_DAY;
    rest = wall_ms % MS_PER_DAY;
    if (rest < 0) {
        rest += MS_PER_DAY;
        days--;
    }
    memcpy(ret_text, "0000-00-00T00:00:00.000Z", CLOCK_TEXT_SIZE);
    put_date(ret_text, days);
    put_digits(ret_text + 11, rest / 3600000, 2);
    put_digits(ret_text + 14, rest / 60000 % 60, 2);
    put_digits(ret_text + 17, rest / 1000 % 60, 2);
    put_digits(ret_text + 20, rest % 1000, 3);
}

static int64_t read_digits(const char *at, int count)
{
    int64_t number = 0;

    while (count--)
        number = number * 10 + (*at++ - '0');
    return number;
}

static bool has_form(const char *text)
{
    static const char form[CLOCK_TEXT_SIZE] = "dddd-dd-ddTdd:dd:dd.dddZ";

    for (int i = 0; i < CLOCK_TEXT_SIZE; i++) {
        bool fits = form[i] == 'd' ? text[i] >= '0' && text[i] <= '9' : text[i] == form[i];

        if (!fits)
            return false;
    }
    return true;
}

int clock_parse(const char *text, int64_t *ret_wall_ms)
{
    char again[CLOCK_TEXT_SIZE];
    int64_t wall_ms;

    if (!has_form(text))
        return -EINVAL;
    wall_ms =
        days_before(read_digits(text, 4), read_digits(text + 5, 2), read_digits(text + 8, 2)) *
        MS_PER_DAY;
    wall_ms += read_digits(text + 11, 2) * 3600000 + read_digits(text + 14, 2) * 60000 +
               read_digits(text + 17, 2) * 1000 + read_digits(text + 20, 3);
    /* A day, hour or second that does not exist comes back as another one. */
    clock_format(wall_ms, again);
    if (strcmp(again, text) != 0)
        return -EINVAL;
    *ret_wall_ms = wall_ms;
    return 0;
}
