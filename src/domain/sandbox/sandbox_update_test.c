#include "domain/domain_testing.h"

static void what_is_named_changes_and_the_rest_stays(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct sandbox_change update = {.fields = SPEC_BIT(sleep_after_ms) | SPEC_BIT(keep_alive)};
    struct told told;

    update.spec.sleep_after_ms = 5000;
    update.spec.keep_alive = true;
    update.spec.max_runtime_ms = 77;
    told = ask_update(world, sandbox, &update);
    expect_ok(&told);
    assert_int_equal(sandbox->spec.sleep_after_ms, 5000);
    assert_true(sandbox->spec.keep_alive);
    assert_int_equal(sandbox->spec.max_runtime_ms, 0);
    assert_string_equal(sandbox->spec.name, "demo");
    update.fields = SPEC_BIT(max_runtime_ms) | SPEC_BIT(lifetime_ms);
    update.spec.lifetime_ms = 99;
    told = ask_update(world, sandbox, &update);
    expect_ok(&told);
    assert_int_equal(sandbox->spec.max_runtime_ms, 77);
    assert_int_equal(sandbox->spec.lifetime_ms, 99);
    assert_int_equal(sandbox->spec.sleep_after_ms, 5000);
    assert_non_null(strstr(world_row(world, &sandbox->id).spec, "\"sleepAfterMs\":5000"));
    expect_events(world, &sandbox->id, "sandbox.created sandbox.updated sandbox.updated");
}

static void variables_and_labels_are_merged_and_the_agent_is_told(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct sandbox_pair first[] = {{(char *) "A", (char *) "1"}, {(char *) "B", (char *) "2"}};
    struct sandbox_pair second[] = {{(char *) "A", NULL}, {(char *) "C", (char *) "3"}};
    struct sandbox_pairs pairs = {.items = first, .count = 2};
    struct sandbox_change update = {.fields = SPEC_BIT(environment), .spec.environment = pairs};
    struct told told = ask_update(world, sandbox, &update);

    expect_ok(&told);
    assert_string_equal(world->environment, "{\"A\":\"1\",\"B\":\"2\"}");
    pairs.items = second;
    update = (struct sandbox_change){.fields = SPEC_BIT(environment) | SPEC_BIT(labels),
                                     .spec.environment = pairs,
                                     .spec.labels = pairs};
    told = ask_update(world, sandbox, &update);
    expect_ok(&told);
    assert_string_equal(world->environment, "{\"B\":\"2\",\"C\":\"3\"}");
    assert_string_equal(sandbox_pairs_get(&sandbox->spec.labels, "C"), "3");
    assert_null(sandbox_pairs_get(&sandbox->spec.labels, "A"));
    assert_int_equal(world->asked_environment, 2);
}

static void a_sleeping_one_hears_of_its_variables_when_it_wakes(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct sandbox_pair pair = {(char *) "A", (char *) "1"};
    struct sandbox_pairs pairs = {.items = &pair, .count = 1};
    struct sandbox_change update = {.fields = SPEC_BIT(environment), .spec.environment = pairs};
    struct told told;

    do_ask(world, sandbox_sleep, sandbox);
    told = ask_update(world, sandbox, &update);
    expect_ok(&told);
    assert_int_equal(world->asked_environment, 0);
    assert_int_equal(sandbox->status, SANDBOX_FROZEN);
    use_once(world, sandbox);
    assert_string_equal(world->environment, "{\"A\":\"1\"}");
    do_ask(world, sandbox_sleep, sandbox);
    use_once(world, sandbox);
    assert_int_equal(world->asked_environment, 1); /* once is enough */
}

static void an_agent_that_does_not_take_its_variables_is_said(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct sandbox_pair pair = {(char *) "A", (char *) "1"};
    struct sandbox_pairs pairs = {.items = &pair, .count = 1};
    struct sandbox_change update = {.fields = SPEC_BIT(environment), .spec.environment = pairs};
    struct told told;

    world->mood = AGENT_FAILS;
    told = ask_update(world, sandbox, &update);
    expect_code(&told, ERR_UPSTREAM);
    assert_non_null(strstr(told.failure.message, "kept"));
    assert_string_equal(sandbox_pairs_get(&sandbox->spec.environment, "A"), "1");
    assert_non_null(strstr(world_row(world, &sandbox->id).spec, "\"A\":\"1\""));
}

static void limits_hold_at_once(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct sandbox_change update = {.fields = SPEC_BIT(limits)};
    struct told told;

    update.spec.limits = (struct limits){.pids = 50, .memory_bytes = 1 << 20};
    told = ask_update(world, sandbox, &update);
    expect_ok(&told);
    assert_int_equal(provider_fake_limits(world->provider, &sandbox->id)->pids, 50);
    update.spec.limits = (struct limits){.pids = 60};
    told = ask_update(world, sandbox, &update);
    expect_ok(&told);
    assert_int_equal(provider_fake_limits(world->provider, &sandbox->id)->pids, 60);
    assert_int_equal(provider_fake_limits(world->provider, &sandbox->id)->memory_bytes, 1 << 20);
    assert_int_equal(sandbox->spec.limits.pids, 60);
}

static void limits_that_the_host_refuses_change_nothing(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct sandbox_change update = {.fields = SPEC_BIT(limits)};
    struct told told;

    update.spec.limits.pids = 50;
    provider_fake_fail_next(world->provider, PROVIDER_CALL_SET_LIMITS, ERR_INVALID);
    told = ask_update(world, sandbox, &update);
    expect_code(&told, ERR_INVALID);
    assert_int_equal(sandbox->spec.limits.pids, 0);
    expect_events(world, &sandbox->id, "sandbox.created");
}

static void limits_go_back_when_they_cannot_be_kept(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct sandbox_change update = {.fields = SPEC_BIT(limits)};
    struct told told;

    update.spec.limits.pids = 50;
    world->refuse_commit = 1;
    told = ask_update(world, sandbox, &update);
    expect_code(&told, ERR_NO_SPACE);
    assert_int_equal(sandbox->spec.limits.pids, 0);
    assert_int_equal(provider_fake_limits(world->provider, &sandbox->id)->pids, 0);
    assert_null(strstr(world_row(world, &sandbox->id).spec, "pids"));
}

static void a_name_can_be_changed_and_is_then_free(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo"), *taken = world_create(world, "taken");
    struct sandbox_change update = {.fields = SPEC_BIT(name)};
    struct told told;

    update.spec.name = (char *) "taken";
    told = ask_update(world, sandbox, &update);
    expect_code(&told, ERR_CONFLICT);
    update.spec.name = (char *) "other";
    told = ask_update(world, sandbox, &update);
    expect_ok(&told);
    assert_ptr_equal(sandbox_find(world->domain, &world->caller, "other", NULL), sandbox);
    assert_ptr_equal(sandbox_find(world->domain, &world->caller, "taken", NULL), taken);
    assert_ptr_not_equal(world_create(world, "demo"), sandbox);
    update.spec.name = NULL;
    told = ask_update(world, sandbox, &update);
    expect_ok(&told);
    assert_null(sandbox_find(world->domain, &world->caller, "other", NULL));
    assert_string_equal(world_row(world, &sandbox->id).name, "(null)");
}

static void what_is_wrong_is_refused_and_changes_nothing(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct sandbox_pair pair = {(char *) "not a name", (char *) "1"};
    struct sandbox_pairs pairs = {.items = &pair, .count = 1};
    struct sandbox_change update = {.fields = SPEC_BIT(environment), .spec.environment = pairs};
    struct told told = ask_update(world, sandbox, &update);

    expect_code(&told, ERR_INVALID);
    assert_int_equal(sandbox->spec.environment.count, 0);
    assert_false(sandbox->is_held);
    world->caller.scope = CALLER_READ;
    told = ask_update(world, sandbox, &update);
    expect_code(&told, ERR_FORBIDDEN);
}

static void updates_have_their_turn_and_none_is_lost(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct sandbox_pair pairs[4] = {{(char *) "A", (char *) "1"},
                                    {(char *) "B", (char *) "2"},
                                    {(char *) "C", (char *) "3"},
                                    {(char *) "A", NULL}};
    struct told told[4] = {{.times = 0}}, stop = {.times = 0};
    struct told_use use;

    for (size_t i = 0; i < 4; i++) {
        struct sandbox_pairs change = {.items = &pairs[i], .count = 1};
        struct sandbox_change update = {.fields = SPEC_BIT(labels), .spec.labels = change};

        sandbox_update(world->domain, &world->caller, sandbox, &update, on_told, &told[i]);
    }
    sandbox_stop(world->domain, &world->caller, sandbox, on_told, &stop);
    use_begin(world, sandbox, &use, 0); /* an update keeps nobody out */
    assert_int_equal(use.times, 1);
    sandbox_use_end(&use.use);
    TURN_UNTIL(&world->loop, stop.times);
    for (size_t i = 0; i < 4; i++)
        expect_ok(&told[i]);
    assert_int_equal(sandbox->spec.labels.count, 2);
    assert_string_equal(sandbox_pairs_get(&sandbox->spec.labels, "C"), "3");
    assert_non_null(
        strstr(world_row(world, &sandbox->id).spec, "\"labels\":{\"B\":\"2\",\"C\":\"3\"}"));
}

static void an_end_during_an_update_loses_neither(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct ending ending = {.kind = ENDED_STATUS, .value = 4};
    struct sandbox_pair pair = {(char *) "A", (char *) "1"};
    struct sandbox_pairs pairs = {.items = &pair, .count = 1};
    struct sandbox_change update = {.fields = SPEC_BIT(labels), .spec.labels = pairs};
    struct told told = {.times = 0};

    sandbox_update(world->domain, &world->caller, sandbox, &update, on_told, &told);
    provider_fake_exit(world->provider, &sandbox->id, &ending);
    TURN_UNTIL(&world->loop, told.times && sandbox->status == SANDBOX_STOPPED);
    expect_ok(&told);
    world_wait(world);
    expect_row(world, &sandbox->id, "stopped");
    assert_non_null(strstr(world_row(world, &sandbox->id).spec, "\"A\":\"1\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(what_is_named_changes_and_the_rest_stays),
        WORLD_TEST(variables_and_labels_are_merged_and_the_agent_is_told),
        WORLD_TEST(a_sleeping_one_hears_of_its_variables_when_it_wakes),
        WORLD_TEST(an_agent_that_does_not_take_its_variables_is_said),
        WORLD_TEST(limits_hold_at_once),
        WORLD_TEST(limits_that_the_host_refuses_change_nothing),
        WORLD_TEST(limits_go_back_when_they_cannot_be_kept),
        WORLD_TEST(a_name_can_be_changed_and_is_then_free),
        WORLD_TEST(what_is_wrong_is_refused_and_changes_nothing),
        WORLD_TEST(updates_have_their_turn_and_none_is_lost),
        WORLD_TEST(an_end_during_an_update_loses_neither),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
