#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "json/json_measure.h"
/* After the headers it needs. */
#include <cmocka.h>

typedef int read_field(const struct json_place *object, const char *key, enum json_need need,
                       uint64_t maximum, uint64_t *ret_value, struct error *err);

struct sample {
    const char *value;
    int64_t expected; /* -1: refused */
};

static void check(read_field *read, const struct sample *samples, size_t count, uint64_t maximum)
{
    for (size_t i = 0; i < count; i++) {
        struct error error = ERROR_INIT;
        struct json_place root;
        char text[128];
        uint64_t got = 7;
        int r;

        (void) snprintf(text, sizeof(text), "{\"x\":%s}", samples[i].value);
        AUTO(json) json_t *json = json_read(text, strlen(text), NULL, &error);
        assert_non_null(json);
        assert_int_equal(json_root_object(json, &root, &error), 0);
        r = read(&root, "x", JSON_REQUIRED, maximum, &got, &error);
        if ((r < 0) != (samples[i].expected < 0) ||
            (r == 0 && got != (uint64_t) samples[i].expected))
            fail_msg("%s: %d, %llu", samples[i].value, r, (unsigned long long) got);
        if (r < 0) {
            assert_int_equal(error.code, ERR_INVALID);
            assert_non_null(strstr(error.message, "field 'x' must be "));
            assert_int_equal(got, 7);
        }
    }
}

static void durations_have_units_or_are_seconds(void **state)
{
    static const struct sample samples[] = {
        {"\"30s\"", 30000}, {"\"5m\"", 300000}, {"\"1h\"", 3600000},
        {"\"250ms\"", 250}, {"\"30\"", 30000},  {"30", 30000},
        {"0", 0},           {"0.25", 250},      {"1.5", 1500},
        {"3600", 3600000},  {"3601", -1},       {"\"2h\"", -1},
        {"-1", -1},         {"-0.001", -1},     {"\"\"", -1},
        {"\"5 m\"", -1},    {"true", -1},       {"[]", -1},
        {"null", -1},       {"1e300", -1},
    };

    (void) state;
    check(json_field_duration, samples, ARRAY_COUNT(samples), 3600000);
}

static void sizes_have_units_or_are_bytes(void **state)
{
    static const struct sample samples[] = {
        {"\"512M\"", 512 << 20},
        {"\"1G\"", 1 << 30},
        {"\"64k\"", 65536},
        {"4096", 4096},
        {"0", 0},
        {"1.5", -1},
        {"-1", -1},
        {"\"1GB\"", -1},
        {"\"2G\"", -1},
        {"2147483648", -1},
        {"false", -1},
    };

    (void) state;
    check(json_field_size, samples, ARRAY_COUNT(samples), 1 << 30);
}

static void shares_are_numbers_or_their_text(void **state)
{
    static const struct sample samples[] = {
        {"0.5", 500}, {"2", 2000}, {"\"1.5\"", 1500}, {"4", 4000}, {"4.001", -1}, {"\"x\"", -1},
    };

    (void) state;
    check(json_field_thousandths, samples, ARRAY_COUNT(samples), 4000);
}

static void an_optional_field_keeps_its_default(void **state)
{
    AUTO(json) json_t *json = json_read("{\"y\":null}", 10, NULL, NULL);
    struct json_place root;
    uint64_t value = 9;

    (void) state;
    assert_int_equal(json_root_object(json, &root, NULL), 0);
    assert_int_equal(json_field_size(&root, "x", JSON_OPTIONAL, 10, &value, NULL), 0);
    assert_int_equal(json_field_duration(&root, "y", JSON_OPTIONAL, 10, &value, NULL), 0);
    assert_int_equal(value, 9);
    assert_int_equal(json_field_size(&root, "y", JSON_REQUIRED, 10, &value, NULL), -1);
}

static void what_is_written_reads_back(void **state)
{
    static const uint64_t samples[] = {0, 1, 250, 1500, 600000, 86400000, 123456789};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(samples); i++) {
        AUTO(text) struct text out = TEXT_INIT(256);
        struct json_writer writer;
        struct json_place root;
        uint64_t got = 0;

        json_writer_init_text(&writer, &out);
        json_begin_object(&writer);
        json_add_thousandths(&writer, "x", samples[i]);
        json_end_object(&writer);
        assert_int_equal(json_writer_finish(&writer), 0);
        AUTO(json) json_t *json = json_read(text_string(&out), out.length, NULL, NULL);
        assert_int_equal(json_root_object(json, &root, NULL), 0);
        assert_int_equal(
            json_field_duration(&root, "x", JSON_REQUIRED, UINT64_C(1) << 40, &got, NULL), 0);
        assert_int_equal(got, samples[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_have_units_or_are_seconds),
        cmocka_unit_test(sizes_have_units_or_are_bytes),
        cmocka_unit_test(shares_are_numbers_or_their_text),
        cmocka_unit_test(an_optional_field_keeps_its_default),
        cmocka_unit_test(what_is_written_reads_back),
    };

    return cmocka_run_group_tests_name("json_measure", tests, NULL, NULL);
}
