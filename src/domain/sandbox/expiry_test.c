#include "domain/domain_testing.h"

static struct sandbox *create_with(struct world *world, const struct sandbox_spec *spec)
{
    struct told told = ask_create(world, &world->caller, spec);

    expect_ok(&told);
    return told.sandbox;
}

static struct sandbox_spec sleepy(uint64_t sleep_after_ms)
{
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;

    spec.sleep_after_ms = sleep_after_ms;
    return spec;
}

/* --- idle ------------------------------------------------------------------------------------- */

static void an_idle_one_falls_asleep(void **state)
{
    struct world *world = *state;
    struct sandbox_spec spec = sleepy(30000);
    struct sandbox *sandbox = create_with(world, &spec);

    world_pass(world, 29);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    assert_int_equal(world->asked_activity, 0); /* nobody is asked before it is time */
    world_pass(world, 1);
    TURN_UNTIL(&world->loop, sandbox->status == SANDBOX_FROZEN);
    assert_string_equal(sandbox->reason, "idle");
    assert_int_equal(world->asked_activity, 1);
    world_pass(world, 1);
    expect_events(world, &sandbox->id, "sandbox.created sandbox.hibernated");
}

static void the_default_is_ten_minutes(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");

    world_pass(world, 599);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    world_pass(world, 1);
    TURN_UNTIL(&world->loop, sandbox->status == SANDBOX_FROZEN);
}

static void some_never_sleep(void **state)
{
    struct world *world = *state;
    struct sandbox_spec spec = sleepy(0);
    struct sandbox *never = create_with(world, &spec), *kept;

    spec = sleepy(1000);
    spec.keep_alive = true;
    kept = create_with(world, &spec);
    world_pass(world, 5);
    clock_manual_advance(&world->clock, 3600000);
    world_pass(world, 5);
    assert_int_equal(never->status, SANDBOX_RUNNING);
    assert_int_equal(kept->status, SANDBOX_RUNNING);
    assert_int_equal(world->asked_activity, 0);
}

static void an_open_use_keeps_it_awake_and_its_end_begins_the_idle_time(void **state)
{
    struct world *world = *state;
    struct sandbox_spec spec = sleepy(10000);
    struct sandbox *sandbox = create_with(world, &spec);
    struct told_use one, two;

    use_begin(world, sandbox, &one, 0);
    use_begin(world, sandbox, &two, 0);
    world_pass(world, 30);
    sandbox_use_end(&one.use);
    world_pass(world, 30);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    sandbox_use_end(&two.use);
    world_pass(world, 9);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    world_pass(world, 1);
    TURN_UNTIL(&world->loop, sandbox->status == SANDBOX_FROZEN);
}

static void a_touch_begins_the_idle_time_anew(void **state)
{
    struct world *world = *state;
    struct sandbox_spec spec = sleepy(10000);
    struct sandbox *sandbox = create_with(world, &spec);

    for (int i = 0; i < 5; i++) {
        world_pass(world, 8);
        sandbox_touch(world->domain, sandbox);
    }
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    assert_int_equal(sandbox->active_ms, WORLD_START_MS + 40000);
    world_pass(world, 10);
    TURN_UNTIL(&world->loop, sandbox->status == SANDBOX_FROZEN);
}

static void a_busy_agent_keeps_it_awake(void **state)
{
    struct world *world = *state;
    struct sandbox_spec spec = sleepy(10000);
    struct sandbox *sandbox = create_with(world, &spec);

    world->activity = (struct inside_activity){.is_busy = true};
    world_pass(world, 55);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    assert_int_equal(world->asked_activity, 5);                  /* once per idle time */
    world->activity = (struct inside_activity){.idle_ms = 4000}; /* it was, until now */
    world_pass(world, 5);
    assert_int_equal(world->asked_activity, 6);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    world->activity.idle_ms = 10000;
    world_pass(world, 6);
    TURN_UNTIL(&world->loop, sandbox->status == SANDBOX_FROZEN);
}

static void an_agent_that_fails_or_is_silent_counts_as_idle(void **state)
{
    struct world *world = *state;
    struct sandbox_spec spec = sleepy(10000);
    struct sandbox *failing = create_with(world, &spec), *silent;

    world->mood = AGENT_FAILS;
    world_pass(world, 11);
    TURN_UNTIL(&world->loop, failing->status == SANDBOX_FROZEN);
    world->mood = AGENT_ANSWERS;
    silent = create_with(world, &spec);
    world->mood = AGENT_IS_SILENT;
    world_pass(world, 18);
    TURN_UNTIL(&world->loop, silent->status == SANDBOX_FROZEN);
}

static void a_use_while_the_agent_is_asked_keeps_it_awake(void **state)
{
    struct world *world = *state;
    struct sandbox_spec spec = sleepy(10000);
    struct sandbox *sandbox = create_with(world, &spec);
    struct told_use use;

    world->mood = AGENT_IS_SILENT;
    world_pass(world, 10);
    assert_int_equal(world->asked_activity, 1);
    use_begin(world, sandbox, &use, 0);
    world_pass(world, 10);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    sandbox_use_end(&use.use);
}

static void a_sleep_that_fails_is_tried_again_later(void **state)
{
    struct world *world = *state;
    struct sandbox_spec spec = sleepy(10000);
    struct sandbox *sandbox = create_with(world, &spec);

    provider_fake_fail_next(world->provider, PROVIDER_CALL_FREEZE, ERR_INTERNAL);
    world_pass(world, 12);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    assert_int_equal(world->asked_quiesce, 1);
    world_pass(world, 5);
    assert_int_equal(world->asked_quiesce, 1);
    world_pass(world, 6);
    TURN_UNTIL(&world->loop, sandbox->status == SANDBOX_FROZEN);
}

static void a_changed_sleep_after_holds_at_once(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct sandbox_change update = {.fields = SPEC_BIT(sleep_after_ms), .spec = sleepy(5000)};
    struct told told = ask_update(world, sandbox, &update);

    expect_ok(&told);
    world_pass(world, 6);
    TURN_UNTIL(&world->loop, sandbox->status == SANDBOX_FROZEN);
}

static void without_an_agent_the_daemons_own_idle_time_counts(void **state)
{
    struct world *world = world_new(NULL);
    struct sandbox_spec spec = sleepy(5000);
    struct sandbox *sandbox;

    (void) state;
    world->options.inside = NULL;
    world_open(world);
    sandbox = create_with(world, &spec);
    world_pass(world, 5);
    TURN_UNTIL(&world->loop, sandbox->status == SANDBOX_FROZEN);
    world_free(world);
}

/* --- memory ------------------------------------------------------------------------------------
 */

static void a_long_sleep_gives_up_the_memory(void **state)
{
    struct world *world = world_new(NULL);
    struct sandbox *sandbox;

    (void) state;
    world->options.hibernate_after_ms = 60000;
    world_open(world);
    sandbox = world_create(world, "demo");
    do_ask(world, sandbox_sleep, sandbox);
    world_pass(world, 59);
    assert_int_equal(sandbox->status, SANDBOX_FROZEN);
    world_pass(world, 1);
    TURN_UNTIL(&world->loop, sandbox->status == SANDBOX_HIBERNATED);
    assert_int_equal(world->asked_save, 1);
    assert_int_equal(world_state(world, &sandbox->id), RUN_STATE_STOPPED);
    world_pass(world, 1);
    expect_row(world, &sandbox->id, "hibernated");
    expect_events(world, &sandbox->id, "sandbox.created sandbox.hibernated sandbox.hibernated");
    use_once(world, sandbox);
    assert_string_equal(world->restored, world->saved);
    world_free(world);
}

static void one_that_cannot_give_it_up_goes_on_running(void **state)
{
    struct world *world = world_new(NULL);
    struct sandbox *sandbox;

    (void) state;
    world->options.hibernate_after_ms = 10000;
    world_open(world);
    sandbox = world_create(world, "demo");
    do_ask(world, sandbox_sleep, sandbox);
    provider_fake_fail_next(world->provider, PROVIDER_CALL_STOP, ERR_INTERNAL);
    world_pass(world, 12);
    TURN_UNTIL(&world->loop, sandbox->status == SANDBOX_RUNNING);
    assert_int_equal(world_state(world, &sandbox->id), RUN_STATE_RUNNING);
    world_pass(world, 1);
    expect_row(world, &sandbox->id, "running");
    world_free(world);
}

/* It may have been stopped or not. A row that says "running" would make it one that died. */
static void one_whose_launcher_is_lost_on_the_way_sleeps_on(void **state)
{
    struct world *world = world_new(NULL);
    struct sandbox *sandbox;
    struct id id;

    (void) state;
    world->options.hibernate_after_ms = 10000;
    world_open(world);
    sandbox = world_create(world, "demo");
    id = sandbox->id;
    do_ask(world, sandbox_sleep, sandbox);
    provider_fake_hold(world->provider, PROVIDER_CALL_STOP, true);
    world_pass(world, 12);
    TURN_UNTIL(&world->loop, sandbox->status == SANDBOX_STOPPING);
    for (int i = 0; i < 20; i++)
        testing_turn(&world->loop);
    provider_fake_lose(world->provider, "it was killed");
    TURN_UNTIL(&world->loop, sandbox->status != SANDBOX_STOPPING);
    world_close(world);
    world_make_provider(world);
    provider_fake_add(world->provider, &id, RUN_STATE_STOPPED, NULL);
    world_open(world);
    sandbox = sandbox_find(world->domain, &world->caller, id.text, NULL);
    assert_non_null(sandbox);
    assert_int_equal(sandbox->status, SANDBOX_HIBERNATED);
    world_free(world);
}

/* --- run and life ------------------------------------------------------------------------------
 */

static void a_run_is_ended_and_the_next_use_begins_another(void **state)
{
    struct world *world = *state;
    struct sandbox_spec spec = sleepy(0);
    struct sandbox *sandbox;
    struct told_use use;

    spec.max_runtime_ms = 20000;
    sandbox = create_with(world, &spec);
    use_begin(world, sandbox, &use, 0); /* does not help */
    world_pass(world, 19);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    world_pass(world, 1);
    TURN_UNTIL(&world->loop, sandbox->status == SANDBOX_STOPPED);
    assert_false(sandbox->is_ended_by_request);
    assert_non_null(strstr(sandbox->reason, "as long as it may"));
    sandbox_use_end(&use.use);
    use_once(world, sandbox);
    world_pass(world, 19);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    world_pass(world, 1);
    TURN_UNTIL(&world->loop, sandbox->status == SANDBOX_STOPPED);
}

static void a_life_ends_in_whatever_state(void **state)
{
    static sandbox_call *const before[] = {sandbox_wake, sandbox_sleep, sandbox_stop};
    struct world *world = *state;

    for (size_t i = 0; i < ARRAY_COUNT(before); i++) {
        struct sandbox_spec spec = sleepy(0);
        struct sandbox *sandbox;
        struct id id;

        spec.lifetime_ms = 20000;
        sandbox = create_with(world, &spec);
        id = sandbox->id;
        do_ask(world, before[i], sandbox);
        world_pass(world, 19);
        assert_non_null(sandbox_find(world->domain, &world->caller, id.text, NULL));
        world_pass(world, 1);
        TURN_UNTIL(&world->loop, !sandbox_find(world->domain, &world->caller, id.text, NULL));
    }
    world_pass(world, 1);
    assert_int_equal(world_provider(world).count, 0);
}

static void a_life_that_cannot_be_ended_is_tried_again(void **state)
{
    struct world *world = *state;
    struct sandbox_spec spec = sleepy(0);
    struct id id;

    spec.lifetime_ms = 5000;
    id = create_with(world, &spec)->id;
    world->refuse_all = true;
    world_pass(world, 8);
    world->refuse_all = false;
    assert_non_null(sandbox_find(world->domain, &world->caller, id.text, NULL));
    world_pass(world, 10);
    assert_null(sandbox_find(world->domain, &world->caller, id.text, NULL));
}

/* --- clocks ------------------------------------------------------------------------------------
 */

static void a_wall_clock_that_jumps_puts_nothing_to_sleep(void **state)
{
    struct world *world = *state;
    struct sandbox_spec spec = sleepy(60000);
    struct sandbox *sandbox;

    spec.max_runtime_ms = 60000;
    sandbox = create_with(world, &spec);
    world_pass(world, 1);
    world->clock.wall_ms += INT64_C(86400000) * 365;
    world_pass(world, 2);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    world->clock.wall_ms -= INT64_C(86400000) * 730;
    world_pass(world, 55);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    world_pass(world, 2);
    TURN_UNTIL(&world->loop, sandbox->status == SANDBOX_STOPPED);
}

static void a_jump_forward_ends_the_lives_that_are_over_and_no_others(void **state)
{
    struct world *world = *state;
    struct sandbox_spec spec = sleepy(0);
    struct id shorter, longer;

    spec.lifetime_ms = 3600000;
    shorter = create_with(world, &spec)->id;
    spec.lifetime_ms = 7200000;
    longer = create_with(world, &spec)->id;
    world_pass(world, 1);
    world->clock.wall_ms += 3700000;
    world_pass(world, 2);
    assert_null(sandbox_find(world->domain, &world->caller, shorter.text, NULL));
    assert_non_null(sandbox_find(world->domain, &world->caller, longer.text, NULL));
}

static void a_jump_backwards_lengthens_lives_and_revives_nothing(void **state)
{
    struct world *world = *state;
    struct sandbox_spec spec = sleepy(0);
    struct id gone, there;

    spec.lifetime_ms = 5000;
    gone = create_with(world, &spec)->id;
    spec.lifetime_ms = 20000;
    there = create_with(world, &spec)->id;
    world_pass(world, 6);
    assert_null(sandbox_find(world->domain, &world->caller, gone.text, NULL));
    world->clock.wall_ms -= 100000;
    world_pass(world, 30);
    assert_null(sandbox_find(world->domain, &world->caller, gone.text, NULL));
    assert_non_null(sandbox_find(world->domain, &world->caller, there.text, NULL));
    world_pass(world, 90);
    assert_null(sandbox_find(world->domain, &world->caller, there.text, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(an_idle_one_falls_asleep),
        WORLD_TEST(the_default_is_ten_minutes),
        WORLD_TEST(some_never_sleep),
        WORLD_TEST(an_open_use_keeps_it_awake_and_its_end_begins_the_idle_time),
        WORLD_TEST(a_touch_begins_the_idle_time_anew),
        WORLD_TEST(a_busy_agent_keeps_it_awake),
        WORLD_TEST(an_agent_that_fails_or_is_silent_counts_as_idle),
        WORLD_TEST(a_use_while_the_agent_is_asked_keeps_it_awake),
        WORLD_TEST(a_sleep_that_fails_is_tried_again_later),
        WORLD_TEST(a_changed_sleep_after_holds_at_once),
        cmocka_unit_test(without_an_agent_the_daemons_own_idle_time_counts),
        cmocka_unit_test(a_long_sleep_gives_up_the_memory),
        cmocka_unit_test(one_that_cannot_give_it_up_goes_on_running),
        cmocka_unit_test(one_whose_launcher_is_lost_on_the_way_sleeps_on),
        WORLD_TEST(a_run_is_ended_and_the_next_use_begins_another),
        WORLD_TEST(a_life_ends_in_whatever_state),
        WORLD_TEST(a_life_that_cannot_be_ended_is_tried_again),
        WORLD_TEST(a_wall_clock_that_jumps_puts_nothing_to_sleep),
        WORLD_TEST(a_jump_forward_ends_the_lives_that_are_over_and_no_others),
        WORLD_TEST(a_jump_backwards_lengthens_lives_and_revives_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
