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

#define TIER_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* --- down ------------------------------------------------------------------------------------- */

static void time_takes_it_down_one_tier_after_the_other(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct sandbox *sandbox = world_create(world, "demo");

    do_ask(world, sandbox_sleep, sandbox);
    world_pass(world, 59);
    assert_int_equal(sandbox_tier(sandbox), SANDBOX_TIER_FROZEN);
    world_pass(world, 2);
    assert_int_equal(sandbox_tier(sandbox), SANDBOX_TIER_RECLAIMED);
    assert_int_equal(sandbox->status, SANDBOX_FROZEN);
    world_pass(world, 57);
    assert_int_equal(sandbox_tier(sandbox), SANDBOX_TIER_RECLAIMED);
    world_pass(world, 4);
    assert_int_equal(sandbox_tier(sandbox), SANDBOX_TIER_HIBERNATED);
    assert_int_equal(tiers->stored, 0);
    world_pass(world, 62);
    assert_int_equal(sandbox_tier(sandbox), SANDBOX_TIER_OFFLOADED);
    assert_int_equal(sandbox->status, SANDBOX_HIBERNATED);
    assert_int_equal(tiers->disk.set, DISK_OF_SNAPSHOT);
    assert_int_equal(world_state(world, &sandbox->id), -1);
    world_settle(world);
    assert_int_equal(world_copies(world).count, 0);
    expect_row(world, &sandbox->id, "hibernated");
    expect_events(world, &sandbox->id,
                  "sandbox.created sandbox.hibernated sandbox.reclaimed sandbox.hibernated "
                  "sandbox.offloaded");
}

static void a_spec_says_otherwise(void **state)
{
    struct tiers *tiers = *state;
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct told told;

    spec.freeze_for_ms = SANDBOX_NEVER;
    spec.hibernate_after_ms = 10000;
    spec.offload_after_ms = SANDBOX_NEVER;
    told = ask_create(tiers->world, &tiers->world->caller, &spec);
    expect_ok(&told);
    do_ask(tiers->world, sandbox_sleep, told.sandbox);
    world_pass(tiers->world, 12);
    assert_int_equal(sandbox_tier(told.sandbox), SANDBOX_TIER_HIBERNATED);
    world_pass(tiers->world, 300);
    assert_int_equal(tiers->stored, 0);
}

static void short_memory_takes_the_longest_frozen_first(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct sandbox *first = world_create(world, "first"), *second;

    do_ask(world, sandbox_sleep, first);
    world_pass(world, 1);
    second = world_create(world, "second");
    tiers->percent = 5;
    provider_fake_hold(world->provider, PROVIDER_CALL_RECLAIM, true);
    world_pass(world, 1);
    assert_true(first->is_held);
    provider_fake_hold(world->provider, PROVIDER_CALL_RECLAIM, false);
    world_pass(world, 0);
    assert_int_equal(sandbox_tier(first), SANDBOX_TIER_RECLAIMED);
    world_pass(world, 1); /* still short: nothing is left to reclaim */
    TURN_UNTIL(&world->loop, first->status == SANDBOX_HIBERNATED);
    assert_int_equal(second->status, SANDBOX_RUNNING);
    tiers->percent = 10;
    do_ask(world, sandbox_sleep, second);
    world_pass(world, 5);
    assert_int_equal(sandbox_tier(second), SANDBOX_TIER_FROZEN);
}

static struct sandbox *sandbox_of(struct tiers *tiers, const struct id *owner, const char *name)
{
    struct sandbox_spec spec = {.name = (char *) name, .limits.memory_bytes = UINT64_C(1) << 30};
    struct caller caller = tiers->world->caller;
    struct told told;

    caller.owner = *owner;
    told = ask_create(tiers->world, &caller, &spec);
    expect_ok(&told);
    return told.sandbox;
}

static void short_memory_takes_from_who_holds_most(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct id modest = id_new(), greedy = id_new();
    struct sandbox *old = sandbox_of(tiers, &modest, "old");
    struct sandbox *young;

    do_ask(world, sandbox_sleep, old); /* frozen for longer than any of the other's */
    world_pass(world, 30);
    young = sandbox_of(tiers, &greedy, "young");
    (void) sandbox_of(tiers, &greedy, "busy");
    do_ask(world, sandbox_sleep, young);
    provider_fake_hold(world->provider, PROVIDER_CALL_RECLAIM, true);
    tiers->percent = 5;
    world_pass(world, 1);
    tiers->percent = 100;
    assert_true(young->is_held);
    provider_fake_hold(world->provider, PROVIDER_CALL_RECLAIM, false);
    world_pass(world, 0);
    assert_int_equal(sandbox_tier(young), SANDBOX_TIER_RECLAIMED);
}

/* --- a save that fails ------------------------------------------------------------------------ */

static void a_save_that_fails_changes_nothing_and_says_why(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct sandbox *sandbox = world_create(world, "demo");

    tiers->store_failure = ERR_UNAVAILABLE;
    do_ask(world, sandbox_sleep, sandbox);
    tiers_until(tiers, sandbox, SANDBOX_TIER_HIBERNATED);
    world_pass(world, 65);
    assert_int_equal(tiers->stored, 1);
    assert_null(sandbox->stored);
    assert_non_null(strstr(sandbox->reason, "the object store is not well"));
    assert_int_equal(world_state(world, &sandbox->id), RUN_STATE_STOPPED);
    world_pass(world, 200);
    assert_int_equal(tiers->stored, 1); /* not again and again */
    tiers->store_failure = ERR_NONE;
    world_pass(world, 120);
    assert_int_equal(sandbox_tier(sandbox), SANDBOX_TIER_OFFLOADED);
    expect_events(world, &sandbox->id,
                  "sandbox.created sandbox.hibernated sandbox.reclaimed sandbox.hibernated "
                  "sandbox.save_failed sandbox.offloaded");
}

static void a_row_that_cannot_be_kept_keeps_the_disk(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct sandbox *sandbox = world_create(world, "demo");

    do_ask(world, sandbox_sleep, sandbox);
    tiers_until(tiers, sandbox, SANDBOX_TIER_HIBERNATED);
    world_pass(world, 1);
    world->refuse_commit = 1;
    world_pass(world, 65);
    assert_int_equal(tiers->stored, 1);
    assert_null(sandbox->stored);
    assert_int_equal(world_state(world, &sandbox->id), RUN_STATE_STOPPED);
}

static void a_use_does_not_wait_for_a_save(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct sandbox *sandbox = world_create(world, "demo");

    tiers->holds = true;
    do_ask(world, sandbox_sleep, sandbox);
    tiers_until(tiers, sandbox, SANDBOX_TIER_HIBERNATED);
    for (int i = 0; i < 100 && !tiers->held; i++)
        world_pass(world, 10);
    assert_non_null(tiers->held);
    use_once(world, sandbox);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    tier_tell(&tiers->held->task);
    world_settle(world);
    assert_null(sandbox->stored); /* what was stored is older than what runs */
    assert_int_equal(world_state(world, &sandbox->id), RUN_STATE_RUNNING);
    assert_int_equal(world_copies(world).count, 0);
}

static void without_snapshots_it_is_held_meanwhile(void **state)
{
    struct tiers *tiers = tiers_new(PROVIDER_SNAPSHOTS);
    struct sandbox *sandbox = tiers_offloaded(tiers);

    (void) state;
    assert_int_equal(tiers->disk.set, DISK_OF_SANDBOX);
    use_once(tiers->world, sandbox);
    assert_int_equal(tiers->fetched, 1);
    tiers_free(tiers);
}

/* --- up --------------------------------------------------------------------------------------- */

static void a_use_brings_it_back_from_the_store(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct sandbox *sandbox = tiers_offloaded(tiers);
    struct domain_counters counters;

    use_once(world, sandbox);
    assert_int_equal(sandbox_tier(sandbox), SANDBOX_TIER_RUNNING);
    assert_string_equal(tiers->layer, TIER_LAYER);
    assert_null(sandbox->stored);
    assert_string_equal(world->restored, world->saved);
    world_settle(world);
    expect_row(world, &sandbox->id, "running");
    domain_counters(world->domain, &counters);
    assert_int_equal(counters.wakes[SANDBOX_TIER_OFFLOADED].buckets[7], 1);
    assert_int_equal(counters.saves[SANDBOX_TIER_OFFLOADED].buckets[7], 1);
    assert_int_equal(counters.offloaded_bytes, 10);
}

static void a_restore_that_fails_leaves_what_is_stored(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct sandbox *sandbox = tiers_offloaded(tiers);
    struct domain_counters counters;
    struct told_use one, two;

    tiers->fetch_failure = ERR_NOT_FOUND;
    use_begin(world, sandbox, &one, 0);
    use_begin(world, sandbox, &two, 0);
    TURN_UNTIL(&world->loop, one.times && two.times);
    assert_true(one.failed && two.failed);
    assert_int_equal(one.failure.code, ERR_GONE);
    assert_int_equal(tiers->fetched, 1); /* for both, and once */

    /* Who asks again at once is told the same, and the store is left alone. */
    world_pass(world, 1);
    use_begin(world, sandbox, &two, 0);
    TURN_UNTIL(&world->loop, two.times);
    assert_int_equal(two.failure.code, ERR_GONE);
    assert_non_null(strstr(two.failure.message, "object store is not well"));
    assert_non_null(strstr(two.failure.message, "tried again in 4 s"));
    assert_int_equal(sandbox->status, SANDBOX_HIBERNATED);
    assert_int_equal(tiers->fetched, 1);
    domain_counters(world->domain, &counters);
    assert_int_equal(counters.restore_failures, 1);

    /* Nor is it tried without being asked. */
    world_pass(world, 30);
    assert_int_equal(tiers->fetched, 1);
    assert_int_equal(sandbox_tier(sandbox), SANDBOX_TIER_OFFLOADED);
    assert_non_null(strstr(sandbox->reason, "object store is not well"));
    tiers->fetch_failure = ERR_NONE;
    use_once(world, sandbox);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
}

static void a_snapshot_and_a_fork_bring_the_disk_back_first(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct sandbox *sandbox = tiers_offloaded(tiers);

    (void) world_snapshot(world, sandbox, "first");
    assert_int_equal(tiers->fetched, 1);
    assert_int_equal(sandbox_tier(sandbox), SANDBOX_TIER_HIBERNATED); /* it need not wake for it */
    assert_int_equal(world_state(world, &sandbox->id), RUN_STATE_STOPPED);
    expect_row(world, &sandbox->id, "hibernated");
}

static void a_snapshot_of_what_does_not_come_back_fails(void **state)
{
    struct tiers *tiers = *state;
    struct sandbox *sandbox = tiers_offloaded(tiers);
    struct told_snapshot told;

    tiers->fetch_failure = ERR_UNAVAILABLE;
    told = ask_snapshot(tiers->world, sandbox, &(struct snapshot_options){.name = "first"});
    expect_code(&told.told, ERR_UNAVAILABLE);
    assert_int_equal(sandbox_tier(sandbox), SANDBOX_TIER_OFFLOADED);
    do_ask(tiers->world, sandbox_destroy, sandbox);
}

/* --- restarts --------------------------------------------------------------------------------- */

static struct sandbox *reopen(struct tiers *tiers, const struct id *id, bool has_disk)
{
    struct world *world = tiers->world;

    world_close(world);
    world_make_provider(world);
    if (has_disk)
        provider_fake_add(world->provider, id, RUN_STATE_STOPPED, NULL);
    world_open(world);
    return sandbox_find(world->domain, &world->caller, id->text, NULL);
}

static void after_a_restart_it_is_still_offloaded(void **state)
{
    struct tiers *tiers = *state;
    struct id id = tiers_offloaded(tiers)->id;
    struct sandbox *sandbox = reopen(tiers, &id, false);

    assert_int_equal(sandbox->status, SANDBOX_HIBERNATED);
    assert_int_equal(sandbox_tier(sandbox), SANDBOX_TIER_OFFLOADED);
    use_once(tiers->world, sandbox);
    assert_int_equal(tiers->fetched, 1);
}

/* It may be half deleted, or half fetched: nobody knows. */
static void a_disk_that_is_left_is_deleted_and_never_used(void **state)
{
    struct tiers *tiers = *state;
    struct id id = tiers_offloaded(tiers)->id;
    struct sandbox *sandbox = reopen(tiers, &id, true);

    use_once(tiers->world, sandbox);
    assert_int_equal(tiers->fetched, 1);
    tiers_until(tiers, sandbox, SANDBOX_TIER_RUNNING);
    do_ask(tiers->world, sandbox_sleep, sandbox);
    tiers_until(tiers, sandbox, SANDBOX_TIER_OFFLOADED);
    sandbox = reopen(tiers, &id, true);
    assert_true(sandbox->is_disk_left);
    world_pass(tiers->world, 2);
    assert_int_equal(world_state(tiers->world, &id), -1);
    assert_int_equal(sandbox_tier(sandbox), SANDBOX_TIER_OFFLOADED);
}

/* --- startup ---------------------------------------------------------------------------------- */

static struct sandbox *create_with_startup(struct world *world)
{
    char *commands[] = {(char *) "one", (char *) "two"};
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct told told;

    spec.startup = (struct sandbox_texts){.items = commands, .count = ARRAY_COUNT(commands)};
    told = ask_create(world, &world->caller, &spec);
    expect_ok(&told);
    world_settle(world);
    return told.sandbox;
}

static void startup_commands_run_with_the_processes(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct sandbox *sandbox = create_with_startup(world);

    assert_string_equal(text_string(&world->commands), "one;two;");
    do_ask(world, sandbox_sleep, sandbox);
    do_ask(world, sandbox_wake, sandbox); /* its processes went on */
    world_settle(world);
    assert_string_equal(text_string(&world->commands), "one;two;");
    do_ask(world, sandbox_sleep, sandbox);
    tiers_until(tiers, sandbox, SANDBOX_TIER_OFFLOADED);
    use_once(world, sandbox);
    world_settle(world);
    assert_string_equal(text_string(&world->commands), "one;two;one;two;");
}

static void startup_commands_that_fail_are_told_and_hold_up_nothing(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct sandbox *sandbox;

    world->mood = AGENT_FAILS;
    sandbox = create_with_startup(world);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    assert_string_equal(text_string(&world->commands), "one;two;");
    expect_events(world, &sandbox->id,
                  "sandbox.created sandbox.startup_failed sandbox.startup_failed");
}

/* A daemon that died now would not find it stored. */
static void a_disk_is_stored_when_its_row_says_so(void **state)
{
    char layers[] = "layers";
    struct sandbox sandbox = {.status = SANDBOX_HIBERNATED, .stored = layers};

    (void) state;
    sandbox.is_saving = true;
    assert_int_equal(sandbox_tier(&sandbox), SANDBOX_TIER_HIBERNATED);
    sandbox.is_disk_left = true; /* kept, and about to be deleted here */
    assert_int_equal(sandbox_tier(&sandbox), SANDBOX_TIER_OFFLOADED);
    sandbox.is_saving = sandbox.is_disk_left = false;
    assert_int_equal(sandbox_tier(&sandbox), SANDBOX_TIER_OFFLOADED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TIER_TEST(time_takes_it_down_one_tier_after_the_other),
        TIER_TEST(a_spec_says_otherwise),
        TIER_TEST(short_memory_takes_the_longest_frozen_first),
        TIER_TEST(short_memory_takes_from_who_holds_most),
        TIER_TEST(a_save_that_fails_changes_nothing_and_says_why),
        TIER_TEST(a_row_that_cannot_be_kept_keeps_the_disk),
        TIER_TEST(a_use_does_not_wait_for_a_save),
        cmocka_unit_test(without_snapshots_it_is_held_meanwhile),
        TIER_TEST(a_use_brings_it_back_from_the_store),
        TIER_TEST(a_restore_that_fails_leaves_what_is_stored),
        TIER_TEST(a_snapshot_and_a_fork_bring_the_disk_back_first),
        TIER_TEST(a_snapshot_of_what_does_not_come_back_fails),
        TIER_TEST(after_a_restart_it_is_still_offloaded),
        TIER_TEST(a_disk_that_is_left_is_deleted_and_never_used),
        cmocka_unit_test(a_disk_is_stored_when_its_row_says_so),
        TIER_TEST(startup_commands_run_with_the_processes),
        TIER_TEST(startup_commands_that_fail_are_told_and_hold_up_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
