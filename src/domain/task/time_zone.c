#include "domain/task/time_zone.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"

#define TRANSITIONS_MAX 4096
#define TYPES_MAX       256
#define HEADER_SIZE     44
#define OFFSET_MAX      (26 * 3600)
#define DAY             86400

/* When in a year a rule of a footer changes the clock. */
struct zone_rule {
    char form; /* 'M', 'J' or 'D' (a day from 0 on) */
    int month, week, day;
    int32_t time; /* seconds of local time */
};

struct time_zone {
    size_t count;
    int64_t *times;   /* owned, growing */
    int32_t *offsets; /* owned: from times[i] on */
    int32_t first;    /* before the first */
    bool has_footer, has_summer;
    int32_t standard, summer; /* of the footer, behind the last */
    struct zone_rule begin, end;
};

static int zone_refuse(const char *what, struct error *err)
{
    return error_set(err, ERR_INVALID, 0, "the file of the time zone %s", what);
}

/* --- calendar ---------------------------------------------------------------------------------- */

static int64_t zone_days_to_year(int64_t year)
{
    int64_t y = year - 1;

    return 365 * (year - 1970) + (y / 4 - y / 100 + y / 400) - (1969 / 4 - 1969 / 100 + 1969 / 400);
}

static bool zone_is_leap(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int64_t zone_year_of(int64_t days)
{
    int64_t year = 1970 + days / 366;

    while (zone_days_to_year(year + 1) <= days)
        year++;
    return year;
}

/* --- the footer -------------------------------------------------------------------------------- */

struct zone_text {
    const char *at, *end;
};

static bool zone_take(struct zone_text *text, char c)
{
    if (text->at < text->end && *text->at == c) {
        text->at++;
        return true;
    }
    return false;
}

static int zone_take_number(struct zone_text *text, int max, int *ret_number)
{
    int number = 0, digits = 0;

    while (text->at < text->end && *text->at >= '0' && *text->at <= '9' && digits < 4) {
        number = number * 10 + (*text->at++ - '0');
        digits++;
    }
    if (!digits || number > max)
        return -1;
    *ret_number = number;
    return 0;
}

static int zone_take_name(struct zone_text *text)
{
    bool is_quoted = zone_take(text, '<');
    const char *begin = text->at;

    while (text->at < text->end && (is_quoted ? *text->at != '>'
                                              : (*text->at >= 'A' && *text->at <= 'Z') ||
                                                    (*text->at >= 'a' && *text->at <= 'z')))
        text->at++;
    if (text->at - begin < 3 || (is_quoted && !zone_take(text, '>')))
        return -1;
    return 0;
}

/* [+-]h[h][:mm[:ss]] */
static int zone_take_time(struct zone_text *text, int hours_max, int32_t *ret_seconds)
{
    bool is_negative = zone_take(text, '-');
    int hours = 0, minutes = 0, seconds = 0;

    if (!is_negative)
        (void) zone_take(text, '+');
    if (zone_take_number(text, hours_max, &hours) < 0 ||
        (zone_take(text, ':') && zone_take_number(text, 59, &minutes) < 0) ||
        (zone_take(text, ':') && zone_take_number(text, 59, &seconds) < 0))
        return -1;
    *ret_seconds = (hours * 60 + minutes) * 60 + seconds;
    if (is_negative)
        *ret_seconds = -*ret_seconds;
    return 0;
}

static int zone_take_rule(struct zone_text *text, struct zone_rule *ret_rule)
{
    struct zone_rule rule = {.form = 'D', .time = 2 * 3600};

    if (!zone_take(text, ','))
        return -1;
    if (zone_take(text, 'M')) {
        rule.form = 'M';
        if (zone_take_number(text, 12, &rule.month) < 0 || rule.month < 1 ||
            !zone_take(text, '.') || zone_take_number(text, 5, &rule.week) < 0 || rule.week < 1 ||
            !zone_take(text, '.') || zone_take_number(text, 6, &rule.day) < 0)
            return -1;
    } else {
        rule.form = zone_take(text, 'J') ? 'J' : 'D';
        if (zone_take_number(text, 365, &rule.day) < 0 || (rule.form == 'J' && rule.day < 1))
            return -1;
    }
    if (zone_take(text, '/') && zone_take_time(text, 167, &rule.time) < 0)
        return -1;
    *ret_rule = rule;
    return 0;
}

/* "CET-1CEST,M3.5.0,M10.5.0/3": hours west, and when there is another time. */
static int zone_read_footer(struct time_zone *zone, struct zone_text text)
{
    if (zone_take_name(&text) < 0 || zone_take_time(&text, 24, &zone->standard) < 0)
        return -1;
    zone->standard = -zone->standard;
    zone->has_footer = true;
    if (text.at == text.end)
        return 0;
    zone->summer = zone->standard + 3600;
    if (zone_take_name(&text) < 0)
        return -1;
    if (text.at < text.end && *text.at != ',') {
        if (zone_take_time(&text, 24, &zone->summer) < 0)
            return -1;
        zone->summer = -zone->summer;
    }
    zone->has_summer = true;
    return zone_take_rule(&text, &zone->begin) < 0 || zone_take_rule(&text, &zone->end) < 0 ||
                   text.at != text.end
               ? -1
               : 0;
}

/* Days since 1970 of the day a rule names in a year. */
static int64_t zone_rule_day(const struct zone_rule *rule, int64_t year)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t first = zone_days_to_year(year);
    int length, weekday, day;

    if (rule->form == 'D')
        return first + rule->day;
    if (rule->form == 'J')
        return first + rule->day - 1 + (zone_is_leap(year) && rule->day > 59);
    for (int month = 1; month < rule->month; month++)
        first += lengths[month - 1] + (month == 2 && zone_is_leap(year));
    length = lengths[rule->month - 1] + (rule->month == 2 && zone_is_leap(year));
    weekday = (int) (((first + 4) % 7 + 7) % 7); /* 1970 began with a Thursday */
    day = (rule->day - weekday + 7) % 7 + 7 * (rule->week - 1);
    return first + (day < length ? day : day - 7); /* the fifth is the last */
}

static int32_t zone_footer_offset(const struct time_zone *zone, int64_t utc)
{
    int64_t local = utc + zone->standard, year, begin, end;
    bool is_summer;

    if (!zone->has_summer)
        return zone->standard;
    year = zone_year_of((local - ((local % DAY) + DAY) % DAY) / DAY);
    begin = zone_rule_day(&zone->begin, year) * DAY + zone->begin.time - zone->standard;
    end = zone_rule_day(&zone->end, year) * DAY + zone->end.time - zone->summer;
    is_summer = begin < end ? utc >= begin && utc < end : utc >= begin || utc < end;
    return is_summer ? zone->summer : zone->standard;
}

/* --- the file ---------------------------------------------------------------------------------- */

struct zone_header {
    uint32_t is_ut, is_standard, leaps, times, types, letters;
    char version;
};

static uint32_t zone_get32(const char *at)
{
    const unsigned char *bytes = (const unsigned char *) at;

    return (uint32_t) bytes[0] << 24 | (uint32_t) bytes[1] << 16 | (uint32_t) bytes[2] << 8 |
           bytes[3];
}

static int zone_read_header(const char *bytes, size_t length, struct zone_header *ret_header,
                            struct error *err)
{
    if (length < HEADER_SIZE || memcmp(bytes, "TZif", 4) != 0)
        return zone_refuse("is none", err);
    *ret_header = (struct zone_header){
        .version = bytes[4],
        .is_ut = zone_get32(bytes + 20),
        .is_standard = zone_get32(bytes + 24),
        .leaps = zone_get32(bytes + 28),
        .times = zone_get32(bytes + 32),
        .types = zone_get32(bytes + 36),
        .letters = zone_get32(bytes + 40),
    };
    if (ret_header->times > TRANSITIONS_MAX || ret_header->types < 1 ||
        ret_header->types > TYPES_MAX || ret_header->letters > 4096 || ret_header->leaps > 4096 ||
        ret_header->is_ut > TYPES_MAX || ret_header->is_standard > TYPES_MAX)
        return zone_refuse("has numbers that cannot be", err);
    return 0;
}

static size_t zone_body_size(const struct zone_header *header, size_t time_size)
{
    return header->times * (time_size + 1) + header->types * 6 + header->letters +
           header->leaps * (time_size + 4) + header->is_standard + header->is_ut;
}

static int zone_read_body(struct time_zone *zone, const struct zone_header *header,
                          const char *body, struct error *err)
{
    const char *indexes = body + (size_t) header->times * 8;
    const char *types = indexes + header->times;

    zone->times = mem_alloc_array(header->times + 1, sizeof(*zone->times));
    zone->offsets = mem_alloc_array(header->times + 1, sizeof(*zone->offsets));
    for (size_t i = 0; i < header->types; i++) {
        int32_t offset = (int32_t) zone_get32(types + i * 6);

        if (offset < -OFFSET_MAX || offset > OFFSET_MAX)
            return zone_refuse("has a time of no place", err);
    }
    zone->first = (int32_t) zone_get32(types);
    for (size_t i = 0; i < header->times; i++) {
        const char *at = body + i * 8;
        unsigned char type = (unsigned char) indexes[i];

        if (type >= header->types)
            return zone_refuse("names a type that is not there", err);
        zone->times[i] =
            (int64_t) ((uint64_t) zone_get32(at) << 32 | (uint64_t) zone_get32(at + 4));
        zone->offsets[i] = (int32_t) zone_get32(types + (size_t) type * 6);
        if (i && zone->times[i] <= zone->times[i - 1])
            return zone_refuse("is not in order", err);
    }
    zone->count = header->times;
    return 0;
}

static int zone_read_file(struct time_zone *zone, const char *bytes, size_t length,
                          struct error *err)
{
    struct zone_header header;
    struct zone_text footer;
    size_t skip;

    if (zone_read_header(bytes, length, &header, err) < 0)
        return -1;
    if (header.version < '2')
        return zone_refuse("is of a version that has no end", err);
    skip = HEADER_SIZE + zone_body_size(&header, 4);
    if (skip >= length || zone_read_header(bytes + skip, length - skip, &header, err) < 0)
        return zone_refuse("is cut short", err);
    skip += HEADER_SIZE;
    if (skip + zone_body_size(&header, 8) + 2 > length)
        return zone_refuse("is cut short", err);
    if (zone_read_body(zone, &header, bytes + skip, err) < 0)
        return -1;
    skip += zone_body_size(&header, 8);
    if (bytes[skip] != '\n' || bytes[length - 1] != '\n')
        return zone_refuse("has no footer", err);
    footer = (struct zone_text){bytes + skip + 1, bytes + length - 1};
    if (footer.at < footer.end && zone_read_footer(zone, footer) < 0)
        return zone_refuse("has a footer that says nothing", err);
    return 0;
}

struct time_zone *time_zone_read(const char *bytes, size_t length, struct error *err)
{
    struct time_zone *zone = mem_alloc(sizeof(*zone));

    if (!bytes)
        return zone;
    if (length <= TIME_ZONE_FILE_MAX && zone_read_file(zone, bytes, length, err) == 0)
        return zone;
    if (length > TIME_ZONE_FILE_MAX)
        (void) zone_refuse("is too large", err);
    time_zone_free(zone);
    return NULL;
}

void time_zone_free(struct time_zone *zone)
{
    if (!zone)
        return;
    free(zone->times);
    free(zone->offsets);
    free(zone);
}

int32_t time_zone_offset(const struct time_zone *zone, int64_t utc)
{
    size_t low = 0, high = zone->count;

    if (zone->has_footer && (!zone->count || utc >= zone->times[zone->count - 1]))
        return zone_footer_offset(zone, utc);
    while (low < high) {
        size_t middle = (low + high) / 2;

        if (zone->times[middle] <= utc)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? zone->offsets[low - 1] : zone->first;
}

bool time_zone_name_is_valid(const char *name)
{
    size_t length = strlen(name);

    if (!length || length > TIME_ZONE_NAME_MAX || name[0] == '/' || name[0] == '.')
        return false;
    for (size_t i = 0; i < length; i++) {
        char c = name[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

        if (!is_letter && !(c >= '0' && c <= '9') && !strchr("_+-/", c))
            return false;
        if (c == '/' && (name[i + 1] == '/' || !name[i + 1]))
            return false;
    }
    return true;
}
