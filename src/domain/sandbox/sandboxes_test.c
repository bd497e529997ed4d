#include "domain/domain_testing.h"

static struct caller other_owner(enum caller_scope scope)
{
    return (struct caller){.scope = scope, .owner = id_new()};
}

/* --- create ----------------------------------------------------------------------------------- */

static void a_created_sandbox_runs_and_is_kept(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct kept kept = world_row(world, &sandbox->id);

    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    assert_int_equal(world_state(world, &sandbox->id), RUN_STATE_RUNNING);
    assert_string_equal(kept.status, "running");
    assert_string_equal(kept.name, "demo");
    expect_events(world, &sandbox->id, "sandbox.created");
    assert_int_equal(sandbox->created_ms, WORLD_START_MS);
    assert_int_equal(sandbox->started_ms, WORLD_START_MS);
    assert_string_equal(sandbox->node, "here");
}

static void the_id_may_be_the_providers(void **state)
{
    struct provider_fake_options fake = {.chooses_ids = true};
    struct world *world = world_new(&fake);
    struct sandbox *sandbox;

    (void) state;
    world_open(world);
    sandbox = world_create(world, "demo");
    assert_int_equal(world_state(world, &sandbox->id), RUN_STATE_RUNNING);
    expect_row(world, &sandbox->id, "running");
    assert_ptr_equal(sandbox_find(world->domain, &world->caller, sandbox->id.text, NULL), sandbox);
    world_free(world);
}

static void creating_a_name_again_gives_the_same(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct told told;

    spec.name = (char *) "demo";
    spec.keep_alive = true;
    told = ask_create(world, &world->caller, &spec);
    expect_ok(&told);
    assert_false(told.is_new);
    assert_ptr_equal(told.sandbox, sandbox);
    assert_false(sandbox->spec.keep_alive);
}

static void concurrent_creates_of_a_name_share_one(void **state)
{
    struct world *world = *state;
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct told told[5] = {{.times = 0}};
    struct error err = ERROR_INIT;
    int made = 0;

    spec.name = (char *) "demo";
    provider_fake_hold(world->provider, PROVIDER_CALL_CREATE, true);
    for (size_t i = 0; i < ARRAY_COUNT(told); i++)
        sandbox_create(world->domain, &world->caller, &spec, on_created, &told[i]);
    world_wait(world);
    assert_int_equal(told[0].times, 0);
    /* What is not kept is not there. */
    assert_null(sandbox_find(world->domain, &world->caller, "demo", &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    provider_fake_hold(world->provider, PROVIDER_CALL_CREATE, false);
    for (size_t i = 0; i < ARRAY_COUNT(told); i++) {
        TURN_UNTIL(&world->loop, told[i].times);
        expect_ok(&told[i]);
        made += told[i].is_new;
        assert_ptr_equal(told[i].sandbox, told[0].sandbox);
    }
    assert_int_equal(made, 1);
    assert_int_equal(world_provider(world).count, 1);
}

static void a_failing_create_fails_for_all_who_share_it_and_leaves_nothing(void **state)
{
    struct world *world = *state;
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct told told[2] = {{.times = 0}};
    size_t counts[SANDBOX_STATUS_COUNT];

    spec.name = (char *) "demo";
    provider_fake_fail_next(world->provider, PROVIDER_CALL_CREATE, ERR_NO_SPACE);
    sandbox_create(world->domain, &world->caller, &spec, on_created, &told[0]);
    sandbox_create(world->domain, &world->caller, &spec, on_created, &told[1]);
    TURN_UNTIL(&world->loop, told[0].times && told[1].times);
    expect_code(&told[0], ERR_NO_SPACE);
    expect_code(&told[1], ERR_NO_SPACE);
    sandbox_count(world->domain, NULL, counts);
    for (size_t i = 0; i < SANDBOX_STATUS_COUNT; i++)
        assert_int_equal(counts[i], 0);
    (void) world_create(world, "demo"); /* the name is free */
}

static void two_owners_may_use_one_name(void **state)
{
    struct world *world = *state;
    struct caller other = other_owner(CALLER_WRITE);
    struct sandbox *mine = world_create(world, "demo");
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct told told;

    spec.name = (char *) "demo";
    told = ask_create(world, &other, &spec);
    expect_ok(&told);
    assert_true(told.is_new);
    assert_ptr_not_equal(told.sandbox, mine);
    assert_ptr_equal(sandbox_find(world->domain, &other, "demo", NULL), told.sandbox);
    assert_ptr_equal(sandbox_find(world->domain, &world->caller, "demo", NULL), mine);
}

static void who_may_not_write_may_not_create(void **state)
{
    static const enum caller_scope scopes[] = {CALLER_NOBODY, CALLER_PORT, CALLER_READ,
                                               CALLER_SANDBOX};
    struct world *world = *state;
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;

    for (size_t i = 0; i < ARRAY_COUNT(scopes); i++) {
        struct caller caller = {.scope = scopes[i], .owner = world->caller.owner};
        struct told told = ask_create(world, &caller, &spec);

        expect_code(&told, ERR_FORBIDDEN);
    }
    assert_int_equal(world_provider(world).count, 0);
}

static void a_wrong_spec_is_refused(void **state)
{
    struct world *world = *state;
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct told told;

    spec.name = (char *) "";
    told = ask_create(world, &world->caller, &spec);
    expect_code(&told, ERR_INVALID);
}

static void what_a_spec_does_not_say_is_the_daemons_default(void **state)
{
    struct world *world = world_new(NULL);
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct told told;

    (void) state;
    world->options.default_limits = (struct limits){.memory_bytes = 1000, .pids = 7};
    world->options.default_network = NETWORK_NAT;
    world_open(world);
    spec.limits.pids = 9;
    told = ask_create(world, &world->caller, &spec);
    expect_ok(&told);
    assert_int_equal(told.sandbox->spec.limits.memory_bytes, 1000);
    assert_int_equal(told.sandbox->spec.limits.pids, 9);
    assert_int_equal(told.sandbox->spec.network.mode, NETWORK_NAT);
    assert_int_equal(provider_fake_limits(world->provider, &told.sandbox->id)->memory_bytes, 1000);
    spec.network.is_set = true;
    told = ask_create(world, &world->caller, &spec);
    assert_int_equal(told.sandbox->spec.network.mode, NETWORK_NONE);
    world_free(world);
}

static void without_a_provider_there_is_nowhere_to_create(void **state)
{
    struct world *world = world_new(NULL);
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct told told = {.times = 0};

    (void) state;
    world_open_as_is(world);
    told = ask_create(world, &world->caller, &spec);
    expect_code(&told, ERR_UNAVAILABLE);
    world_free(world);
}

/* --- find ------------------------------------------------------------------------------------- */

static void others_are_told_that_there_is_none(void **state)
{
    static const enum caller_scope scopes[] = {CALLER_NOBODY, CALLER_PORT, CALLER_READ,
                                               CALLER_SANDBOX, CALLER_WRITE};
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct caller admin = other_owner(CALLER_ADMIN);

    for (size_t i = 0; i < ARRAY_COUNT(scopes); i++) {
        struct caller caller = other_owner(scopes[i]);
        struct error err = ERROR_INIT;

        caller.sandbox = sandbox->id;
        assert_null(sandbox_find(world->domain, &caller, sandbox->id.text, &err));
        assert_int_equal(err.code, ERR_NOT_FOUND);
        assert_null(sandbox_find(world->domain, &caller, "demo", &err));
        assert_null(strstr(err.message, "mean")); /* nor is a name given away */
    }
    assert_ptr_equal(sandbox_find(world->domain, &admin, sandbox->id.text, NULL), sandbox);
    /* Names are those of the caller's own. */
    assert_null(sandbox_find(world->domain, &admin, "demo", NULL));
}

static void a_narrow_key_sees_one_sandbox(void **state)
{
    struct world *world = *state;
    struct sandbox *one = world_create(world, "one"), *two = world_create(world, "two");
    struct caller narrow = {
        .scope = CALLER_SANDBOX, .owner = world->caller.owner, .sandbox = one->id};

    assert_ptr_equal(sandbox_find(world->domain, &narrow, "one", NULL), one);
    assert_null(sandbox_find(world->domain, &narrow, "two", NULL));
    assert_null(sandbox_find(world->domain, &narrow, two->id.text, NULL));
}

static void a_name_may_look_like_the_id_of_a_stranger(void **state)
{
    struct world *world = *state;
    struct caller other = other_owner(CALLER_WRITE);
    struct sandbox *strangers = world_create(world, NULL);
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct told told;

    spec.name = strangers->id.text;
    told = ask_create(world, &other, &spec);
    expect_ok(&told);
    assert_true(told.is_new);
    assert_ptr_equal(sandbox_find(world->domain, &other, strangers->id.text, NULL), told.sandbox);
}

static void a_wrong_name_is_told_which_was_meant(void **state)
{
    static const struct {
        const char *asked;
        bool is_close;
    } cases[] = {{"demoo", true},   {"dem", true},    {"dmo", true},   {"demi", true},
                 {"Demo", true},    {"emo", true},    {"xdemo", true}, {"memo", true},
                 {"demons", false}, {"other", false}, {"x", false},    {"", false}};
    struct world *world = *state;

    (void) world_create(world, "demo");
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct error err = ERROR_INIT;

        assert_null(sandbox_find(world->domain, &world->caller, cases[i].asked, &err));
        if ((strstr(err.message, "did you mean 'demo'?") != NULL) != cases[i].is_close)
            fail_msg("%s: %s", cases[i].asked, err.message);
    }
}

/* --- the acts --------------------------------------------------------------------------------- */

static void stop_keeps_the_disk_and_start_brings_it_back(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");

    do_ask(world, sandbox_stop, sandbox);
    assert_int_equal(sandbox->status, SANDBOX_STOPPED);
    assert_true(sandbox->is_ended_by_request);
    assert_int_equal(sandbox->started_ms, 0);
    assert_int_equal(world_state(world, &sandbox->id), RUN_STATE_STOPPED);
    expect_row(world, &sandbox->id, "stopped");
    assert_non_null(strstr(world_row(world, &sandbox->id).spec, "endedByRequest"));
    do_ask(world, sandbox_stop, sandbox);
    do_ask(world, sandbox_start, sandbox);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    assert_false(sandbox->is_ended_by_request);
    assert_string_equal(sandbox->reason, "");
    assert_int_equal(world_state(world, &sandbox->id), RUN_STATE_RUNNING);
    do_ask(world, sandbox_start, sandbox);
    expect_row(world, &sandbox->id, "running");
    expect_events(world, &sandbox->id, "sandbox.created sandbox.stopped sandbox.started");
}

static void sleep_freezes_and_wake_thaws(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");

    do_ask(world, sandbox_sleep, sandbox);
    assert_int_equal(sandbox->status, SANDBOX_FROZEN);
    assert_int_equal(world_state(world, &sandbox->id), RUN_STATE_FROZEN);
    assert_int_equal(world->asked_quiesce, 1);
    expect_row(world, &sandbox->id, "frozen");
    do_ask(world, sandbox_sleep, sandbox);
    do_ask(world, sandbox_wake, sandbox);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    assert_int_equal(world_state(world, &sandbox->id), RUN_STATE_RUNNING);
    assert_int_equal(world->asked_resume, 1);
    expect_row(world, &sandbox->id, "running");
    expect_events(world, &sandbox->id, "sandbox.created sandbox.hibernated sandbox.woken");
}

static void sleep_without_freeze_ends_processes_and_brings_sessions_back(void **state)
{
    struct provider_fake_options fake = {.missing = PROVIDER_FREEZE};
    struct world *world = world_new(&fake);
    struct sandbox *sandbox;

    (void) state;
    world_open(world);
    sandbox = world_create(world, "demo");
    world->saved = "{\"sessions\":[{\"cwd\":\"/tmp\"}]}";
    do_ask(world, sandbox_sleep, sandbox);
    assert_int_equal(sandbox->status, SANDBOX_HIBERNATED);
    assert_non_null(strstr(sandbox->reason, "processes were ended"));
    assert_int_equal(world_state(world, &sandbox->id), RUN_STATE_STOPPED);
    expect_row(world, &sandbox->id, "hibernated");
    assert_string_equal(world_row(world, &sandbox->id).inside, world->saved);
    assert_int_equal(world->forgotten, 1);
    do_ask(world, sandbox_wake, sandbox);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    assert_string_equal(world->restored, world->saved);
    assert_null(sandbox->inside);
    assert_string_equal(world_row(world, &sandbox->id).inside, "(null)");
    expect_events(world, &sandbox->id, "sandbox.created sandbox.hibernated sandbox.woken");
    world_free(world);
}

static void variables_come_back_with_the_sessions_or_it_does_not_run(void **state)
{
    struct provider_fake_options fake = {.missing = PROVIDER_FREEZE};
    struct world *world = world_new(&fake);
    struct sandbox *sandbox;
    struct told told;

    (void) state;
    world_open(world);
    sandbox = world_create(world, "demo");
    sandbox_pairs_set(&sandbox->spec.environment, "A", "1");
    do_ask(world, sandbox_sleep, sandbox);
    do_ask(world, sandbox_wake, sandbox);
    assert_string_equal(world->restored,
                        "{\"replace\":true,\"env\":{\"A\":\"1\"},\"sessions\":[]}");
    assert_int_equal(world->asked_environment, 0);
    do_ask(world, sandbox_sleep, sandbox);
    world->mood = AGENT_FAILS;
    told = ask(world, sandbox_wake, sandbox);
    expect_code(&told, ERR_UPSTREAM);
    assert_non_null(strstr(told.failure.message, "tell it its variables"));
    assert_int_equal(world->asked_environment, 1); /* alone, without the sessions */
    assert_int_equal(sandbox->status, SANDBOX_HIBERNATED);
    assert_int_equal(world_state(world, &sandbox->id), RUN_STATE_STOPPED);
    assert_string_equal(sandbox->inside, world->saved);
    world->mood = AGENT_ANSWERS;
    do_ask(world, sandbox_wake, sandbox);
    world_free(world);
}

static void a_sleep_that_fails_leaves_no_sessions_behind(void **state)
{
    struct provider_fake_options fake = {.missing = PROVIDER_FREEZE};
    struct world *world = world_new(&fake);
    struct sandbox *sandbox;
    struct told told;

    (void) state;
    world_open(world);
    sandbox = world_create(world, "demo");
    provider_fake_fail_next(world->provider, PROVIDER_CALL_STOP, ERR_INTERNAL);
    told = ask(world, sandbox_sleep, sandbox);
    expect_code(&told, ERR_INTERNAL);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    assert_null(sandbox->inside);
    world_wait(world);
    expect_row(world, &sandbox->id, "running");
    assert_string_equal(world_row(world, &sandbox->id).inside, "(null)");
    world_free(world);
}

static void where_nothing_can_sleep_it_is_said(void **state)
{
    struct provider_fake_options fake = {.missing = PROVIDER_FREEZE | PROVIDER_RESTART};
    struct world *world = world_new(&fake);
    struct sandbox *sandbox;
    struct told told;

    (void) state;
    world_open(world);
    sandbox = world_create(world, "demo");
    told = ask(world, sandbox_sleep, sandbox);
    expect_code(&told, ERR_NOT_IMPLEMENTED);
    told = ask(world, sandbox_stop, sandbox);
    expect_code(&told, ERR_NOT_IMPLEMENTED);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    world_free(world);
}

static void a_sleeping_one_can_be_stopped_and_started(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");

    do_ask(world, sandbox_sleep, sandbox);
    do_ask(world, sandbox_stop, sandbox);
    assert_int_equal(sandbox->status, SANDBOX_STOPPED);
    assert_int_equal(world_state(world, &sandbox->id), RUN_STATE_STOPPED);
    assert_int_equal(world->asked_quiesce, 1); /* not while frozen */
    do_ask(world, sandbox_start, sandbox);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
}

static void a_stopped_one_cannot_sleep_and_is_told_what_to_do(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct told told;

    do_ask(world, sandbox_stop, sandbox);
    told = ask(world, sandbox_sleep, sandbox);
    expect_code(&told, ERR_CONFLICT);
    assert_non_null(strstr(told.failure.message, "start it first"));
}

static void destroy_leaves_nothing(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct id id = sandbox->id;
    size_t counts[SANDBOX_STATUS_COUNT];
    struct told told = ask(world, sandbox_destroy, sandbox);

    expect_ok(&told);
    assert_null(told.sandbox);
    assert_int_equal(world_row(world, &id).count, 0);
    assert_int_equal(world_state(world, &id), -1);
    assert_null(sandbox_find(world->domain, &world->caller, "demo", NULL));
    expect_events(world, &id, "sandbox.created sandbox.deleted");
    sandbox_count(world->domain, &world->caller.owner, counts);
    assert_int_equal(counts[SANDBOX_RUNNING], 0);
    assert_string_not_equal(world_create(world, "demo")->id.text, id.text);
}

static void every_lasting_state_can_be_destroyed(void **state)
{
    static sandbox_call *const before[] = {sandbox_wake, sandbox_sleep, sandbox_stop};
    struct world *world = *state;

    for (size_t i = 0; i < ARRAY_COUNT(before); i++) {
        struct sandbox *sandbox = world_create(world, "demo");

        do_ask(world, before[i], sandbox);
        do_ask(world, sandbox_destroy, sandbox);
    }
    assert_int_equal(world_provider(world).count, 0);
}

static void who_may_not_write_changes_nothing(void **state)
{
    static sandbox_call *const calls[] = {sandbox_stop, sandbox_sleep, sandbox_wake, sandbox_start,
                                          sandbox_destroy};
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");

    world->caller.scope = CALLER_READ;
    for (size_t i = 0; i < ARRAY_COUNT(calls); i++) {
        struct told told = ask(world, calls[i], sandbox);

        expect_code(&told, ERR_FORBIDDEN);
    }
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
}

/* --- one thing at a time -----------------------------------------------------------------------
 */

static void what_comes_meanwhile_has_its_turn_in_order(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct told stop = {.times = 0}, start = {.times = 0}, sleep = {.times = 0},
                destroy = {.times = 0}, late = {.times = 0};

    provider_fake_hold(world->provider, PROVIDER_CALL_STOP, true);
    sandbox_stop(world->domain, &world->caller, sandbox, on_told, &stop);
    sandbox_start(world->domain, &world->caller, sandbox, on_told, &start);
    sandbox_sleep(world->domain, &world->caller, sandbox, on_told, &sleep);
    sandbox_destroy(world->domain, &world->caller, sandbox, on_told, &destroy);
    sandbox_wake(world->domain, &world->caller, sandbox, on_told, &late);
    world_wait(world);
    assert_int_equal(sandbox->status, SANDBOX_STOPPING);
    assert_int_equal(stop.times + start.times + sleep.times + destroy.times + late.times, 0);
    provider_fake_hold(world->provider, PROVIDER_CALL_STOP, false);
    TURN_UNTIL(&world->loop, late.times && destroy.times);
    expect_ok(&stop);
    expect_ok(&start);
    expect_ok(&sleep);
    expect_ok(&destroy);
    expect_code(&late, ERR_NOT_FOUND);
}

static void only_so_many_wait_for_one_sandbox(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    static struct told told[SANDBOX_WISHES_MAX + 2];

    memset(told, 0, sizeof(told));
    provider_fake_hold(world->provider, PROVIDER_CALL_FREEZE, true);
    for (size_t i = 0; i < ARRAY_COUNT(told); i++)
        sandbox_sleep(world->domain, &world->caller, sandbox, on_told, &told[i]);
    TURN_UNTIL(&world->loop, told[SANDBOX_WISHES_MAX + 1].times);
    expect_code(&told[SANDBOX_WISHES_MAX + 1], ERR_UNAVAILABLE);
    assert_int_equal(told[SANDBOX_WISHES_MAX].times, 0);
    provider_fake_hold(world->provider, PROVIDER_CALL_FREEZE, false);
    for (size_t i = 0; i <= SANDBOX_WISHES_MAX; i++) {
        TURN_UNTIL(&world->loop, told[i].times);
        expect_ok(&told[i]);
    }
    expect_events(world, &sandbox->id, "sandbox.created sandbox.hibernated");
}

static void two_destroys_both_succeed(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct told one = {.times = 0}, two = {.times = 0};

    sandbox_destroy(world->domain, &world->caller, sandbox, on_told, &one);
    sandbox_destroy(world->domain, &world->caller, sandbox, on_told, &two);
    TURN_UNTIL(&world->loop, one.times && two.times);
    expect_ok(&one);
    expect_ok(&two);
}

/* --- figures -----------------------------------------------------------------------------------
 */

static void counters_count(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct domain_counters counters;

    do_ask(world, sandbox_sleep, sandbox);
    do_ask(world, sandbox_wake, sandbox);
    do_ask(world, sandbox_stop, sandbox);
    do_ask(world, sandbox_start, sandbox);
    do_ask(world, sandbox_destroy, sandbox);
    domain_counters(world->domain, &counters);
    assert_int_equal(counters.created, 1);
    assert_int_equal(counters.slept, 1);
    assert_int_equal(counters.woken, 1);
    assert_int_equal(counters.stopped, 1);
    assert_int_equal(counters.started, 1);
    assert_int_equal(counters.destroyed, 1);
    assert_int_equal(counters.failed, 0);
    assert_int_equal(counters.events, 6);
    assert_int_equal(counters.wake_buckets[7], 2);
    assert_int_equal(counters.wake_buckets[0], 2); /* the clock stands still */
}

static void stats_and_sockets_come_from_the_provider(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    char address[PROVIDER_ADDRESS_MAX];

    assert_int_equal(sandbox_agent_address(world->domain, sandbox, address, NULL), 0);
    assert_non_null(strstr(address, sandbox->id.text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_created_sandbox_runs_and_is_kept),
        cmocka_unit_test(the_id_may_be_the_providers),
        WORLD_TEST(creating_a_name_again_gives_the_same),
        WORLD_TEST(concurrent_creates_of_a_name_share_one),
        WORLD_TEST(a_failing_create_fails_for_all_who_share_it_and_leaves_nothing),
        WORLD_TEST(two_owners_may_use_one_name),
        WORLD_TEST(who_may_not_write_may_not_create),
        WORLD_TEST(a_wrong_spec_is_refused),
        cmocka_unit_test(what_a_spec_does_not_say_is_the_daemons_default),
        cmocka_unit_test(without_a_provider_there_is_nowhere_to_create),
        WORLD_TEST(others_are_told_that_there_is_none),
        WORLD_TEST(a_narrow_key_sees_one_sandbox),
        WORLD_TEST(a_name_may_look_like_the_id_of_a_stranger),
        WORLD_TEST(a_wrong_name_is_told_which_was_meant),
        WORLD_TEST(stop_keeps_the_disk_and_start_brings_it_back),
        WORLD_TEST(sleep_freezes_and_wake_thaws),
        cmocka_unit_test(sleep_without_freeze_ends_processes_and_brings_sessions_back),
        cmocka_unit_test(variables_come_back_with_the_sessions_or_it_does_not_run),
        cmocka_unit_test(a_sleep_that_fails_leaves_no_sessions_behind),
        cmocka_unit_test(where_nothing_can_sleep_it_is_said),
        WORLD_TEST(a_sleeping_one_can_be_stopped_and_started),
        WORLD_TEST(a_stopped_one_cannot_sleep_and_is_told_what_to_do),
        WORLD_TEST(destroy_leaves_nothing),
        WORLD_TEST(every_lasting_state_can_be_destroyed),
        WORLD_TEST(who_may_not_write_changes_nothing),
        WORLD_TEST(what_comes_meanwhile_has_its_turn_in_order),
        WORLD_TEST(only_so_many_wait_for_one_sandbox),
        WORLD_TEST(two_destroys_both_succeed),
        WORLD_TEST(counters_count),
        WORLD_TEST(stats_and_sockets_come_from_the_provider),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
