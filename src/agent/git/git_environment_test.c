#include <string.h>

#include "agent/agent_test.h"
#include "agent/environment.h"
#include "agent/git/git_environment.h"

static const char **make(const char *const *base, const char *text, struct pool *pool)
{
    const char *reason;
    struct git_url url;

    assert_int_equal(git_url_parse(text, pool, &url, &reason), 0);
    return git_environment_new(base, &url, pool);
}

static void what_belongs_to_another_repository_is_left_out(void **state)
{
    static const char *const base[] = {"PATH=/bin", "GIT_DIR=/x", "LC_ALL=de_DE", "LANGUAGE=de",
                                       NULL};
    AUTO(pool) struct pool pool = POOL_INIT;
    const char **made = make(base, "https://host/x", &pool);

    (void) state;
    assert_string_equal(environment_get(made, "PATH"), "/bin");
    assert_null(environment_get(made, "GIT_DIR"));
    assert_null(environment_get(made, "LANGUAGE"));
    assert_string_equal(environment_get(made, "LC_ALL"), "C");
    assert_string_equal(environment_get(made, "GIT_ASKPASS"), "");
    assert_null(environment_get(made, "GIT_CONFIG_COUNT"));
    environment_free(made);
}

static void credentials_are_for_their_host_alone(void **state)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    const char **made = make(NULL, "https://me:s3cret@host:1/x", &pool);

    (void) state;
    assert_string_equal(environment_get(made, "GIT_CONFIG_COUNT"), "2");
    assert_string_equal(environment_get(made, "GIT_CONFIG_KEY_0"), "credential.helper");
    assert_string_equal(environment_get(made, "GIT_CONFIG_VALUE_0"), "");
    assert_string_equal(environment_get(made, "GIT_CONFIG_KEY_1"),
                        "credential.https://host:1.helper");
    assert_null(strstr(environment_get(made, "GIT_CONFIG_VALUE_1"), "s3cret"));
    assert_string_equal(environment_get(made, "BURROW_GIT_PASSWORD"), "s3cret");
    environment_free(made);
}

static void settings_of_the_session_stay(void **state)
{
    static const char *const base[] = {"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=a.b",
                                       "GIT_CONFIG_VALUE_0=c", NULL};
    AUTO(pool) struct pool pool = POOL_INIT;
    const char **made = make(base, "https://me@host/x", &pool);

    (void) state;
    assert_string_equal(environment_get(made, "GIT_CONFIG_COUNT"), "3");
    assert_string_equal(environment_get(made, "GIT_CONFIG_KEY_0"), "a.b");
    assert_string_equal(environment_get(made, "GIT_CONFIG_KEY_1"), "credential.helper");
    environment_free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_belongs_to_another_repository_is_left_out),
        cmocka_unit_test(credentials_are_for_their_host_alone),
        cmocka_unit_test(settings_of_the_session_stay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
