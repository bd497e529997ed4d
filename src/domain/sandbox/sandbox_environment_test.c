/* The environment of a sandbox: told to its agent before anybody uses it. */
#include "domain/domain_testing.h"
#include "domain/inside_call.h"

static struct sandbox_spec spec_with_variables(void)
{
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;

    spec.name = mem_copy_text("demo");
    sandbox_pairs_set(&spec.environment, "GREETING", "hello");
    sandbox_pairs_set(&spec.environment, "EMPTY", "");
    return spec;
}

static struct told create_with_variables(struct world *world)
{
    AUTO(sandbox_spec) struct sandbox_spec spec = spec_with_variables();

    return ask_create(world, &world->caller, &spec);
}

static void a_new_sandbox_has_its_variables_when_it_is_answered(void **state)
{
    struct world *world = *state;
    struct told told = create_with_variables(world);

    expect_ok(&told);
    assert_int_equal(world->asked_environment, 1);
    assert_string_equal(world->environment, "{\"GREETING\":\"hello\",\"EMPTY\":\"\"}");
}

static void without_variables_the_agent_is_left_alone(void **state)
{
    struct world *world = *state;

    do_ask(world, sandbox_stop, world_create(world, "demo"));
    assert_int_equal(world->asked_environment, 0);
}

/* Nothing runs, and its name is free. */
static void expect_nothing_left(struct world *world)
{
    struct told told;

    assert_int_equal(world_provider(world).count, 0);
    world->mood = AGENT_ANSWERS;
    told = create_with_variables(world);
    expect_ok(&told);
    assert_true(told.is_new);
}

static void an_agent_that_does_not_take_them_fails_the_create(void **state)
{
    struct world *world = *state;
    struct told told;

    world->mood = AGENT_FAILS;
    told = create_with_variables(world);
    expect_code(&told, ERR_UPSTREAM);
    assert_non_null(strstr(told.failure.message, "environment"));
    expect_nothing_left(world);
}

static void begin_silent_create(struct world *world, struct told *told)
{
    AUTO(sandbox_spec) struct sandbox_spec spec = spec_with_variables();

    world->mood = AGENT_IS_SILENT;
    sandbox_create(world->domain, &world->caller, &spec, on_created, told);
    TURN_UNTIL(&world->loop, world->asked_environment);
    assert_int_equal(told->times, 0);
}

static void an_agent_that_says_nothing_fails_the_create(void **state)
{
    struct world *world = *state;
    struct told told = {.times = 0};

    begin_silent_create(world, &told);
    world_pass(world, INSIDE_BEGIN_PATIENCE_MS / 1000 + 1);
    assert_int_equal(told.times, 1);
    expect_code(&told, ERR_UPSTREAM_TIMEOUT);
    expect_nothing_left(world);
}

/* As a daemon that is killed there: what runs has no row, and is taken down by the next one. */
static void closing_meanwhile_leaves_nothing_acknowledged(void **state)
{
    struct world *world = *state;
    struct told told = {.times = 0};

    begin_silent_create(world, &told);
    world_close(world);
    assert_int_equal(told.times, 1);
    expect_code(&told, ERR_UNAVAILABLE);
    world->mood = AGENT_ANSWERS;
    world_make_provider(world);
    world_open(world);
    expect_nothing_left(world);
}

static void every_start_tells_them_again(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = create_with_variables(world).sandbox;

    do_ask(world, sandbox_stop, sandbox);
    assert_int_equal(world->asked_environment, 1);
    do_ask(world, sandbox_start, sandbox);
    assert_int_equal(world->asked_environment, 2);
    assert_string_equal(world->environment, "{\"GREETING\":\"hello\",\"EMPTY\":\"\"}");
    do_ask(world, sandbox_sleep, sandbox);
    do_ask(world, sandbox_wake, sandbox);
    assert_int_equal(world->asked_environment, 2); /* its memory was kept */
}

/* It is stopped as before, with its disk. */
static void a_start_whose_agent_does_not_take_them_fails(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = create_with_variables(world).sandbox;
    struct told told;

    do_ask(world, sandbox_stop, sandbox);
    world->mood = AGENT_FAILS;
    told = ask(world, sandbox_start, sandbox);
    expect_code(&told, ERR_UPSTREAM);
    assert_int_equal(sandbox->status, SANDBOX_STOPPED);
    assert_int_equal(world_state(world, &sandbox->id), RUN_STATE_STOPPED);
    world->mood = AGENT_ANSWERS;
    do_ask(world, sandbox_start, sandbox);
    assert_int_equal(world->asked_environment, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_new_sandbox_has_its_variables_when_it_is_answered),
        WORLD_TEST(without_variables_the_agent_is_left_alone),
        WORLD_TEST(an_agent_that_does_not_take_them_fails_the_create),
        WORLD_TEST(an_agent_that_says_nothing_fails_the_create),
        WORLD_TEST(closing_meanwhile_leaves_nothing_acknowledged),
        WORLD_TEST(every_start_tells_them_again),
        WORLD_TEST(a_start_whose_agent_does_not_take_them_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
