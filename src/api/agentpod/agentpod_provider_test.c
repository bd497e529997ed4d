/* Which provider is chosen: the rules of AgentPod's selectProvider, one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "api/agentpod/agentpod_provider.h"

static enum agentpod_provider chosen(const struct agentpod_providers *providers, const char *name,
                                     const char *use_case)
{
    enum agentpod_provider provider = AGENTPOD_DOCKER;
    struct error err = ERROR_INIT;

    assert_int_equal(agentpod_provider_select(providers, name, use_case, &provider, &err), 0);
    return provider;
}

static void a_name_counts(void **state)
{
    const struct agentpod_providers providers = {.has_cloudflare = true, .selects = true};

    (void) state;
    assert_int_equal(chosen(&providers, "cloudflare", "development"), AGENTPOD_CLOUDFLARE);
    assert_int_equal(chosen(&providers, "docker", "batch"), AGENTPOD_DOCKER);
    assert_int_equal(chosen(&providers, "burrow", NULL), AGENTPOD_BURROW);
}

static void what_is_not_enabled_is_refused_by_name(void **state)
{
    const struct agentpod_providers providers = {.has_cloudflare = false};
    enum agentpod_provider provider;
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(agentpod_provider_select(&providers, "cloudflare", NULL, &provider, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    assert_int_equal(agentpod_provider_select(&providers, "podman", NULL, &provider, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
}

static void use_cases_count_only_where_wanted(void **state)
{
    struct agentpod_providers providers = {.has_cloudflare = true, .standard = AGENTPOD_BURROW};

    (void) state;
    assert_int_equal(chosen(&providers, NULL, "quick-task"), AGENTPOD_BURROW);
    assert_int_equal(chosen(&providers, NULL, NULL), AGENTPOD_BURROW);
    providers.selects = true;
    assert_int_equal(chosen(&providers, NULL, "quick-task"), AGENTPOD_CLOUDFLARE);
    assert_int_equal(chosen(&providers, NULL, "batch"), AGENTPOD_CLOUDFLARE);
    assert_int_equal(chosen(&providers, NULL, "multi-agent"), AGENTPOD_CLOUDFLARE);
    assert_int_equal(chosen(&providers, NULL, "development"), AGENTPOD_DOCKER);
    assert_int_equal(chosen(&providers, NULL, "gardening"), AGENTPOD_BURROW);
    assert_int_equal(chosen(&providers, NULL, NULL), AGENTPOD_BURROW);
}

static void a_use_case_falls_back_where_cloudflare_is_off(void **state)
{
    const struct agentpod_providers providers = {.selects = true, .standard = AGENTPOD_BURROW};

    (void) state;
    assert_int_equal(chosen(&providers, NULL, "quick-task"), AGENTPOD_DOCKER);
}

static void names_and_cleanups_are_one_to_one(void **state)
{
    (void) state;
    for (int i = AGENTPOD_DOCKER; i <= AGENTPOD_BURROW; i++) {
        enum agentpod_provider provider = (enum agentpod_provider) i, read = AGENTPOD_DOCKER;

        assert_int_equal(agentpod_provider_of(agentpod_provider_cleanup(provider)), provider);
        assert_int_equal(agentpod_provider_read(agentpod_provider_text(provider), &read, NULL), 0);
        assert_int_equal(read, provider);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_counts),
        cmocka_unit_test(what_is_not_enabled_is_refused_by_name),
        cmocka_unit_test(use_cases_count_only_where_wanted),
        cmocka_unit_test(a_use_case_falls_back_where_cloudflare_is_off),
        cmocka_unit_test(names_and_cleanups_are_one_to_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
