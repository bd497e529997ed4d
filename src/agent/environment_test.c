#include "agent/agent_test.h"
#include "agent/environment.h"
#include "base/auto.h"

static const char *const base[] = {"A=1", "PATH=/bin", "B=2", "A=3", "AB=4", NULL};

static void a_value_is_found_by_its_whole_name(void **state)
{
    (void) state;
    assert_string_equal(environment_get(base, "A"), "1");
    assert_string_equal(environment_get(base, "AB"), "4");
    assert_null(environment_get(base, "P"));
    assert_null(environment_get(NULL, "A"));
}

static void changes_keep_places_and_append(void **state)
{
    const struct environment_change changes[] = {
        {.name = "A", .text = "x=y"}, {.name = "B", .text = NULL}, {.name = "NEW", .text = ""}};
    static const char *const expected[] = {"A=x=y", "PATH=/bin", "AB=4", "NEW=", NULL};
    const char **merged = environment_merge(base, changes, ARRAY_COUNT(changes));
    size_t i = 0;

    (void) state;
    for (; expected[i]; i++)
        assert_string_equal(merged[i], expected[i]);
    assert_null(merged[i]);
    environment_free(merged);
}

static void the_same_variable_may_be_changed_twice(void **state)
{
    const struct environment_change changes[] = {{.name = "N", .text = "1"},
                                                 {.name = "N", .text = "2"},
                                                 {.name = "M", .text = "1"},
                                                 {.name = "M", .text = NULL}};
    const char **merged = environment_merge(NULL, changes, ARRAY_COUNT(changes));

    (void) state;
    assert_string_equal(merged[0], "N=2");
    assert_null(merged[1]);
    environment_free(merged);
}

static void names_are_those_of_a_shell(void **state)
{
    static const char *const good[] = {"A", "_", "a1", "LONG_NAME_2"};
    static const char *const bad[] = {"", "1A", "A-B", "A=B", "A B", "\xc3\xa4", "A.B"};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(good); i++)
        assert_true(environment_is_name(good[i]));
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
        assert_false(environment_is_name(bad[i]));
}

static void commands_get_defaults_and_none_of_our_settings(void **state)
{
    static const char *const own[] = {"BURROW_LOG=debug", "LANG=de_DE.UTF-8", "X=1", NULL};
    const char **made = environment_for_commands(own, "/home/somebody");

    (void) state;
    assert_null(environment_get(made, "BURROW_LOG"));
    assert_string_equal(environment_get(made, "LANG"), "de_DE.UTF-8");
    assert_string_equal(environment_get(made, "LC_ALL"), "C.UTF-8");
    assert_string_equal(environment_get(made, "HOME"), "/home/somebody");
    assert_string_equal(environment_get(made, "X"), "1");
    assert_non_null(environment_get(made, "PATH"));
    environment_free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_is_found_by_its_whole_name),
        cmocka_unit_test(changes_keep_places_and_append),
        cmocka_unit_test(the_same_variable_may_be_changed_twice),
        cmocka_unit_test(names_are_those_of_a_shell),
        cmocka_unit_test(commands_get_defaults_and_none_of_our_settings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
