#include "base/fault.h"
#include "domain/domain_testing.h"

static void a_use_of_a_running_one_is_ready_at_once_and_costs_nothing(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct told_use use;
    int commits = world->commits;

    fault_arm(FAULT_ALLOCATION, 1, 0); /* an allocation would end the program */
    use_begin(world, sandbox, &use, 0);
    assert_int_equal(use.times, 1);
    assert_false(use.failed);
    assert_true(use.use.is_ready);
    sandbox_use_end(&use.use);
    assert_false(fault_disarm(FAULT_ALLOCATION));
    assert_int_equal(sandbox->uses, 0);
    world_wait(world);
    assert_int_equal(world->commits, commits);
}

static void a_use_wakes_and_all_that_come_meanwhile_share_it(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct told_use uses[10];
    struct told told = {.times = 0};

    do_ask(world, sandbox_sleep, sandbox);
    provider_fake_hold(world->provider, PROVIDER_CALL_THAW, true);
    for (size_t i = 0; i < ARRAY_COUNT(uses); i++)
        use_begin(world, sandbox, &uses[i], 0);
    sandbox_wake(world->domain, &world->caller, sandbox, on_told, &told);
    world_wait(world);
    assert_int_equal(sandbox->status, SANDBOX_WAKING);
    for (size_t i = 0; i < ARRAY_COUNT(uses); i++)
        assert_int_equal(uses[i].times, 0);
    provider_fake_hold(world->provider, PROVIDER_CALL_THAW, false);
    TURN_UNTIL(&world->loop, told.times);
    for (size_t i = 0; i < ARRAY_COUNT(uses); i++) {
        assert_int_equal(uses[i].times, 1);
        assert_false(uses[i].failed);
        sandbox_use_end(&uses[i].use);
    }
    expect_ok(&told);
    expect_events(world, &sandbox->id, "sandbox.created sandbox.hibernated sandbox.woken");
}

static void uses_go_before_the_wake_is_kept(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct told_use use;

    do_ask(world, sandbox_sleep, sandbox);
    world->refuse_all = true;
    use_begin(world, sandbox, &use, 0);
    TURN_UNTIL(&world->loop, use.times);
    assert_false(use.failed);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    world_wait(world);
    expect_row(world, &sandbox->id, "frozen");
    world->refuse_all = false;
    world_pass(world, 1);
    expect_row(world, &sandbox->id, "running");
    expect_events(world, &sandbox->id, "sandbox.created sandbox.hibernated sandbox.woken");
    sandbox_use_end(&use.use);
}

static void a_wake_that_fails_fails_for_all_and_the_next_tries_again(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct told_use uses[3];
    struct told wake = {.times = 0}, start = {.times = 0};

    do_ask(world, sandbox_sleep, sandbox);
    provider_fake_fail_next(world->provider, PROVIDER_CALL_THAW, ERR_INTERNAL);
    for (size_t i = 0; i < ARRAY_COUNT(uses); i++)
        use_begin(world, sandbox, &uses[i], 0);
    sandbox_wake(world->domain, &world->caller, sandbox, on_told, &wake);
    sandbox_start(world->domain, &world->caller, sandbox, on_told, &start);
    TURN_UNTIL(&world->loop, wake.times && start.times);
    expect_code(&wake, ERR_INTERNAL);
    expect_code(&start, ERR_INTERNAL);
    for (size_t i = 0; i < ARRAY_COUNT(uses); i++) {
        assert_int_equal(uses[i].times, 1);
        assert_int_equal(uses[i].failure.code, ERR_INTERNAL);
        sandbox_use_end(&uses[i].use); /* does no harm */
    }
    assert_int_equal(sandbox->status, SANDBOX_FROZEN);
    assert_int_equal(sandbox->uses, 0);
    use_once(world, sandbox);
}

static void a_use_does_not_start_what_somebody_stopped(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct told_use use;

    do_ask(world, sandbox_stop, sandbox);
    use_begin(world, sandbox, &use, 0);
    assert_int_equal(use.times, 1);
    assert_int_equal(use.failure.code, ERR_CONFLICT);
    assert_non_null(strstr(use.failure.message, "start it first"));
    assert_null(use.use.sandbox);
    use_begin(world, sandbox, &use, SANDBOX_USE_START);
    TURN_UNTIL(&world->loop, use.times);
    assert_false(use.failed);
    sandbox_use_end(&use.use);
}

static void a_quiet_use_wakes_nothing(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct told_use use;

    use_begin(world, sandbox, &use, SANDBOX_USE_QUIET);
    assert_false(use.failed);
    sandbox_use_end(&use.use);
    do_ask(world, sandbox_sleep, sandbox);
    use_begin(world, sandbox, &use, SANDBOX_USE_QUIET);
    assert_int_equal(use.times, 1);
    assert_int_equal(use.failure.code, ERR_CONFLICT);
    assert_int_equal(sandbox->status, SANDBOX_FROZEN);
}

static void a_use_that_ends_before_it_is_ready_is_not_called(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct told_use one, two;

    do_ask(world, sandbox_sleep, sandbox);
    use_begin(world, sandbox, &one, 0);
    use_begin(world, sandbox, &two, 0);
    sandbox_use_end(&one.use);
    TURN_UNTIL(&world->loop, two.times);
    assert_int_equal(one.times, 0);
    assert_false(two.failed);
    sandbox_use_end(&two.use);
    sandbox_use_end(&two.use); /* does no harm */
    assert_int_equal(sandbox->uses, 0);
}

static void a_use_that_was_never_begun_can_be_ended(void **state)
{
    struct sandbox_use use = {.is_ready = false};

    (void) state;
    sandbox_use_end(&use);
}

static void a_use_during_a_stop_is_refused_when_it_is_over(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct told stop = {.times = 0};
    struct told_use plain, eager;

    provider_fake_hold(world->provider, PROVIDER_CALL_STOP, true);
    sandbox_stop(world->domain, &world->caller, sandbox, on_told, &stop);
    use_begin(world, sandbox, &plain, 0);
    use_begin(world, sandbox, &eager, SANDBOX_USE_START);
    world_wait(world);
    provider_fake_hold(world->provider, PROVIDER_CALL_STOP, false);
    TURN_UNTIL(&world->loop, plain.times && eager.times && stop.times);
    assert_int_equal(plain.failure.code, ERR_CONFLICT);
    assert_false(eager.failed);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    sandbox_use_end(&eager.use);
}

static void a_use_while_it_falls_asleep_wakes_it_again(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct told sleep = {.times = 0};
    struct told_use use;

    sandbox_sleep(world->domain, &world->caller, sandbox, on_told, &sleep);
    use_begin(world, sandbox, &use, 0);
    assert_int_equal(use.times, 0);
    TURN_UNTIL(&world->loop, use.times && sleep.times);
    expect_ok(&sleep);
    assert_false(use.failed);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    sandbox_use_end(&use.use);
}

static void a_sandbox_in_use_may_be_destroyed_and_is_freed_with_its_last_use(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct told_use ready, late;

    use_begin(world, sandbox, &ready, 0);
    do_ask(world, sandbox_destroy, sandbox);
    assert_int_equal(sandbox->status, SANDBOX_DESTROYED); /* and still there */
    use_begin(world, sandbox, &late, 0);
    assert_int_equal(late.times, 1);
    assert_int_equal(late.failure.code, ERR_NOT_FOUND);
    sandbox_use_end(&ready.use);
}

static void uses_that_wait_for_what_is_destroyed_are_told(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct told destroy = {.times = 0};
    struct told_use use;

    do_ask(world, sandbox_sleep, sandbox);
    sandbox_destroy(world->domain, &world->caller, sandbox, on_told, &destroy);
    use_begin(world, sandbox, &use, 0);
    TURN_UNTIL(&world->loop, use.times && destroy.times);
    assert_int_equal(use.failure.code, ERR_NOT_FOUND);
}

/* A use whose answer ends it and begins the next. */
struct chain {
    struct sandbox_use use;
    struct world *world;
    struct sandbox *sandbox;
    int left;
};

static void on_chain(struct sandbox_use *use, const struct error *failure)
{
    struct chain *chain = CONTAINER_OF(use, struct chain, use);

    assert_null(failure);
    sandbox_use_end(use);
    if (--chain->left)
        sandbox_use_begin(chain->world->domain, chain->sandbox, use, 0, on_chain);
}

static void answers_may_end_and_begin_uses(void **state)
{
    struct world *world = *state;
    struct chain chains[3];

    for (size_t i = 0; i < ARRAY_COUNT(chains); i++)
        chains[i] = (struct chain){.world = world, .left = 4};
    chains[0].sandbox = chains[1].sandbox = chains[2].sandbox = world_create(world, "demo");
    do_ask(world, sandbox_sleep, chains[0].sandbox);
    for (size_t i = 0; i < ARRAY_COUNT(chains); i++)
        sandbox_use_begin(world->domain, chains[i].sandbox, &chains[i].use, 0, on_chain);
    TURN_UNTIL(&world->loop, !chains[0].left && !chains[1].left && !chains[2].left);
    assert_int_equal(chains[0].sandbox->uses, 0);
}

static void closing_waits_for_open_uses(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct told_use use;

    use_begin(world, sandbox, &use, 0);
    domain_close(world->domain, world_on_closed, world);
    world_wait(world);
    assert_int_equal(world->closed, 0);
    sandbox_use_end(&use.use);
    TURN_UNTIL(&world->loop, world->closed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_use_of_a_running_one_is_ready_at_once_and_costs_nothing),
        WORLD_TEST(a_use_wakes_and_all_that_come_meanwhile_share_it),
        WORLD_TEST(uses_go_before_the_wake_is_kept),
        WORLD_TEST(a_wake_that_fails_fails_for_all_and_the_next_tries_again),
        WORLD_TEST(a_use_does_not_start_what_somebody_stopped),
        WORLD_TEST(a_quiet_use_wakes_nothing),
        WORLD_TEST(a_use_that_ends_before_it_is_ready_is_not_called),
        cmocka_unit_test(a_use_that_was_never_begun_can_be_ended),
        WORLD_TEST(a_use_during_a_stop_is_refused_when_it_is_over),
        WORLD_TEST(a_use_while_it_falls_asleep_wakes_it_again),
        WORLD_TEST(a_sandbox_in_use_may_be_destroyed_and_is_freed_with_its_last_use),
        WORLD_TEST(uses_that_wait_for_what_is_destroyed_are_told),
        WORLD_TEST(answers_may_end_and_begin_uses),
        WORLD_TEST(closing_waits_for_open_uses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
