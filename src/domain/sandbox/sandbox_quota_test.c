#include "domain/domain_testing.h"

static struct world *open_with(const struct quota *quota)
{
    struct world *world = world_new(NULL);

    world->options.default_quota = *quota;
    world_open(world);
    return world;
}

static struct told create_with(struct world *world, const struct limits *limits)
{
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;

    if (limits)
        spec.limits = *limits;
    return ask_create(world, &world->caller, &spec);
}

static void so_many_sandboxes_and_no_more(void **state)
{
    struct world *world = open_with(&(struct quota){.sandboxes = 2});
    struct caller other = {.scope = CALLER_WRITE, .owner = id_new()};
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct sandbox *sandbox = world_create(world, "one");
    struct told told;

    (void) state;
    (void) world_create(world, "two");
    told = create_with(world, NULL);
    expect_code(&told, ERR_QUOTA);
    assert_non_null(strstr(told.failure.message, "2 of at most 2"));
    told = ask_create(world, &other, &spec); /* each owner has a quota of its own */
    expect_ok(&told);
    do_ask(world, sandbox_sleep, sandbox); /* asleep is still there */
    told = create_with(world, NULL);
    expect_code(&told, ERR_QUOTA);
    do_ask(world, sandbox_destroy, sandbox);
    told = create_with(world, NULL);
    expect_ok(&told);
    world_free(world);
}

static void creates_under_way_count(void **state)
{
    struct world *world = open_with(&(struct quota){.sandboxes = 2});
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct told told[4] = {{.times = 0}};
    int made = 0;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(told); i++)
        sandbox_create(world->domain, &world->caller, &spec, on_created, &told[i]);
    for (size_t i = 0; i < ARRAY_COUNT(told); i++) {
        TURN_UNTIL(&world->loop, told[i].times);
        made += !told[i].failed;
    }
    assert_int_equal(made, 2);
    world_free(world);
}

static void waking_needs_room_among_those_that_run(void **state)
{
    struct world *world = open_with(&(struct quota){.running = 1});
    struct sandbox *one = world_create(world, "one"), *two;
    struct told_use use;
    struct told told;

    (void) state;
    do_ask(world, sandbox_sleep, one);
    two = world_create(world, "two");
    use_begin(world, one, &use, 0);
    TURN_UNTIL(&world->loop, use.times);
    assert_int_equal(use.failure.code, ERR_QUOTA);
    told = ask(world, sandbox_wake, one);
    expect_code(&told, ERR_QUOTA);
    assert_non_null(strstr(told.failure.message, "running sandboxes"));
    assert_int_equal(one->status, SANDBOX_FROZEN);
    do_ask(world, sandbox_stop, two);
    use_once(world, one);
    told = ask(world, sandbox_start, two);
    expect_code(&told, ERR_QUOTA);
    assert_int_equal(two->status, SANDBOX_STOPPED);
    world_free(world);
}

static void limits_together_stay_within_the_quota(void **state)
{
    struct world *world =
        open_with(&(struct quota){.memory_bytes = 1000, .cpu_millis = 1000, .disk_bytes = 1000});
    struct limits limits = {.memory_bytes = 600, .cpu_millis = 300, .disk_bytes = 300};
    struct told told = create_with(world, &limits);
    struct sandbox *first = told.sandbox;

    (void) state;
    expect_ok(&told);
    told = create_with(world, &limits);
    expect_code(&told, ERR_QUOTA);
    assert_non_null(strstr(told.failure.message, "memory"));
    do_ask(world, sandbox_sleep, first); /* memory and cpu count for those that run */
    limits.cpu_millis = 1001;
    told = create_with(world, &limits);
    expect_code(&told, ERR_QUOTA);
    assert_non_null(strstr(told.failure.message, "cpu"));
    limits.cpu_millis = 300;
    told = create_with(world, &limits);
    expect_ok(&told);
    limits = (struct limits){.memory_bytes = 1, .cpu_millis = 1, .disk_bytes = 500};
    told = create_with(world, &limits); /* disks of all */
    expect_code(&told, ERR_QUOTA);
    assert_non_null(strstr(told.failure.message, "disk"));
    world_free(world);
}

static void without_a_limit_of_its_own_it_could_use_all(void **state)
{
    struct world *world = open_with(&(struct quota){.memory_bytes = 1000});
    struct told told = create_with(world, NULL);

    (void) state;
    expect_code(&told, ERR_QUOTA);
    assert_non_null(strstr(told.failure.message, "ask for a limit"));
    world_free(world);
}

static void a_bigger_one_needs_room_too(void **state)
{
    struct world *world = open_with(&(struct quota){.memory_bytes = 1000});
    struct limits limits = {.memory_bytes = 400};
    struct told told = create_with(world, &limits);
    struct sandbox *first = told.sandbox;
    struct sandbox_change update = {.fields = SPEC_BIT(limits)};

    (void) state;
    told = create_with(world, &limits);
    expect_ok(&told);
    update.spec.limits.memory_bytes = 601;
    told = ask_update(world, first, &update);
    expect_code(&told, ERR_QUOTA);
    update.spec.limits.memory_bytes = 600;
    told = ask_update(world, first, &update);
    expect_ok(&told);
    do_ask(world, sandbox_sleep, first);
    update.spec.limits.memory_bytes = 601;
    told = ask_update(world, first, &update); /* asleep it takes none */
    expect_ok(&told);
    told = ask(world, sandbox_wake, first);
    expect_code(&told, ERR_QUOTA);
    world_free(world);
}

static void failures_give_back_what_they_took(void **state)
{
    struct world *world = open_with(&(struct quota){.sandboxes = 1, .memory_bytes = 1000});
    struct limits limits = {.memory_bytes = 1000};
    struct told told;

    (void) state;
    provider_fake_fail_next(world->provider, PROVIDER_CALL_CREATE, ERR_INTERNAL);
    told = create_with(world, &limits);
    expect_code(&told, ERR_INTERNAL);
    world->refuse_commit = 1;
    told = create_with(world, &limits);
    expect_code(&told, ERR_NO_SPACE);
    told = create_with(world, &limits);
    expect_ok(&told);
    world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(so_many_sandboxes_and_no_more),
        cmocka_unit_test(creates_under_way_count),
        cmocka_unit_test(waking_needs_room_among_those_that_run),
        cmocka_unit_test(limits_together_stay_within_the_quota),
        cmocka_unit_test(without_a_limit_of_its_own_it_could_use_all),
        cmocka_unit_test(a_bigger_one_needs_room_too),
        cmocka_unit_test(failures_give_back_what_they_took),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
