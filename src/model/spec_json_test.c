#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "base/rounds_testing.h"
#include "model/spec_json.h"
#include "model/spec_rows_testing.h"
#include "model/spec_testing.h"
/* After the headers it needs. */
#include <cmocka.h>

/* --- there and back -------------------------------------------------------------------------- */

static void a_spec_comes_back_from_its_row(void **state)
{
    uint64_t seed = rounds_seed(3), rounds = rounds_of(500, 20000);

    (void) state;
    for (uint64_t i = 0; i < rounds; i++) {
        AUTO(sandbox_spec) struct sandbox_spec spec = spec_random(&seed, 4);
        AUTO(sandbox_spec) struct sandbox_spec back = SANDBOX_SPEC_INIT;
        AUTO(text) struct text json = TEXT_INIT(SANDBOX_SPEC_MAX);
        struct error err = ERROR_INIT;

        sandbox_spec_write(&spec, &json);
        assert_false(json.overflowed);
        assert_int_equal(json.length, sandbox_spec_size(&spec));
        if (sandbox_spec_read(json.data, json.length, &back, &err) < 0)
            fail_msg("%s: %s", err.message, json.data);
        assert_null(back.name); /* it has a column of its own */
        back.name = mem_copy_text(spec.name ? spec.name : "");
        if (!spec.name)
            spec.name = mem_copy_text("");
        assert_true(sandbox_spec_equal(&spec, &back));
    }
}

/* What the API shows of a spec, without what nobody can say. */
static json_t *shown(const struct sandbox_spec *spec, bool shows_secrets)
{
    AUTO(text) struct text text = TEXT_INIT(16 * SANDBOX_SPEC_MAX);
    struct json_writer json;
    json_t *value;

    json_writer_init_text(&json, &text);
    json_begin_object(&json);
    sandbox_spec_write_api(&json, spec, shows_secrets);
    json_end_object(&json);
    assert_int_equal(json_writer_finish(&json), 0);
    value = json_read(text.data, text.length, NULL, NULL);
    assert_non_null(value);
    return value;
}

static void a_spec_comes_back_from_what_the_api_shows(void **state)
{
    uint64_t seed = rounds_seed(4), rounds = rounds_of(500, 20000);

    (void) state;
    for (uint64_t i = 0; i < rounds; i++) {
        AUTO(sandbox_spec) struct sandbox_spec spec = spec_random(&seed, 4);
        AUTO(sandbox_spec) struct sandbox_spec back = SANDBOX_SPEC_INIT;
        AUTO(json) json_t *json = shown(&spec, true);
        struct error err = ERROR_INIT;
        struct json_place root;

        assert_int_equal(json_object_del(json, "kind"), 0);
        assert_int_equal(json_root_object(json, &root, &err), 0);
        if (!spec.folder)
            spec.folder = mem_copy_text("/workspace");
        free(spec.name);
        spec.name = NULL;
        free(spec.kind);
        spec.kind = NULL;
        if (!spec.image)
            assert_int_equal(json_object_del(json, "image"), 0);
        if (sandbox_spec_read_api(&root, SPEC_CREATE, NULL, &back, NULL, &err) < 0)
            fail_msg("%s", err.message);
        assert_true(sandbox_spec_equal(&spec, &back));
        assert_int_equal(sandbox_spec_check(&back, &err), 0);
    }
}

static void secrets_are_shown_when_asked_for(void **state)
{
    AUTO(sandbox_spec) struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    AUTO(json) json_t *all = NULL, *some = NULL;

    (void) state;
    sandbox_pairs_set(&spec.environment, "TOKEN", "secret");
    sandbox_texts_add(&spec.startup, "run --password x");
    all = shown(&spec, true);
    some = shown(&spec, false);
    assert_string_equal(json_string_value(json_object_get(json_object_get(all, "env"), "TOKEN")),
                        "secret");
    assert_true(json_is_null(json_object_get(json_object_get(some, "env"), "TOKEN")));
    assert_int_equal(json_array_size(json_object_get(all, "startup")), 1);
    assert_null(json_object_get(some, "startup"));
}

/* --- rows of before -------------------------------------------------------------------------- */

static void rows_of_before_mean_what_they_meant(void **state)
{
    (void) state;
    assert_true(ARRAY_COUNT(golden_specs) >= 20);
    for (size_t i = 0; i < ARRAY_COUNT(golden_specs); i++) {
        AUTO(sandbox_spec) struct sandbox_spec spec = SANDBOX_SPEC_INIT;
        AUTO(json) json_t *now = NULL, *then = NULL;
        AUTO(text) struct text again = TEXT_INIT(SANDBOX_SPEC_MAX);
        AUTO(sandbox_spec) struct sandbox_spec back = SANDBOX_SPEC_INIT;
        const char *row = golden_specs[i].row;
        struct error err = ERROR_INIT;

        if (sandbox_spec_read(row, strlen(row), &spec, &err) < 0)
            fail_msg("row %zu: %s", i, err.message);
        now = shown(&spec, true);
        then = json_loads(golden_specs[i].shown, 0, NULL);
        if (!json_equal(now, then))
            fail_msg("row %zu now means %s", i, json_dumps(now, 0));
        sandbox_spec_write(&spec, &again);
        assert_int_equal(sandbox_spec_read(again.data, again.length, &back, &err), 0);
        assert_true(sandbox_spec_equal(&spec, &back));
    }
}

static void fields_of_a_newer_daemon_are_ignored(void **state)
{
    AUTO(sandbox_spec) struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    const char *json = "{\"colour\":\"red\",\"image\":\"host\",\"future\":{\"a\":[1]}}";
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(sandbox_spec_read(json, strlen(json), &spec, &err), 0);
    assert_string_equal(spec.image, "host");
    assert_int_equal(spec.sleep_after_ms, SANDBOX_SLEEP_AFTER_DEFAULT_MS);
    assert_false(spec.network.is_set);
}

static void what_is_no_spec_is_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        "[]",
        "{",
        "{\"image\":1}",
        "{\"environment\":[]}",
        "{\"environment\":{\"A\":1}}",
        "{\"limits\":{\"memory\":-1}}",
        "{\"limits\":{\"pids\":4294967296}}",
        "{\"network\":\"host\"}",
        "{\"rules\":[{}]}",
        "{\"rules\":[1]}",
        ("{\"rules\":[{\"allow\":true,\"address\":0,\"bits\":33,\"protocol\":0,\"first\":0,"
         "\"last\":0}]}"),
        "{\"sleepAfterMs\":-1}",
        "{\"keepAlive\":1}",
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        struct sandbox_spec spec = SANDBOX_SPEC_INIT;
        struct error err = ERROR_INIT;

        assert_int_equal(sandbox_spec_read(wrong[i], strlen(wrong[i]), &spec, &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
        assert_null(spec.image);
    }
}

/* --- requests -------------------------------------------------------------------------------- */

static int read_text(const char *text, enum spec_where where, struct sandbox_change *change,
                     struct error *err)
{
    AUTO(json) json_t *json = json_read(text, strlen(text), NULL, err);
    struct json_place root;

    assert_non_null(json);
    assert_int_equal(json_root_object(json, &root, err), 0);
    return sandbox_spec_read_api(&root, where, NULL, &change->spec, &change->fields, err);
}

static void what_cannot_be_said_there_is_refused(void **state)
{
    static const struct {
        const char *text, *message;
        unsigned int where;
    } cases[] = {
        {"{\"colour\":1}", "unknown field 'colour'", 7},
        {"{\"kind\":\"native\"}", "unknown field 'kind'", 7},
        {"{\"image\":\"host\"}", "unknown field 'image'", SPEC_CHANGE},
        {"{\"binds\":{}}", "unknown field 'binds'", SPEC_CHANGE},
        {"{\"name\":\"a\"}", "unknown field 'name'", SPEC_TEMPLATE},
        {"{\"limits\":{\"x\":1}}", "unknown field 'limits.x'", 7},
        {"{\"name\":\"A\"}",
         "field 'name' must be 1 to 63 of a-z, 0-9, '.', '_' and '-', beginning with a letter or "
         "digit, and no id",
         SPEC_CREATE | SPEC_CHANGE},
        {"{\"env\":{\"A\":1}}", "field 'env.A' must be a string, not a number", 7},
        {"{\"env\":{\"A\":null}}", "field 'env.A' must be a string, not null",
         SPEC_CREATE | SPEC_TEMPLATE},
        {"{\"snapshotKeep\":10001}", "field 'snapshotKeep' must be from 0 to 10000", 7},
        {"{\"network\":\"host\"}", "field 'network' must be none or nat",
         SPEC_CREATE | SPEC_TEMPLATE},
        {"{\"rules\":[{\"allow\":true,\"to\":\"x\"}]}",
         "field 'rules[0].to' must be an IPv4 address or a range like 10.0.0.0/8",
         SPEC_CREATE | SPEC_TEMPLATE},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        for (enum spec_where where = SPEC_CREATE; where <= SPEC_CHANGE; where *= 2) {
            AUTO(sandbox_change) struct sandbox_change change = {.spec = SANDBOX_SPEC_INIT};
            struct error err = ERROR_INIT;

            if (!(cases[i].where & where))
                continue;
            assert_int_equal(read_text(cases[i].text, where, &change, &err), -1);
            assert_int_equal(err.code, ERR_INVALID);
            assert_string_equal(err.message, cases[i].message);
        }
    }
}

static void a_change_knows_what_was_said(void **state)
{
    AUTO(sandbox_change) struct sandbox_change change = {.spec = SANDBOX_SPEC_INIT};
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(read_text("{\"env\":{\"A\":null,\"B\":\"1\"},\"freezeFor\":null,"
                               "\"offloadAfter\":0,\"sleepAfter\":null,\"keepAlive\":false}",
                               SPEC_CHANGE, &change, &err),
                     0);
    assert_int_equal(change.fields, SPEC_BIT(environment) | SPEC_BIT(freeze_for_ms) |
                                        SPEC_BIT(offload_after_ms) | SPEC_BIT(keep_alive));
    assert_int_equal(change.spec.environment.count, 2);
    assert_null(change.spec.environment.items[0].value);
    assert_int_equal(change.spec.freeze_for_ms, 0); /* the daemon's default again */
    assert_true(change.spec.offload_after_ms == SANDBOX_NEVER);
}

/* As a create goes over its template. */
static void what_is_said_goes_over_what_is_there(void **state)
{
    AUTO(sandbox_change) struct sandbox_change change = {.spec = SANDBOX_SPEC_INIT};
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(read_text("{\"env\":{\"A\":\"1\",\"B\":\"1\"},\"limits\":{\"memory\":1,"
                               "\"pids\":2},\"startup\":[\"a\",\"b\"],\"rules\":[{\"allow\":true}]"
                               ",\"image\":\"one\"}",
                               SPEC_TEMPLATE, &change, &err),
                     0);
    assert_int_equal(read_text("{\"env\":{\"B\":\"2\"},\"limits\":{\"pids\":3},\"startup\":[\"c\"],"
                               "\"rules\":[],\"image\":\"two\"}",
                               SPEC_CREATE, &change, &err),
                     0);
    assert_string_equal(sandbox_pairs_get(&change.spec.environment, "A"), "1");
    assert_string_equal(sandbox_pairs_get(&change.spec.environment, "B"), "2");
    assert_int_equal(change.spec.limits.memory_bytes, 1);
    assert_int_equal(change.spec.limits.pids, 3);
    assert_int_equal(change.spec.startup.count, 1);
    assert_int_equal(change.spec.rules.count, 0);
    assert_string_equal(change.spec.image, "two");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spec_comes_back_from_its_row),
        cmocka_unit_test(a_spec_comes_back_from_what_the_api_shows),
        cmocka_unit_test(secrets_are_shown_when_asked_for),
        cmocka_unit_test(rows_of_before_mean_what_they_meant),
        cmocka_unit_test(fields_of_a_newer_daemon_are_ignored),
        cmocka_unit_test(what_is_no_spec_is_refused),
        cmocka_unit_test(what_cannot_be_said_there_is_refused),
        cmocka_unit_test(a_change_knows_what_was_said),
        cmocka_unit_test(what_is_said_goes_over_what_is_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
