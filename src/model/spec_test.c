#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "model/spec.h"
#include "model/spec_testing.h"
/* After the headers it needs. */
#include <cmocka.h>

static void expect_refused(const struct sandbox_spec *spec, const char *field)
{
    struct error err = ERROR_INIT;

    assert_int_equal(sandbox_spec_check(spec, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    if (!strstr(err.message, field))
        fail_msg("'%s' does not name %s", err.message, field);
}

static void expect_fine(const struct sandbox_spec *spec)
{
    struct error err = ERROR_INIT;

    if (sandbox_spec_check(spec, &err) < 0)
        fail_msg("%s", err.message);
}

static char *letters(size_t count)
{
    char *text = mem_alloc(count + 1);

    memset(text, 'a', count);
    return text;
}

static void an_empty_spec_is_fine(void **state)
{
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;

    (void) state;
    expect_fine(&spec);
}

static void names_are_bounded_and_on_one_line(void **state)
{
    static const char *const wrong[] = {"", "two\nlines", "tab\t", "\x7f", "\xff\xfe"};
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        spec.name = (char *) wrong[i];
        expect_refused(&spec, "name");
    }
    spec.name = (char *) "Größe 10: mein „Projekt“";
    expect_fine(&spec);
    spec.name = letters(SANDBOX_NAME_MAX);
    expect_fine(&spec);
    free(spec.name);
    spec.name = letters(SANDBOX_NAME_MAX + 1);
    expect_refused(&spec, "name");
    free(spec.name);
}

static void a_folder_is_a_whole_path(void **state)
{
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;

    (void) state;
    spec.folder = (char *) "workspace";
    expect_refused(&spec, "folder");
    spec.folder = (char *) "/workspace/repo";
    expect_fine(&spec);
}

static void variables_have_names_of_variables(void **state)
{
    static const char *const wrong[] = {"", "1A", "A-B", "A B", "A=B", "Ä"};
    (void) state;

    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        AUTO(sandbox_spec) struct sandbox_spec spec = SANDBOX_SPEC_INIT;

        sandbox_pairs_set(&spec.environment, "FINE_1", "x");
        sandbox_pairs_set(&spec.environment, wrong[i], "x");
        expect_refused(&spec, "env");
    }
}

static void values_of_variables_are_bounded_text(void **state)
{
    AUTO(sandbox_spec) struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    AUTO(free) char *longest = letters(SANDBOX_TEXT_MAX);
    AUTO(free) char *longer = letters(SANDBOX_TEXT_MAX + 1);

    (void) state;
    sandbox_pairs_set(&spec.environment, "A", longest);
    expect_fine(&spec);
    sandbox_pairs_set(&spec.environment, "A", longer);
    expect_refused(&spec, "'A'");
    sandbox_pairs_set(&spec.environment, "A", "\xff");
    expect_refused(&spec, "'A'");
    sandbox_pairs_set(&spec.environment, "A", "line\nline");
    expect_fine(&spec);
}

static void there_are_only_so_many_variables_and_labels(void **state)
{
    AUTO(sandbox_spec) struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    char name[32];

    (void) state;
    for (int i = 0; i < SANDBOX_VARIABLES_MAX; i++) {
        (void) snprintf(name, sizeof(name), "V%d", i);
        sandbox_pairs_set(&spec.environment, name, "x");
    }
    for (int i = 0; i < SANDBOX_LABELS_MAX; i++) {
        (void) snprintf(name, sizeof(name), "l%d", i);
        sandbox_pairs_set(&spec.labels, name, "x");
    }
    expect_fine(&spec);
    sandbox_pairs_set(&spec.labels, "more", "x");
    expect_refused(&spec, "labels");
    sandbox_pairs_remove(&spec.labels, "l7");
    expect_fine(&spec);
    sandbox_pairs_set(&spec.environment, "MORE", "x");
    expect_refused(&spec, "env");
}

static void labels_are_short_words(void **state)
{
    static const char *const wrong[] = {"", ".a", "a b", "a=b", "-x"};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        AUTO(sandbox_spec) struct sandbox_spec spec = SANDBOX_SPEC_INIT;

        sandbox_pairs_set(&spec.labels, wrong[i], "x");
        expect_refused(&spec, "labels");
    }
    for (int i = 0; i < 2; i++) {
        AUTO(sandbox_spec) struct sandbox_spec spec = SANDBOX_SPEC_INIT;

        sandbox_pairs_set(&spec.labels, "example.org/team-1_x", i ? "two\nlines" : "blue");
        if (i)
            expect_refused(&spec, "labels");
        else
            expect_fine(&spec);
    }
}

static void rules_limits_and_times_stay_within_measure(void **state)
{
    struct network_rule rule = {.to.bits = 33, .ports.last = 1};
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;

    (void) state;
    spec.rules = (struct sandbox_rules){.items = &rule, .count = 1};
    expect_refused(&spec, "rules[0]");
    rule = (struct network_rule){.to.bits = 8, .ports.first = 2, .ports.last = 1};
    expect_refused(&spec, "rules[0]");
    rule.ports.last = 2;
    expect_fine(&spec);
    spec.limits.memory_bytes = UINT64_MAX;
    expect_refused(&spec, "limits");
    spec.limits.memory_bytes = 0;
    spec.limits.swap_bytes = UINT64_MAX;
    expect_fine(&spec);
    spec.limits.cpu_millis = UINT32_MAX;
    expect_refused(&spec, "limits");
    spec.limits.cpu_millis = 0;
    spec.sleep_after_ms = SANDBOX_DURATION_MAX + 1;
    expect_refused(&spec, "sleepAfter");
    spec.sleep_after_ms = SANDBOX_DURATION_MAX;
    spec.max_runtime_ms = UINT64_MAX;
    expect_refused(&spec, "maxRuntime");
    spec.max_runtime_ms = 0;
    spec.lifetime_ms = UINT64_MAX;
    expect_refused(&spec, "lifetime");
    spec.lifetime_ms = 0;
    spec.snapshot_every_ms = SANDBOX_SNAPSHOT_EVERY_MIN_MS - 1;
    expect_refused(&spec, "snapshotEvery");
    spec.snapshot_every_ms = SANDBOX_SNAPSHOT_EVERY_MIN_MS;
    expect_fine(&spec);
    spec.snapshot_keep = SANDBOX_SNAPSHOT_KEEP_MAX + 1;
    expect_refused(&spec, "snapshotKeep");
    spec.snapshot_keep = 0;
    spec.snapshot_keep_for_ms = UINT64_MAX;
    expect_refused(&spec, "snapshotKeepFor");
}

static void the_whole_is_bounded_too(void **state)
{
    AUTO(sandbox_spec) struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    AUTO(free) char *longest = letters(SANDBOX_TEXT_MAX);
    char name[32];

    (void) state;
    for (int i = 0; i < 9; i++) {
        (void) snprintf(name, sizeof(name), "V%d", i);
        sandbox_pairs_set(&spec.environment, name, longest);
    }
    expect_refused(&spec, "env, labels and startup");
}

static void pairs_are_set_found_and_removed(void **state)
{
    struct sandbox_pairs pairs = {.count = 0};

    (void) state;
    assert_null(sandbox_pairs_get(&pairs, "a"));
    sandbox_pairs_remove(&pairs, "a");
    sandbox_pairs_set(&pairs, "a", "1");
    sandbox_pairs_set(&pairs, "b", "2");
    sandbox_pairs_set(&pairs, "c", "3");
    sandbox_pairs_set(&pairs, "b", "two");
    assert_int_equal(pairs.count, 3);
    assert_string_equal(sandbox_pairs_get(&pairs, "b"), "two");
    sandbox_pairs_remove(&pairs, "a");
    assert_null(sandbox_pairs_get(&pairs, "a"));
    assert_string_equal(pairs.items[0].name, "b");
    assert_string_equal(pairs.items[1].name, "c");
    sandbox_pairs_remove(&pairs, "c");
    sandbox_pairs_remove(&pairs, "b");
    assert_int_equal(pairs.count, 0);
    sandbox_pairs_done(&pairs);
}

/* --- copies and changes ---------------------------------------------------------------------- */

static void a_copy_is_the_same_and_shares_nothing(void **state)
{
    uint64_t seed = 4;

    (void) state;
    for (int i = 0; i < 100; i++) {
        AUTO(sandbox_spec) struct sandbox_spec spec = spec_random(&seed, 5);
        AUTO(sandbox_spec) struct sandbox_spec copy = sandbox_spec_copy(&spec);

        assert_true(sandbox_spec_equal(&spec, &copy));
        sandbox_spec_done(&spec);
        sandbox_pairs_set(&copy.labels, "more", "of it");
        sandbox_texts_add(&copy.startup, "more");
    }
}

static bool field_is_same(size_t index, const struct sandbox_spec *a, const struct sandbox_spec *b)
{
    return spec_field_equal(&spec_fields[index], a, b);
}

static void every_field_counts(void **state)
{
    uint64_t seed = 5;

    (void) state;
    for (size_t i = 0; i < SPEC_FIELD_COUNT; i++) {
        AUTO(sandbox_spec) struct sandbox_spec nothing = SANDBOX_SPEC_INIT, spec = nothing;

        spec_random_field(&seed, &spec_fields[i], (char *) &spec + spec_fields[i].offset);
        assert_false(sandbox_spec_equal(&nothing, &spec));
        for (size_t j = 0; j < SPEC_FIELD_COUNT; j++)
            assert_int_equal(field_is_same(j, &nothing, &spec), i != j);
    }
}

static void a_change_changes_what_it_names_and_nothing_else(void **state)
{
    uint64_t seed = 6;

    (void) state;
    for (size_t i = 0; i < 20 * SPEC_FIELD_COUNT; i++) {
        size_t changed = i % SPEC_FIELD_COUNT;
        enum spec_type type = spec_fields[changed].type;
        AUTO(sandbox_spec) struct sandbox_spec before = spec_random(&seed, 5);
        AUTO(sandbox_spec) struct sandbox_spec after = sandbox_spec_copy(&before);
        AUTO(sandbox_change)
        struct sandbox_change change = {.fields = 1U << changed, .spec = spec_random(&seed, 6)};

        sandbox_spec_apply(&after, &change);
        for (size_t j = 0; j < SPEC_FIELD_COUNT; j++)
            if (j != changed)
                assert_true(field_is_same(j, &before, &after));
        if (type != SPEC_LIMITS && type != SPEC_VARIABLES && type != SPEC_LABELS &&
            type != SPEC_BINDS)
            assert_true(field_is_same(changed, &change.spec, &after));
    }
}

static void pairs_and_limits_are_merged(void **state)
{
    AUTO(sandbox_spec) struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    AUTO(sandbox_change)
    struct sandbox_change change = {.fields = SPEC_BIT(labels) | SPEC_BIT(limits)};

    (void) state;
    sandbox_pairs_set(&spec.labels, "a", "1");
    sandbox_pairs_set(&spec.labels, "b", "2");
    sandbox_pairs_set(&spec.environment, "A", "1");
    spec.limits = (struct limits){.memory_bytes = 1, .files = 2};
    sandbox_pairs_set(&change.spec.labels, "a", NULL);
    sandbox_pairs_set(&change.spec.labels, "b", "two");
    sandbox_pairs_set(&change.spec.labels, "c", "3");
    sandbox_pairs_set(&change.spec.environment, "A", "not named in fields");
    change.spec.limits = (struct limits){.pids = 7, .memory_bytes = 8};
    sandbox_spec_apply(&spec, &change);
    assert_int_equal(spec.labels.count, 2);
    assert_string_equal(sandbox_pairs_get(&spec.labels, "b"), "two");
    assert_string_equal(sandbox_pairs_get(&spec.labels, "c"), "3");
    assert_string_equal(sandbox_pairs_get(&spec.environment, "A"), "1");
    assert_int_equal(spec.limits.memory_bytes, 8);
    assert_int_equal(spec.limits.pids, 7);
    assert_int_equal(spec.limits.files, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_spec_is_fine),
        cmocka_unit_test(names_are_bounded_and_on_one_line),
        cmocka_unit_test(a_folder_is_a_whole_path),
        cmocka_unit_test(variables_have_names_of_variables),
        cmocka_unit_test(values_of_variables_are_bounded_text),
        cmocka_unit_test(there_are_only_so_many_variables_and_labels),
        cmocka_unit_test(labels_are_short_words),
        cmocka_unit_test(rules_limits_and_times_stay_within_measure),
        cmocka_unit_test(the_whole_is_bounded_too),
        cmocka_unit_test(pairs_are_set_found_and_removed),
        cmocka_unit_test(a_copy_is_the_same_and_shares_nothing),
        cmocka_unit_test(every_field_counts),
        cmocka_unit_test(a_change_changes_what_it_names_and_nothing_else),
        cmocka_unit_test(pairs_and_limits_are_merged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
