#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/verb/verb_spec.h"
#include "model/spec_json.h"
/* After the headers it needs. */
#include <cmocka.h>

#define WORDS_MAX 32

static const struct verb_option spec_options[] = {
    VERB_SPEC_OPTIONS{NULL, 0, NULL, NULL, false},
};
static const struct verb_option change_options[] = {
    VERB_CHANGE_OPTIONS{NULL, 0, NULL, NULL, false},
};

static int run_nothing(struct verb_call *call)
{
    (void) call;
    return 0;
}

static const struct verb verb_make = {
    .name = "make", .summary = "", .arguments = "", .options = spec_options, .run = run_nothing};
static const struct verb verb_change = {.name = "change",
                                        .summary = "",
                                        .arguments = "",
                                        .options = change_options,
                                        .run = run_nothing};

/* The body that the words of a line make, or NULL with an error. */
static json_t *body_of(const struct verb *verb, const char *line, struct error *err)
{
    AUTO(free) char *copy = strdup(line);
    struct verb_call *call = calloc(1, sizeof(*call));
    char *words[WORDS_MAX], *rest = copy;
    json_t *body = json_object();
    int count = 0, r;

    while (rest && *rest && count < WORDS_MAX)
        words[count++] = strsep(&rest, " ");
    r = verb_read(verb, count, words, call, err);
    if (r == 0)
        r = verb == &verb_make ? verb_add_spec(call, body, err) : verb_add_changes(call, body, err);
    verb_call_done(call);
    free(call);
    if (r < 0) {
        json_decref(body);
        return NULL;
    }
    return body;
}

static void expect_body(const struct verb *verb, const char *line, const char *expected)
{
    struct error err = ERROR_INIT;
    AUTO(json) json_t *body = body_of(verb, line, &err);
    AUTO(json) json_t *wanted = json_loads(expected, 0, NULL);
    AUTO(free) char *found = NULL;

    if (!body)
        fail_msg("%s", err.message);
    assert_non_null(wanted);
    found = json_dumps(body, JSON_SORT_KEYS);
    if (!json_equal(body, wanted))
        fail_msg("%s", found);
}

static void expect_error(const char *line, const char *message)
{
    struct error err = ERROR_INIT;

    assert_null(body_of(&verb_make, line, &err));
    assert_string_equal(err.message, message);
}

static void options_become_fields(void **state)
{
    (void) state;
    (void) setenv("SPEC_TEST", "ours", 1);
    expect_body(&verb_make, "", "{\"env\":{},\"labels\":{},\"limits\":{},\"binds\":{}}");
    expect_body(&verb_make,
                "--image debian -m 2G --cpus 0.5 --pids 9 --disk 1G --net nat --env A=1 -e "
                "SPEC_TEST -l team=x=y --bind-ro data:/data --keep-alive --sync",
                "{\"image\":\"debian\",\"limits\":{\"memory\":\"2G\",\"cpu\":\"0.5\",\"pids\":9,"
                "\"disk\":\"1G\"},\"network\":\"nat\",\"env\":{\"A\":\"1\",\"SPEC_TEST\":\"ours\"},"
                "\"labels\":{\"team\":\"x=y\"},\"binds\":{\"/data\":\"data\"},\"keepAlive\":true,"
                "\"sync\":true}");
    expect_body(&verb_change,
                "--sleep-after 10m --freeze-for 0 --startup one --startup two --snapshot-keep 3 "
                "--snapshot-keep-for 7d",
                "{\"env\":{},\"labels\":{},\"limits\":{},\"sleepAfter\":\"10m\","
                "\"freezeFor\":\"0\",\"startup\":[\"one\",\"two\"],\"snapshotKeep\":3,"
                "\"snapshotKeepFor\":\"7d\"}");
}

static void what_is_wrong_is_said(void **state)
{
    (void) state;
    expect_error("--pids 0", "--pids 0: a number from 1 to 10000000");
    expect_error("--snapshot-keep 10001", "--snapshot-keep 10001: a number from 1 to 10000");
    expect_error("--label team", "--label team: write NAME=TEXT");
    expect_error("--bind-ro data", "--bind-ro data: write NAME:PLACE");
    expect_error("--bind-ro data:", "--bind-ro data:: write NAME:PLACE");
}

/* What the command line sends is what the API takes. */
static void every_option_is_understood(void **state)
{
    size_t count = 0;

    (void) state;
    for (size_t i = 0; i < SPEC_FIELD_COUNT; i++) {
        static const char *const values[SPEC_TYPE_COUNT] = {
            [SPEC_TEXT] = " host",
            [SPEC_VARIABLES] = " A=1",
            [SPEC_LABELS] = " a=1",
            [SPEC_BINDS] = " a:/b",
            [SPEC_COMMANDS] = " run",
            [SPEC_DURATION] = " 60s",
            [SPEC_TIER] = " 60s",
            [SPEC_COUNT] = " 1",
            [SPEC_FLAG] = "",
            [SPEC_NETWORK] = " nat",
            [SPEC_POLICY] = " {\"default\":\"allow\"}",
        };
        const struct spec_field *field = &spec_fields[i];
        AUTO(sandbox_spec) struct sandbox_spec spec = SANDBOX_SPEC_INIT, nothing = spec;
        AUTO(json) json_t *body = NULL;
        struct error err = ERROR_INIT;
        struct json_place root;
        char line[128];

        if (!field->option)
            continue;
        assert_non_null(values[field->type]);
        (void) snprintf(line, sizeof(line), "--%s%s", field->option, values[field->type]);
        body = body_of(&verb_make, line, &err);
        assert_non_null(body);
        assert_int_equal(json_root_object(body, &root, &err), 0);
        assert_int_equal(sandbox_spec_read_api(&root, SPEC_CREATE, NULL, &spec, NULL, &err), 0);
        assert_false(spec_field_equal(field, &spec, &nothing));
        assert_int_equal(sandbox_spec_check(&spec, &err), 0);
        count++;
    }
    assert_true(count >= 17);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_become_fields),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(every_option_is_understood),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
