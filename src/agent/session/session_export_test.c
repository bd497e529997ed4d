#include <string.h>

#include "agent/agent_test.h"
#include "agent/environment.h"
#include "agent/session/session_export.h"
#include "base/text.h"

static const char *const *read_text(struct pool *pool, const char *text)
{
    struct session_exports exports = {.items = NULL};

    session_exports_read(&exports, pool, text, strlen(text));
    return session_exports_environment(&exports, pool);
}

static void bash_is_read_with_all_its_quotes(void **state)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    const char *const *environment =
        read_text(&pool, "declare -x A=\"a b\"\n"
                         "declare -x B=\"\\\"\\$\\`\\\\ \\n\"\n"
                         "declare -x C=$'one\\ntwo\\t\\'\\\\\\001\\E\\303\\244'\n"
                         "declare -ix D=\"5\"\n"
                         "declare -x E\n"
                         "declare -ax F=([0]=\"x\")\n"
                         "declare -x G=\"\"\n");

    (void) state;
    assert_string_equal(environment_get(environment, "A"), "a b");
    assert_string_equal(environment_get(environment, "B"), "\"$`\\ \\n");
    assert_string_equal(environment_get(environment, "C"), "one\ntwo\t'\\\001\033\303\244");
    assert_string_equal(environment_get(environment, "D"), "5");
    assert_null(environment_get(environment, "E"));
    assert_null(environment_get(environment, "F"));
    assert_string_equal(environment_get(environment, "G"), "");
}

static void posix_shells_are_read(void **state)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    const char *const *environment =
        read_text(&pool, "export A='a\nb'\nexport B='it'\"'\"'s'\nexport C\nexport D='it'\\''s'\n");

    (void) state;
    assert_string_equal(environment_get(environment, "A"), "a\nb");
    assert_string_equal(environment_get(environment, "B"), "it's");
    assert_null(environment_get(environment, "C"));
    assert_string_equal(environment_get(environment, "D"), "it's");
}

static void other_lines_are_passed_over(void **state)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    const char *const *environment =
        read_text(&pool, "noise\ndeclare -x A-B=\"no\"\ndeclare -x A=\"yes\"\ndeclare -x Z=\"open");

    (void) state;
    assert_string_equal(environment_get(environment, "A"), "yes");
    assert_string_equal(environment_get(environment, "Z"), "open");
    assert_null(environment[2]);
}

static void nothing_is_an_empty_environment(void **state)
{
    AUTO(pool) struct pool pool = POOL_INIT;

    (void) state;
    assert_null(read_text(&pool, "")[0]);
}

static void too_many_variables_are_cut(void **state)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    AUTO(text) struct text text = TEXT_INIT(1 << 20);
    const char *const *environment;
    size_t count = 0;

    (void) state;
    for (size_t i = 0; i < SESSION_EXPORTS_MAX + 10; i++)
        text_format(&text, "declare -x V%zu=\"%zu\"\n", i, i);
    environment = read_text(&pool, text_string(&text));
    while (environment[count])
        count++;
    assert_int_equal(count, SESSION_EXPORTS_MAX);
    assert_string_equal(environment[100], "V100=100");
}

static void functions_become_what_bash_hands_on(void **state)
{
    static const char names_text[] = "declare -fx f\ndeclare -fx my-fn\n";
    static const char printed[] = "f () \n{ \n    echo \"x\"\n}\n";
    AUTO(pool) struct pool pool = POOL_INIT;
    struct session_exports exports = {.items = NULL};
    const char **names;

    (void) state;
    assert_int_equal(session_exports_functions(&pool, names_text, strlen(names_text), &names), 2);
    assert_string_equal(names[1], "my-fn");
    session_exports_add_function(&exports, &pool, names[0], printed, strlen(printed));
    session_exports_add_function(&exports, &pool, names[1], printed, strlen(printed));
    assert_int_equal(exports.count, 1);
    assert_string_equal(exports.items[0], "BASH_FUNC_f%%=() { \n    echo \"x\"\n}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bash_is_read_with_all_its_quotes),
        cmocka_unit_test(posix_shells_are_read),
        cmocka_unit_test(other_lines_are_passed_over),
        cmocka_unit_test(nothing_is_an_empty_environment),
        cmocka_unit_test(too_many_variables_are_cut),
        cmocka_unit_test(functions_become_what_bash_hands_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
