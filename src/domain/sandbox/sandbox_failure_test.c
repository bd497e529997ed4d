/* What happens when the store or the provider fails at each step: no leak and no lie. */
#include "domain/domain_testing.h"

/* As after a restart: what is in memory is what the rows and the provider say together. */
static void expect_in_order(struct world *world)
{
    struct provider_view view = world_provider(world);
    size_t counts[SANDBOX_STATUS_COUNT], total = 0;

    sandbox_count(world->domain, NULL, counts);
    for (size_t i = 0; i < SANDBOX_STATUS_COUNT; i++)
        total += counts[i];
    assert_int_equal(counts[SANDBOX_CREATING] + counts[SANDBOX_STARTING] + counts[SANDBOX_WAKING] +
                         counts[SANDBOX_STOPPING],
                     0);
    assert_int_equal(view.count, total);
    for (size_t i = 0; i < view.count; i++) {
        const struct caller system = caller_system();
        struct sandbox *sandbox = sandbox_find(world->domain, &system, view.items[i].id.text, NULL);

        assert_non_null(sandbox);
        expect_row(world, &sandbox->id, sandbox_status_text(sandbox->status));
        assert_int_equal(sandbox->status == SANDBOX_RUNNING,
                         view.items[i].state == RUN_STATE_RUNNING);
        assert_int_equal(sandbox->status == SANDBOX_FROZEN,
                         view.items[i].state == RUN_STATE_FROZEN);
    }
}

static void a_create_that_cannot_be_kept_is_taken_down(void **state)
{
    struct world *world = *state;
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct told told;

    spec.name = (char *) "demo";
    world->refuse_commit = 1;
    told = ask_create(world, &world->caller, &spec);
    expect_code(&told, ERR_NO_SPACE);
    assert_int_equal(world_provider(world).count, 0);
    expect_in_order(world);
    (void) world_create(world, "demo");
    expect_in_order(world);
}

static void what_cannot_be_taken_down_is_tried_again(void **state)
{
    struct world *world = *state;
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct told told;

    world->refuse_commit = 1;
    provider_fake_fail_next(world->provider, PROVIDER_CALL_DESTROY, ERR_INTERNAL);
    told = ask_create(world, &world->caller, &spec);
    expect_code(&told, ERR_NO_SPACE);
    assert_int_equal(world_provider(world).count, 1);
    world_pass(world, 5);
    assert_int_equal(world_provider(world).count, 1);
    world_pass(world, 6);
    assert_int_equal(world_provider(world).count, 0);
}

static void a_destroy_that_cannot_be_kept_changes_nothing(void **state)
{
    static sandbox_call *const before[] = {sandbox_wake, sandbox_sleep, sandbox_stop};
    struct world *world = *state;

    for (size_t i = 0; i < ARRAY_COUNT(before); i++) {
        struct sandbox *sandbox = world_create(world, NULL);
        enum sandbox_status status;
        struct told told;

        do_ask(world, before[i], sandbox);
        status = sandbox->status;
        world->refuse_commit = 1;
        told = ask(world, sandbox_destroy, sandbox);
        expect_code(&told, ERR_NO_SPACE);
        assert_int_equal(sandbox->status, status);
        expect_in_order(world);
        do_ask(world, sandbox_destroy, sandbox);
    }
    assert_int_equal(world_provider(world).count, 0);
}

static void a_destroy_whose_sandbox_resists_is_done_all_the_same(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");

    provider_fake_fail_next(world->provider, PROVIDER_CALL_DESTROY, ERR_INTERNAL);
    do_ask(world, sandbox_destroy, sandbox); /* its row is gone: nobody sees it again */
    assert_int_equal(world_provider(world).count, 1);
    world_pass(world, 11);
    assert_int_equal(world_provider(world).count, 0);
}

/* What happened has happened; whoever asked is told that it is not kept, and it is kept later. */
static void a_change_that_cannot_be_kept_is_told_and_kept_later(void **state)
{
    static const struct {
        sandbox_call *before, *call;
        enum sandbox_status status;
        const char *event;
    } cases[] = {
        {sandbox_wake, sandbox_sleep, SANDBOX_FROZEN, "sandbox.hibernated"},
        {sandbox_wake, sandbox_stop, SANDBOX_STOPPED, "sandbox.stopped"},
        {sandbox_sleep, sandbox_wake, SANDBOX_RUNNING, "sandbox.woken"},
        {sandbox_sleep, sandbox_stop, SANDBOX_STOPPED, "sandbox.stopped"},
        {sandbox_stop, sandbox_start, SANDBOX_RUNNING, "sandbox.started"},
    };
    struct world *world = *state;

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct sandbox *sandbox = world_create(world, NULL);
        AUTO(free) char *events = NULL;
        struct told told;

        do_ask(world, cases[i].before, sandbox);
        world->refuse_commit = 1;
        told = ask(world, cases[i].call, sandbox);
        expect_code(&told, ERR_NO_SPACE);
        assert_int_equal(sandbox->status, cases[i].status);
        world_pass(world, 1);
        expect_in_order(world);
        events = world_events(world, &sandbox->id);
        assert_string_equal(strrchr(events, ' ') + 1, cases[i].event);
    }
}

static void a_store_that_stays_away_loses_no_end(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct ending ending = {.kind = ENDED_OOM};

    world->refuse_all = true;
    provider_fake_exit(world->provider, &sandbox->id, &ending);
    TURN_UNTIL(&world->loop, sandbox->status == SANDBOX_STOPPED);
    world_pass(world, 3);
    expect_row(world, &sandbox->id, "running");
    world->refuse_all = false;
    world_pass(world, 1);
    expect_row(world, &sandbox->id, "stopped");
    expect_events(world, &sandbox->id, "sandbox.created sandbox.error");
}

static void a_provider_that_fails_leaves_things_as_they_were(void **state)
{
    static const struct {
        sandbox_call *before, *call;
        enum provider_call_kind fails;
    } cases[] = {
        {sandbox_wake, sandbox_sleep, PROVIDER_CALL_FREEZE},
        {sandbox_wake, sandbox_stop, PROVIDER_CALL_STOP},
        {sandbox_sleep, sandbox_wake, PROVIDER_CALL_THAW},
        {sandbox_sleep, sandbox_stop, PROVIDER_CALL_STOP},
        {sandbox_stop, sandbox_start, PROVIDER_CALL_START},
        {sandbox_stop, sandbox_wake, PROVIDER_CALL_START},
    };
    struct world *world = *state;

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct sandbox *sandbox = world_create(world, NULL);
        enum sandbox_status status;
        struct told told;

        do_ask(world, cases[i].before, sandbox);
        status = sandbox->status;
        provider_fake_fail_next(world->provider, cases[i].fails, ERR_INTERNAL);
        told = ask(world, cases[i].call, sandbox);
        expect_code(&told, ERR_INTERNAL);
        assert_int_equal(sandbox->status, status);
        expect_in_order(world);
        do_ask(world, cases[i].call, sandbox);
    }
}

static void a_freeze_that_fails_lets_the_agent_go_on(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct told told;

    provider_fake_fail_next(world->provider, PROVIDER_CALL_FREEZE, ERR_INTERNAL);
    told = ask(world, sandbox_sleep, sandbox);
    expect_code(&told, ERR_INTERNAL);
    assert_int_equal(world->asked_quiesce, 1);
    assert_int_equal(world->asked_resume, 1);
}

/* A seeded walk: whatever fails wherever, in the end everything fits. */
static void whatever_fails_everything_fits_in_the_end(void **state)
{
    static sandbox_call *const calls[] = {sandbox_stop, sandbox_start, sandbox_sleep, sandbox_wake,
                                          sandbox_destroy};
    static const enum provider_call_kind kinds[] = {PROVIDER_CALL_CREATE, PROVIDER_CALL_START,
                                                    PROVIDER_CALL_STOP,   PROVIDER_CALL_DESTROY,
                                                    PROVIDER_CALL_FREEZE, PROVIDER_CALL_THAW};
    struct world *world = *state;
    static struct told told[400];
    uint64_t seed = 11;
    char name[8];

    memset(told, 0, sizeof(told));
    for (size_t i = 0; i < ARRAY_COUNT(told); i++) {
        uint32_t number = testing_number(&seed);
        struct sandbox_spec spec = SANDBOX_SPEC_INIT;
        struct sandbox *sandbox;

        (void) snprintf(name, sizeof(name), "n%u", testing_number(&seed) % 6);
        spec.name = name;
        sandbox = sandbox_find(world->domain, &world->caller, name, NULL);
        if (number % 5 == 0)
            world->refuse_commit = (int) (number % 3 + 1);
        if (number % 7 == 0)
            provider_fake_fail_next(
                world->provider, kinds[testing_number(&seed) % ARRAY_COUNT(kinds)], ERR_INTERNAL);
        if (sandbox && number % 11 == 0)
            provider_fake_exit(world->provider, &sandbox->id, &(struct ending){.kind = ENDED_OOM});
        if (sandbox)
            calls[testing_number(&seed) % ARRAY_COUNT(calls)](world->domain, &world->caller,
                                                              sandbox, on_told, &told[i]);
        else
            sandbox_create(world->domain, &world->caller, &spec, on_created, &told[i]);
        if (number % 3 == 0)
            (void) uv_run(&world->loop.uv, UV_RUN_NOWAIT);
        if (number % 13 == 0)
            world_pass(world, 1);
    }
    for (size_t i = 0; i < ARRAY_COUNT(told); i++) {
        TURN_UNTIL(&world->loop, told[i].times);
        assert_int_equal(told[i].times, 1);
    }
    world->refuse_commit = 0;
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++)
        provider_fake_fail_next(world->provider, kinds[i], ERR_NONE);
    world_pass(world, 25);
    expect_in_order(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_create_that_cannot_be_kept_is_taken_down),
        WORLD_TEST(what_cannot_be_taken_down_is_tried_again),
        WORLD_TEST(a_destroy_that_cannot_be_kept_changes_nothing),
        WORLD_TEST(a_destroy_whose_sandbox_resists_is_done_all_the_same),
        WORLD_TEST(a_change_that_cannot_be_kept_is_told_and_kept_later),
        WORLD_TEST(a_store_that_stays_away_loses_no_end),
        WORLD_TEST(a_provider_that_fails_leaves_things_as_they_were),
        WORLD_TEST(a_freeze_that_fails_lets_the_agent_go_on),
        WORLD_TEST(whatever_fails_everything_fits_in_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
