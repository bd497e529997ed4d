/* Ends that nobody asked for, agents that do not answer, and the end of the domain. */
#include "domain/domain_testing.h"

/* --- ends that nobody asked for -----------------------------------------------------------------
 */

static void an_end_is_told_with_its_reason(void **state)
{
    static const struct {
        struct ending ending;
        const char *reason, *events;
    } cases[] = {
        {{ENDED_OOM, 0}, "ended: out of memory", "sandbox.created sandbox.error"},
        {{ENDED_STATUS, 1}, "ended with status 1", "sandbox.created sandbox.error"},
        {{ENDED_STATUS, 0}, "ended with status 0", "sandbox.created sandbox.stopped"},
        {{ENDED_SIGNAL, 9}, "ended by signal 9", "sandbox.created sandbox.error"},
        {{ENDED_UNKNOWN, 0}, "ended, nobody knows how", "sandbox.created sandbox.stopped"},
    };
    struct world *world = *state;

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct sandbox *sandbox = world_create(world, NULL);

        provider_fake_exit(world->provider, &sandbox->id, &cases[i].ending);
        TURN_UNTIL(&world->loop, sandbox->status == SANDBOX_STOPPED);
        assert_string_equal(sandbox->reason, cases[i].reason);
        assert_false(sandbox->is_ended_by_request);
        assert_int_equal(sandbox->started_ms, 0);
        expect_row(world, &sandbox->id, "stopped");
        expect_events(world, &sandbox->id, cases[i].events);
        use_once(world, sandbox); /* starts it again */
        assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    }
}

static void an_end_while_it_is_being_created_is_told_after_that(void **state)
{
    struct world *world = *state;
    struct ending ending = {.kind = ENDED_STATUS, .value = 2};
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct told told = {.times = 0};
    struct provider_view view;

    sandbox_create(world->domain, &world->caller, &spec, on_created, &told);
    do {
        view = world_provider(world);
    } while (view.count == 0);
    provider_fake_exit(world->provider, &view.items[0].id, &ending);
    TURN_UNTIL(&world->loop, told.times);
    expect_ok(&told);
    TURN_UNTIL(&world->loop, told.sandbox->status == SANDBOX_STOPPED);
    assert_string_equal(told.sandbox->reason, "ended with status 2");
    expect_events(world, &told.sandbox->id, "sandbox.created sandbox.error");
}

static void an_end_while_it_falls_asleep_is_no_sleep(void **state)
{
    struct world *world = *state;
    struct ending ending = {.kind = ENDED_SIGNAL, .value = 9};
    struct sandbox *sandbox = world_create(world, "demo");
    struct told told = {.times = 0};

    world->mood = AGENT_IS_SILENT; /* so that it takes a while */
    sandbox_sleep(world->domain, &world->caller, sandbox, on_told, &told);
    provider_fake_exit(world->provider, &sandbox->id, &ending);
    world_pass(world, 4);
    TURN_UNTIL(&world->loop, told.times);
    expect_code(&told, ERR_CONFLICT);
    assert_int_equal(sandbox->status, SANDBOX_STOPPED);
    assert_string_equal(sandbox->reason, "ended by signal 9");
}

static void a_stop_of_one_that_ended_keeps_it_down(void **state)
{
    struct world *world = *state;
    struct ending ending = {.kind = ENDED_STATUS};
    struct sandbox *sandbox = world_create(world, "demo");
    struct told_use use;

    provider_fake_exit(world->provider, &sandbox->id, &ending);
    TURN_UNTIL(&world->loop, sandbox->status == SANDBOX_STOPPED);
    do_ask(world, sandbox_stop, sandbox);
    assert_true(sandbox->is_ended_by_request);
    use_begin(world, sandbox, &use, 0);
    assert_int_equal(use.times, 1);
    assert_int_equal(use.failure.code, ERR_CONFLICT);
}

static void a_sandbox_that_the_provider_lost_is_in_error(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct told told;

    provider_fake_fail_next(world->provider, PROVIDER_CALL_FREEZE, ERR_NOT_FOUND);
    told = ask(world, sandbox_sleep, sandbox);
    expect_code(&told, ERR_GONE);
    assert_int_equal(sandbox->status, SANDBOX_ERROR);
    told = ask(world, sandbox_wake, sandbox);
    expect_code(&told, ERR_CONFLICT);
    assert_non_null(strstr(told.failure.message, "destroy it"));
    expect_row(world, &sandbox->id, "error");
    expect_events(world, &sandbox->id, "sandbox.created sandbox.error");
    do_ask(world, sandbox_destroy, sandbox);
}

static void losing_the_provider_is_passed_on(void **state)
{
    struct world *world = *state;
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct told told;

    provider_fake_lose(world->provider, "the moon fell down");
    TURN_UNTIL(&world->loop, world->lost);
    assert_non_null(domain_waits_for(world->domain));
    told = ask_create(world, &world->caller, &spec);
    expect_code(&told, ERR_UNAVAILABLE);
}

/* --- agents that do not answer ------------------------------------------------------------------
 */

static void a_silent_agent_holds_up_neither_sleep_nor_wake_nor_stop(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct told told = {.times = 0};

    world->mood = AGENT_IS_SILENT;
    sandbox_sleep(world->domain, &world->caller, sandbox, on_told, &told);
    world_pass(world, 1);
    assert_int_equal(told.times, 0);
    world_pass(world, 2);
    TURN_UNTIL(&world->loop, told.times);
    expect_ok(&told);
    assert_int_equal(sandbox->status, SANDBOX_FROZEN);
    told.times = 0;
    sandbox_wake(world->domain, &world->caller, sandbox, on_told, &told);
    world_pass(world, 3);
    TURN_UNTIL(&world->loop, told.times);
    expect_ok(&told);
    told.times = 0;
    sandbox_stop(world->domain, &world->caller, sandbox, on_told, &told);
    world_pass(world, 3);
    TURN_UNTIL(&world->loop, told.times);
    expect_ok(&told);
}

static void a_failing_agent_holds_up_nothing_either(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");

    world->mood = AGENT_FAILS;
    do_ask(world, sandbox_sleep, sandbox);
    do_ask(world, sandbox_wake, sandbox);
    do_ask(world, sandbox_stop, sandbox);
    do_ask(world, sandbox_start, sandbox);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
}

/* --- closing -----------------------------------------------------------------------------------
 */

static void closing_answers_everything_that_waits(void **state)
{
    static const enum provider_call_kind kinds[] = {PROVIDER_CALL_CREATE, PROVIDER_CALL_STOP,
                                                    PROVIDER_CALL_FREEZE, PROVIDER_CALL_THAW,
                                                    PROVIDER_CALL_DESTROY};
    struct world *world = *state;
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct sandbox *one = world_create(world, "one"), *two = world_create(world, "two"),
                   *three = world_create(world, "three"), *four = world_create(world, "four");
    struct told told[7] = {{.times = 0}};
    struct told_use use;

    do_ask(world, sandbox_sleep, three);
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++)
        provider_fake_hold(world->provider, kinds[i], true);
    sandbox_create(world->domain, &world->caller, &spec, on_created, &told[0]);
    sandbox_stop(world->domain, &world->caller, one, on_told, &told[1]);
    sandbox_start(world->domain, &world->caller, one, on_told, &told[2]);
    sandbox_sleep(world->domain, &world->caller, two, on_told, &told[3]);
    sandbox_destroy(world->domain, &world->caller, four, on_told, &told[4]);
    use_begin(world, three, &use, 0);
    world_wait(world);
    world_close(world);
    for (size_t i = 0; i < 4; i++)
        expect_code(&told[i], ERR_UNAVAILABLE);
    expect_ok(&told[4]); /* its row is gone, and recovery does the rest */
    assert_int_equal(use.times, 1);
    assert_int_equal(use.failure.code, ERR_UNAVAILABLE);
}

static void closing_does_not_wait_for_silent_agents(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct told told = {.times = 0};

    world->mood = AGENT_IS_SILENT;
    sandbox_sleep(world->domain, &world->caller, sandbox, on_told, &told);
    world_wait(world);
    world_close(world);
    expect_code(&told, ERR_UNAVAILABLE);
}

static void a_domain_that_never_opened_can_be_closed(void **state)
{
    struct world *world = world_new(NULL);

    (void) state;
    world_make_provider(world);
    world->options.store = world->store;
    world->options.provider = world->provider;
    world->domain = domain_new(&world->options);
    world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(an_end_is_told_with_its_reason),
        WORLD_TEST(an_end_while_it_is_being_created_is_told_after_that),
        WORLD_TEST(an_end_while_it_falls_asleep_is_no_sleep),
        WORLD_TEST(a_stop_of_one_that_ended_keeps_it_down),
        WORLD_TEST(a_sandbox_that_the_provider_lost_is_in_error),
        WORLD_TEST(losing_the_provider_is_passed_on),
        WORLD_TEST(a_silent_agent_holds_up_neither_sleep_nor_wake_nor_stop),
        WORLD_TEST(a_failing_agent_holds_up_nothing_either),
        WORLD_TEST(closing_answers_everything_that_waits),
        WORLD_TEST(closing_does_not_wait_for_silent_agents),
        cmocka_unit_test(a_domain_that_never_opened_can_be_closed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
