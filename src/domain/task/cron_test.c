/* When cron expressions say, in zones of several kinds. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "domain/task/cron.h"

/* A file of version 2 with no transitions and this footer: as slim ones have them for the future. */
static struct time_zone *zone_of(const char *footer)
{
    static const unsigned char name[10] = {[6] = 'U', 'T', 'C'};
    static const unsigned char header[44] = "TZif2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                                            "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\4";
    char bytes[512];
    size_t length = 0;
    struct error err = ERROR_INIT;
    struct time_zone *zone;

    for (int i = 0; i < 2; i++) {
        memcpy(bytes + length, header, sizeof(header));
        length += 44;
        memcpy(bytes + length, name, sizeof(name));
        length += 10;
    }
    length += (size_t) snprintf(bytes + length, sizeof(bytes) - length, "\n%s\n", footer);
    zone = time_zone_read(bytes, length, &err);
    if (!zone)
        fail_msg("%s", err.message);
    return zone;
}

static int64_t utc(const char *text)
{
    struct tm tm = {.tm_isdst = 0};

    assert_non_null(strptime(text, "%Y-%m-%d %H:%M", &tm));
    return timegm(&tm);
}

static void expect_next(const char *cron_text, const char *footer, const char *after,
                        const char *expected)
{
    struct time_zone *zone = footer ? zone_of(footer) : time_zone_read(NULL, 0, NULL);
    struct error err = ERROR_INIT;
    struct cron cron;
    int64_t next;
    char shown[32];
    time_t time;
    struct tm tm;

    if (cron_parse(cron_text, &cron, &err) < 0)
        fail_msg("%s: %s", cron_text, err.message);
    next = cron_next(&cron, zone, utc(after));
    time = next;
    strftime(shown, sizeof(shown), "%Y-%m-%d %H:%M", gmtime_r(&time, &tm));
    if (strcmp(next < 0 ? "never" : shown, expected) != 0)
        fail_msg("'%s' after %s is %s, and not %s", cron_text, after, next < 0 ? "never" : shown,
                 expected);
    time_zone_free(zone);
}

static void expressions_say_when(void **state)
{
    (void) state;
    expect_next("* * * * *", NULL, "2026-11-19 10:00", "2026-11-19 10:01");
    expect_next("*/15 * * * *", NULL, "2026-11-19 10:01", "2026-11-19 10:15");
    expect_next("0 6 * * mon-fri", NULL, "2026-11-20 06:00", "2026-11-23 06:00");
    expect_next("30 8-18/2 * * *", NULL, "2026-11-19 08:30", "2026-11-19 10:30");
    expect_next("5/20 * * * *", NULL, "2026-11-19 10:26", "2026-11-19 10:45");
    expect_next("0 0 1 jan *", NULL, "2026-11-19 10:00", "2027-01-01 00:00");
    expect_next("0 0 29 2 *", NULL, "2026-11-19 10:00", "2028-02-29 00:00");
    expect_next("0 0 31 * *", NULL, "2026-11-30 10:00", "2026-12-31 00:00");
    expect_next("0 0 13 * fri", NULL, "2026-11-19 10:00", "2026-11-20 00:00");
    expect_next("0 0 13 * 5", NULL, "2026-12-11 10:00", "2026-12-13 00:00");
    expect_next("0 12 * * 7", NULL, "2026-11-19 10:00", "2026-11-22 12:00");
    expect_next("@daily", NULL, "2026-11-19 10:00", "2026-11-20 00:00");
    expect_next("0 0 30 2 *", NULL, "2026-11-19 10:00", "never");
}

static void local_times_are_those_of_the_zone(void **state)
{
    static const char *const berlin = "CET-1CEST,M3.5.0,M10.5.0/3";

    (void) state;
    expect_next("0 6 * * *", berlin, "2026-11-19 10:00", "2026-11-20 05:00");
    expect_next("0 6 * * *", berlin, "2026-07-01 10:00", "2026-07-02 04:00");
    expect_next("0 6 * * *", "<+0545>-5:45", "2026-11-19 10:00", "2026-11-20 00:15");
    expect_next("0 6 * * *", "NZST-12NZDT,M9.5.0,M4.1.0/3", "2026-12-31 20:00", "2027-01-01 17:00");
    /* 2026-03-29 02:00 becomes 03:00; what is jumped over happens then, and only once. */
    expect_next("30 2 * * *", berlin, "2026-03-28 12:00", "2026-03-29 01:00");
    expect_next("30 2 * * *", berlin, "2026-03-29 01:00", "2026-03-30 00:30");
    expect_next("*/30 * * * *", berlin, "2026-03-29 00:30", "2026-03-29 01:00");
    /* 2026-10-25 03:00 becomes 02:00; what comes twice happens once. */
    expect_next("30 2 * * *", berlin, "2026-10-24 12:00", "2026-10-25 00:30");
    expect_next("30 2 * * *", berlin, "2026-10-25 00:30", "2026-10-26 01:30");
    expect_next("*/30 * * * *", berlin, "2026-10-25 00:30", "2026-10-25 01:00");
    expect_next("0 0 * * *", berlin, "2026-10-25 10:00", "2026-10-25 23:00");
    expect_next("0 0 * * *", berlin, "2026-03-29 10:00", "2026-03-29 22:00");
}

/* Against libc, where the system has files: every three hours of thirty years. */
static void offsets_are_those_of_libc(void **state)
{
    static const char *const names[] = {"Europe/Berlin", "America/New_York", "Australia/Lord_Howe",
                                        "Asia/Kathmandu", "America/Sao_Paulo"};
    char path[128], bytes[TIME_ZONE_FILE_MAX];
    int found = 0;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        struct error err = ERROR_INIT;
        struct time_zone *zone;
        size_t length;
        FILE *file;

        (void) snprintf(path, sizeof(path), "/usr/share/zoneinfo/%s", names[i]);
        file = fopen(path, "re");
        if (!file)
            continue;
        length = fread(bytes, 1, sizeof(bytes), file);
        (void) fclose(file);
        zone = time_zone_read(bytes, length, &err);
        if (!zone)
            fail_msg("%s: %s", names[i], err.message);
        assert_int_equal(setenv("TZ", names[i], 1), 0);
        tzset();
        for (time_t at = 1262304000; at < 2524608000; at += 10800) {
            struct tm tm;

            (void) localtime_r(&at, &tm);
            if (time_zone_offset(zone, at) != tm.tm_gmtoff)
                fail_msg("%s at %lld", names[i], (long long) at);
        }
        time_zone_free(zone);
        found++;
    }
    if (!found)
        print_message("# skip: no files of time zones here\n");
}

static void what_is_wrong_is_said(void **state)
{
    static const char *const texts[] = {
        "",           "* * * *",    "* * * * * *", "60 * * * *",  "* 24 * * *",  "* * 0 * *",
        "* * 32 * *", "* * * 13 *", "* * * * 8",   "5-1 * * * *", "*/0 * * * *", "1,,2 * * * *",
        "a * * * *",  "1- * * * *", "@never",      "* * * foo *", "1.5 * * * *", "-1 * * * *",
    };
    struct cron cron;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        struct error err = ERROR_INIT;

        if (cron_parse(texts[i], &cron, &err) == 0)
            fail_msg("'%s' was read", texts[i]);
        assert_int_equal(err.code, ERR_INVALID);
        assert_true(*err.message != '\0');
    }
}

static void names_of_zones_lead_nowhere_else(void **state)
{
    (void) state;
    assert_true(time_zone_name_is_valid("Europe/Berlin"));
    assert_true(time_zone_name_is_valid("Etc/GMT+3"));
    assert_false(time_zone_name_is_valid("../../etc/passwd"));
    assert_false(time_zone_name_is_valid("/etc/localtime"));
    assert_false(time_zone_name_is_valid("Europe//Berlin"));
    assert_false(time_zone_name_is_valid("Europe/"));
    assert_false(time_zone_name_is_valid(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expressions_say_when),
        cmocka_unit_test(local_times_are_those_of_the_zone),
        cmocka_unit_test(offsets_are_those_of_libc),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(names_of_zones_lead_nowhere_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
