#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/auto.h"
#include "domain/identity/quota.h"
#include "json/json_read.h"

static void fields_that_are_there_are_read_and_others_stay(void **state)
{
    struct quota quota = {.sandboxes = 3, .cpu_millis = 500, .disk_bytes = 7};
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(quota_read("{\"running\":5,\"memory\":\"4G\",\"disk\":1048576,"
                                "\"requestsPerMinute\":60}",
                                &quota, &err),
                     0);
    assert_int_equal(quota.sandboxes, 3);
    assert_int_equal(quota.running, 5);
    assert_int_equal(quota.memory_bytes, UINT64_C(4) << 30);
    assert_int_equal(quota.cpu_millis, 500);
    assert_int_equal(quota.disk_bytes, 1048576);
    assert_int_equal(quota.requests_per_minute, 60);
    assert_int_equal(quota_read("{}", &quota, &err), 0);
    assert_int_equal(quota.running, 5);
}

/* As an answer has it, and a request may say it again. */
static int read_api(const char *json, struct quota *quota, struct error *err)
{
    AUTO(json) json_t *value = json_read(json, strlen(json), NULL, err);
    AUTO(free) char *row = NULL;
    struct json_place root;

    if (!value || json_root_object(value, &root, err) < 0 || quota_from_api(&root, &row, err) < 0)
        return -1;
    return quota_read(row, quota, err);
}

static void what_is_written_is_read_back(void **state)
{
    struct quota quota = {.sandboxes = UINT32_MAX,
                          .running = 1,
                          .memory_bytes = INT64_MAX,
                          .cpu_millis = 1250,
                          .disk_bytes = 3,
                          .requests_per_minute = 4,
                          .snapshots = 5};
    struct quota back = {.sandboxes = 9};
    AUTO(text) struct text json = TEXT_INIT(4096);
    struct error err = ERROR_INIT;

    (void) state;
    quota_write_api(&quota, &json);
    assert_non_null(strstr(text_string(&json), "\"cpu\":1.25,"));
    assert_int_equal(read_api(text_string(&json), &back, &err), 0);
    assert_int_equal(back.sandboxes, quota.sandboxes);
    assert_int_equal(back.running, quota.running);
    assert_int_equal(back.memory_bytes, quota.memory_bytes);
    assert_int_equal(back.cpu_millis, quota.cpu_millis);
    assert_int_equal(back.disk_bytes, quota.disk_bytes);
    assert_int_equal(back.requests_per_minute, quota.requests_per_minute);
    assert_int_equal(back.snapshots, quota.snapshots);
}

static void what_is_wrong_is_refused_and_changes_nothing(void **state)
{
    static const char *const wrong[] = {
        "",
        "[]",
        "{\"running\":-1}",
        "{\"running\":4294967296}",
        "{\"running\":1.5}",
        "{\"running\":\"5\"}",
        "{\"running\":2,\"memory\":\"lots\"}",
        "{\"running\":2,\"memory\":\"-1\"}",
        "{\"running\":2,\"memory\":true}",
        "{\"running\":2,\"colour\":1}",
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        struct quota quota = {.running = 7};
        struct error err = ERROR_INIT;

        assert_int_equal(quota_read(wrong[i], &quota, &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
        assert_int_equal(quota.running, 7);
    }
}

static void cpus_are_counted_in_cpus(void **state)
{
    static const struct {
        const char *said;
        uint32_t millis;
    } rows[] = {{"{\"cpu\":1}", 1000},     {"{\"cpu\":0.5}", 500},    {"{\"cpu\":0}", 0},
                {"{\"cpu\":512}", 512000}, {"{\"cpu\":1.001}", 1001}, {"{}", 7}};
    static const char *const wrong[] = {"{\"cpu\":513}", "{\"cpu\":-1}", "{\"cpu\":\"much\"}",
                                        "{\"cpu\":2000}"};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct quota quota = {.cpu_millis = 7};
        struct error err = ERROR_INIT;

        assert_int_equal(read_api(rows[i].said, &quota, &err), 0);
        assert_int_equal(quota.cpu_millis, rows[i].millis);
    }
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        struct quota quota = {.cpu_millis = 7};
        struct error err = ERROR_INIT;

        assert_int_equal(read_api(wrong[i], &quota, &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
        assert_non_null(strstr(err.message, "counts CPUs"));
    }
}

static void rows_of_earlier_daemons_are_read_as_they_were_meant(void **state)
{
    struct quota quota = {.cpu_millis = 7};

    (void) state;
    assert_int_equal(quota_read("{\"cpu\":2000}", &quota, NULL), 0);
    assert_int_equal(quota.cpu_millis, 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_that_are_there_are_read_and_others_stay),
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(what_is_wrong_is_refused_and_changes_nothing),
        cmocka_unit_test(cpus_are_counted_in_cpus),
        cmocka_unit_test(rows_of_earlier_daemons_are_read_as_they_were_meant),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
