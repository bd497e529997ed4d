#include <string.h>

#include "agent/agent_test.h"
#include "agent/variables.h"

static int read_variables(const char *text, bool null_removes, char ret_seen[static 256])
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    AUTO(json) json_t *document = json_read(text, strlen(text), NULL, NULL);
    AUTO(pool) struct pool pool = POOL_INIT;
    AUTO(text) struct text seen = TEXT_INIT(255);
    struct variables variables = {.count = 0};
    struct json_place root;

    assert_non_null(document);
    assert_int_equal(json_root_object(document, &root, NULL), 0);
    if (variables_read(&root, null_removes, &pool, &variables, &error) < 0)
        return -1;
    for (size_t i = 0; i < variables.count; i++)
        text_format(&seen, "%s=%s;", variables.changes[i].name,
                    variables.changes[i].text ? variables.changes[i].text : "(gone)");
    (void) snprintf(ret_seen, 256, "%s", text_string(&seen));
    return 0;
}

static void null_removes_or_is_passed_over(void **state)
{
    char seen[256];

    (void) state;
    assert_int_equal(read_variables("{\"env\":{\"A\":\"1\",\"B\":null,\"C\":\"\"}}", true, seen),
                     0);
    assert_string_equal(seen, "A=1;B=(gone);C=;");
    assert_int_equal(read_variables("{\"env\":{\"A\":\"1\",\"B\":null,\"C\":\"\"}}", false, seen),
                     0);
    assert_string_equal(seen, "A=1;C=;");
    assert_int_equal(read_variables("{}", true, seen), 0);
    assert_string_equal(seen, "");
}

static void names_and_values_are_checked(void **state)
{
    char seen[256];

    (void) state;
    assert_int_equal(read_variables("{\"env\":[]}", true, seen), -1);
    assert_int_equal(read_variables("{\"env\":{\"A=B\":\"1\"}}", true, seen), -1);
    assert_int_equal(read_variables("{\"env\":{\"A B\":null}}", true, seen), -1);
    assert_int_equal(read_variables("{\"env\":{\"A B\":null}}", false, seen), 0);
    assert_int_equal(read_variables("{\"env\":{\"A\":1}}", true, seen), -1);
}

static void an_environment_has_bounds(void **state)
{
    const char *many[VARIABLES_MAX + 2] = {NULL};
    char *large = malloc(VARIABLES_SIZE_MAX + 1);
    const char *one[] = {large, NULL};

    (void) state;
    for (size_t i = 0; i < VARIABLES_MAX; i++)
        many[i] = "A=";
    assert_true(variables_fit(many));
    many[VARIABLES_MAX] = "A=";
    assert_false(variables_fit(many));
    assert_non_null(large);
    memset(large, 'x', VARIABLES_SIZE_MAX);
    large[VARIABLES_SIZE_MAX] = '\0';
    assert_false(variables_fit(one));
    large[VARIABLES_SIZE_MAX - 1] = '\0';
    assert_true(variables_fit(one));
    free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_removes_or_is_passed_over),
        cmocka_unit_test(names_and_values_are_checked),
        cmocka_unit_test(an_environment_has_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
