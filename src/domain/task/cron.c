#include "domain/task/cron.h"

#include <string.h>
#include <strings.h>

#include "base/auto.h"

#define DAY  86400
#define HOUR 3600

/* --- read -------------------------------------------------------------------------------------- */

struct cron_field {
    const char *name;
    int least, most;
    const char *const *words; /* NULL behind the last; the first is `least` */
};

static const char *const months[] = {"jan", "feb", "mar", "apr", "may", "jun", "jul",
                                     "aug", "sep", "oct", "nov", "dec", NULL};
static const char *const weekdays[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL};

static const struct cron_field fields[] = {
    {"minute", 0, 59, NULL},
    {"hour", 0, 23, NULL},
    {"day of the month", 1, 31, NULL},
    {"month", 1, 12, months},
    {"day of the week", 0, 7, weekdays},
};

static const struct {
    const char *word, *meaning;
} words[] = {
    {"@hourly", "0 * * * *"},   {"@daily", "0 0 * * *"},   {"@midnight", "0 0 * * *"},
    {"@weekly", "0 0 * * 0"},   {"@monthly", "0 0 1 * *"}, {"@yearly", "0 0 1 1 *"},
    {"@annually", "0 0 1 1 *"},
};

static int cron_refuse(const struct cron_field *field, const char *text, int length,
                       struct error *err)
{
    return error_set(err, ERR_INVALID, 0,
                     "the %s of a cron expression is a number from %d to %d, a range, a list or *, "
                     "and not '%.*s'",
                     field->name, field->least, field->most, length > 32 ? 32 : length, text);
}

static bool cron_is_end(char c)
{
    return c == '\0' || c == ' ' || c == '\t' || c == ',';
}

static int cron_read_number(const struct cron_field *field, const char **at, int *ret_number)
{
    const char *text = *at;
    int number = 0, digits = 0;

    for (int i = 0; field->words && field->words[i]; i++)
        if (strncasecmp(text, field->words[i], 3) == 0) {
            *ret_number = field->least + i;
            *at = text + 3;
            return 0;
        }
    while (*text >= '0' && *text <= '9' && digits++ < 3)
        number = number * 10 + (*text++ - '0');
    if (!digits || digits > 3)
        return -1;
    *ret_number = number;
    *at = text;
    return 0;
}

/* One of a list: *, a, a-b, each with /step. */
static int cron_read_part(const struct cron_field *field, const char **at, uint64_t *bits)
{
    int from = field->least, to = field->most, step = 1;
    bool is_range = true;

    if (**at == '*') {
        (*at)++;
        to = field->words == weekdays ? 6 : to;
    } else {
        if (cron_read_number(field, at, &from) < 0)
            return -1;
        is_range = **at == '-';
        to = from;
        if (is_range && (*at)++ && cron_read_number(field, at, &to) < 0)
            return -1;
    }
    if (**at == '/') {
        (*at)++;
        if (cron_read_number(&(struct cron_field){.least = 0}, at, &step) < 0 || step < 1)
            return -1;
        to = is_range ? to : field->most;
    }
    if (from < field->least || to > field->most || from > to || !cron_is_end(**at))
        return -1;
    for (int i = from; i <= to; i += step)
        *bits |= UINT64_C(1) << i;
    return 0;
}

static int cron_read_field(const struct cron_field *field, const char **at, uint64_t *ret_bits,
                           bool *ret_is_all, struct error *err)
{
    const char *begin;
    uint64_t bits = 0;

    *at += strspn(*at, " \t");
    begin = *at;
    *ret_is_all = *begin == '*' && cron_is_end(begin[1]) && begin[1] != ',';
    do {
        const char *part = *at;

        if (cron_read_part(field, at, &bits) < 0)
            return cron_refuse(field, part, (int) strcspn(part, " \t,"), err);
    } while (**at == ',' && (*at)++);
    *ret_bits = bits;
    return 0;
}

int cron_parse(const char *text, struct cron *ret_cron, struct error *err)
{
    uint64_t bits[ARRAY_COUNT(fields)];
    bool is_all[ARRAY_COUNT(fields)];

    for (size_t i = 0; i < ARRAY_COUNT(words); i++)
        if (strcasecmp(text, words[i].word) == 0)
            text = words[i].meaning;
    if (strlen(text) > CRON_TEXT_MAX)
        return error_set(err, ERR_INVALID, 0, "a cron expression has at most %d bytes",
                         CRON_TEXT_MAX);
    for (size_t i = 0; i < ARRAY_COUNT(fields); i++)
        if (cron_read_field(&fields[i], &text, &bits[i], &is_all[i], err) < 0)
            return -1;
    if (text[strspn(text, " \t")])
        return error_set(err, ERR_INVALID, 0,
                         "a cron expression has five fields: minute, hour, day, month, weekday");
    *ret_cron = (struct cron){
        .minutes = bits[0],
        .hours = (uint32_t) bits[1],
        .days = (uint32_t) bits[2],
        .months = (uint32_t) bits[3],
        .weekdays = (uint32_t) ((bits[4] | bits[4] >> 7) & 0x7f),
        .has_all_hours = is_all[1],
        .has_all_days = is_all[2],
        .has_all_weekdays = is_all[4],
    };
    return 0;
}

/* --- when -------------------------------------------------------------------------------------- */

/* A local moment. */
struct cron_moment {
    int month, day, weekday; /* 1-12, 1-31, 0-6 */
    int64_t second;          /* of the day */
};

/* Days since 1970 as a date of the Gregorian calendar: years begin with March, so that the leap day
 * is at their end. */
static struct cron_moment cron_moment_of(int64_t local)
{
    int64_t days = local / DAY - (local % DAY < 0), shifted = days + 719468;
    int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    int64_t day_of_era = shifted - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * day_of_year + 2) / 153;

    return (struct cron_moment){
        .month = (int) (month < 10 ? month + 3 : month - 9),
        .day = (int) (day_of_year - (153 * month + 2) / 5 + 1),
        .weekday = (int) (((days + 4) % 7 + 7) % 7),
        .second = local - days * DAY,
    };
}

static bool cron_has_day(const struct cron *cron, const struct cron_moment *moment)
{
    bool day = cron->days >> moment->day & 1, weekday = cron->weekdays >> moment->weekday & 1;

    if (!(cron->months >> moment->month & 1))
        return false;
    if (cron->has_all_days || cron->has_all_weekdays)
        return day && weekday;
    return day || weekday;
}

static bool cron_has_time(const struct cron *cron, int64_t second)
{
    return (cron->hours >> (second / HOUR) & 1) && (cron->minutes >> (second % HOUR / 60) & 1);
}

/* The clock has just jumped forward, over one of its times. */
static bool cron_was_jumped_over(const struct cron *cron, const struct time_zone *zone, int64_t at,
                                 const struct cron_moment *moment)
{
    int32_t jump = time_zone_offset(zone, at) - time_zone_offset(zone, at - 60);

    if (jump <= 0 || cron->has_all_hours)
        return false;
    for (int64_t second = moment->second - jump; second < moment->second; second += 60)
        if (second >= 0 && cron_has_time(cron, second))
            return true;
    return false;
}

/* The clock was put back, and showed this time before. */
static bool cron_was_before(const struct cron *cron, const struct time_zone *zone, int64_t at)
{
    int32_t now = time_zone_offset(zone, at), before = time_zone_offset(zone, at - 3 * HOUR);

    return !cron->has_all_hours && before > now &&
           time_zone_offset(zone, at - (before - now)) == before;
}

/* The first moment of the next local day. */
static int64_t cron_next_day(const struct time_zone *zone, int64_t at,
                             const struct cron_moment *moment)
{
    int64_t midnight = at + time_zone_offset(zone, at) + DAY - moment->second;
    int64_t next = midnight - time_zone_offset(zone, at + DAY - moment->second);

    next = midnight - time_zone_offset(zone, next - 1);
    return next > at ? next : at + HOUR;
}

int64_t cron_next(const struct cron *cron, const struct time_zone *zone, int64_t after)
{
    int64_t at = after - ((after % 60) + 60) % 60 + 60;
    int64_t end = at + (int64_t) CRON_YEARS * 366 * DAY;

    while (at < end) {
        struct cron_moment moment = cron_moment_of(at + time_zone_offset(zone, at));

        if (!cron_has_day(cron, &moment)) {
            at = cron_next_day(zone, at, &moment);
        } else if (cron_was_jumped_over(cron, zone, at, &moment) ||
                   (cron_has_time(cron, moment.second) && !cron_was_before(cron, zone, at))) {
            return at;
        } else if (!(cron->hours >> (moment.second / HOUR) & 1)) {
            int64_t next = at + HOUR - moment.second % HOUR;

            /* Not over a jump in this hour, behind which it may be time. */
            at = time_zone_offset(zone, next) == time_zone_offset(zone, at) ? next : at + 60;
        } else {
            at += 60;
        }
    }
    return -1;
}
