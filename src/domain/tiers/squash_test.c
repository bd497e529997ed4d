#include "domain/sandbox/tier_testing.h"
#include "domain/snapshot/snapshot_testing.h"

static int setup(void **state)
{
    *state = tiers_new(0);
    return 0;
}

static int teardown(void **state)
{
    tiers_free(*state);
    return 0;
}

#define SQUASH_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void offload(struct tiers *tiers, struct sandbox *sandbox)
{
    do_ask(tiers->world, sandbox_sleep, sandbox);
    tiers_until(tiers, sandbox, SANDBOX_TIER_OFFLOADED);
    world_settle(tiers->world);
}

/* One whose list has two layers. */
static struct sandbox *offloaded_twice(struct tiers *tiers)
{
    struct sandbox *sandbox = tiers_offloaded(tiers);

    use_once(tiers->world, sandbox);
    offload(tiers, sandbox);
    return sandbox;
}

static size_t count_of(const char *list)
{
    AUTO(stored_disk) struct stored_disk disk = {.layers = NULL};
    struct error err = ERROR_INIT;

    assert_int_equal(stored_disk_read(list, &disk, &err), 0);
    return disk.count;
}

static void a_long_list_becomes_one_layer(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct sandbox *sandbox = offloaded_twice(tiers);

    world->domain->options.squash_above = 2;
    world_pass_quietly(world, 3);
    assert_int_equal(count_of(sandbox->stored), 2);
    assert_int_equal(tiers->stored, 2);
    world->domain->options.squash_above = 1;
    world_pass_quietly(world, 3);
    assert_int_equal(count_of(sandbox->stored), 1);
    assert_int_equal(tiers->stored, 3);
    assert_int_equal(tiers->fetched_layers, 2);
    assert_int_equal(tiers->disk.set, DISK_OF_SANDBOX); /* a scratch disk, and it is gone */
    assert_int_equal(world_provider(world).count, 0);
    assert_int_equal(world->domain->saves, 0);
    assert_int_equal(sandbox_tier(sandbox), SANDBOX_TIER_OFFLOADED);
    use_once(world, sandbox);
    assert_int_equal(tiers->fetched_layers, 1);
    assert_int_equal(tiers->layer[1], '2');
}

static void a_list_of_what_is_here_needs_no_fetching(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct sandbox *sandbox = offloaded_twice(tiers);
    struct snapshot *base;

    use_once(world, sandbox);
    world_settle(world);
    base = snapshot_set_by_id(world->domain, sandbox->base.text);
    assert_int_equal(count_of(base->layers), 2);
    tiers->fetched = 0;
    world->domain->options.squash_above = 1;
    world_pass_quietly(world, 3);
    assert_int_equal(count_of(base->layers), 1);
    assert_string_equal(tiers->disk.id.text, base->id.text);
    assert_int_equal(tiers->fetched, 0);
    offload(tiers, sandbox);
    assert_int_equal(count_of(sandbox->stored), 2);
}

static void whoever_wakes_it_meanwhile_is_first(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct sandbox *sandbox = offloaded_twice(tiers);

    tiers->holds = true;
    world->domain->options.squash_above = 1;
    world_pass(world, 1);
    TURN_UNTIL(&world->loop, tiers->held);
    world->domain->options.squash_above = 0;
    use_once(world, sandbox);
    assert_int_equal(tiers->fetched_layers, 2);
    tier_tell(&tiers->held->task);
    world_settle(world);
    assert_null(sandbox->stored);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    assert_int_equal(world_provider(world).count, 1);
}

static void what_fails_changes_nothing_and_is_left_alone_for_a_while(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct sandbox *sandbox = offloaded_twice(tiers);

    tiers->store_failure = ERR_UNAVAILABLE;
    world->domain->options.squash_above = 1;
    world_pass_quietly(world, 10);
    assert_int_equal(tiers->stored, 3);
    assert_int_equal(count_of(sandbox->stored), 2);
    tiers->store_failure = ERR_NONE;
    world_pass(world, 300);
    world_pass_quietly(world, 2);
    assert_int_equal(count_of(sandbox->stored), 1);
}

static void what_fails_does_not_keep_others_waiting(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct sandbox *both[] = {offloaded_twice(tiers), world_create(world, "other")};

    offload(tiers, both[1]);
    use_once(world, both[1]);
    offload(tiers, both[1]);
    tiers->store_failure = ERR_UPSTREAM;
    tiers->store_failures = 1;
    world->domain->options.squash_above = 1;
    world_pass_quietly(world, 60);
    assert_int_equal(count_of(both[0]->stored) + count_of(both[1]->stored), 3);
    world_pass(world, 300);
    world_pass_quietly(world, 2);
    assert_int_equal(count_of(both[0]->stored) + count_of(both[1]->stored), 2);
}

static void a_row_that_cannot_be_kept_has_its_list(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct sandbox *sandbox = offloaded_twice(tiers);

    world->domain->options.squash_above = 1;
    world->refuse_commit = 1;
    world_pass_quietly(world, 2);
    assert_int_equal(count_of(sandbox->stored), 2);
    assert_false(sandbox->is_held);
    assert_int_equal(world_provider(world).count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SQUASH_TEST(a_long_list_becomes_one_layer),
        SQUASH_TEST(a_list_of_what_is_here_needs_no_fetching),
        SQUASH_TEST(whoever_wakes_it_meanwhile_is_first),
        SQUASH_TEST(what_fails_changes_nothing_and_is_left_alone_for_a_while),
        SQUASH_TEST(what_fails_does_not_keep_others_waiting),
        SQUASH_TEST(a_row_that_cannot_be_kept_has_its_list),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
