#include "domain/sandbox/new_disks.h"
#include "domain/snapshot/snapshot_testing.h"

/* Commits while time passes; those of other modules come with the first tick. */
static int commits_of(struct world *world, unsigned int seconds)
{
    int before = world->commits;

    world_pass(world, seconds);
    return world->commits - before;
}

/* As after a power cut: the provider knows nothing of earlier sandboxes. */
static struct sandbox *lose_power(struct world *world, const struct id *id)
{
    struct sandbox *sandbox;

    world_close(world);
    world_open(world);
    sandbox = sandbox_find(world->domain, &world->caller, id->text, NULL);
    assert_non_null(sandbox);
    return sandbox;
}

static void a_new_disk_is_synced_and_its_row_follows(void **state)
{
    struct world *world = *state;
    struct sandbox *first, *second;
    int64_t updated_ms;
    struct id id;

    world_pass(world, 1);
    first = world_create(world, NULL);
    second = world_create(world, NULL);
    updated_ms = first->updated_ms;
    id = first->id;
    assert_true(first->is_disk_new);
    assert_int_equal(commits_of(world, NEW_DISKS_EVERY_S - 1), 0);
    assert_true(first->is_disk_new);
    assert_int_equal(commits_of(world, 1), 1); /* one for both */
    assert_false(first->is_disk_new);
    assert_false(second->is_disk_new);
    assert_int_equal(first->updated_ms, updated_ms); /* nobody changed it */
    assert_int_equal(commits_of(world, 3 * NEW_DISKS_EVERY_S), 0);
    /* It is damage that such a disk is gone. */
    assert_int_equal(lose_power(world, &id)->status, SANDBOX_ERROR);
}

static void what_was_new_begins_again_with_an_empty_disk(void **state)
{
    struct world *world = *state;
    struct id id = world_create(world, "demo")->id;
    struct sandbox *sandbox = lose_power(world, &id);

    assert_int_equal(sandbox->status, SANDBOX_STOPPED);
    assert_non_null(strstr(sandbox->reason, "empty"));
    assert_true(sandbox->is_disk_lost);
    world_pass(world, 2 * NEW_DISKS_EVERY_S);
    assert_true(sandbox->is_disk_new); /* what is not there is not synced */
    expect_events(world, &id, "sandbox.created sandbox.disk_renewed");
    expect_row(world, &id, "stopped");

    /* And again, should the daemon be restarted before anybody starts it. */
    sandbox = lose_power(world, &id);
    assert_int_equal(sandbox->status, SANDBOX_STOPPED);
    use_once(world, sandbox);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    assert_int_equal(world_state(world, &id), RUN_STATE_RUNNING);
    assert_false(sandbox->is_disk_lost);
    assert_true(sandbox->is_disk_new);
    world_pass(world, NEW_DISKS_EVERY_S);
    assert_false(sandbox->is_disk_new);
    do_ask(world, sandbox_stop, sandbox);
    do_ask(world, sandbox_start, sandbox);
}

static void one_that_slept_sleeps_on(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, NULL);
    struct id id = sandbox->id;

    do_ask(world, sandbox_sleep, sandbox);
    sandbox = lose_power(world, &id);
    assert_int_equal(sandbox->status, SANDBOX_HIBERNATED);
    do_ask(world, sandbox_wake, sandbox);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
}

static void a_stop_that_was_asked_for_stays_one(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, NULL);
    struct id id = sandbox->id;
    struct told_use use;

    do_ask(world, sandbox_stop, sandbox);
    sandbox = lose_power(world, &id);
    assert_int_equal(sandbox->status, SANDBOX_STOPPED);
    use_begin(world, sandbox, &use, 0);
    assert_int_equal(use.failure.code, ERR_CONFLICT);
    do_ask(world, sandbox_start, sandbox);
}

static void a_start_that_fails_can_be_tried_again(void **state)
{
    struct world *world = *state;
    struct id id = world_create(world, NULL)->id;
    struct sandbox *sandbox = lose_power(world, &id);
    struct told told;

    provider_fake_fail_next(world->provider, PROVIDER_CALL_CREATE, ERR_NO_SPACE);
    told = ask(world, sandbox_start, sandbox);
    expect_code(&told, ERR_NO_SPACE);
    assert_int_equal(sandbox->status, SANDBOX_STOPPED);
    assert_true(sandbox->is_disk_lost);
    do_ask(world, sandbox_start, sandbox);
    assert_false(sandbox->is_disk_lost);
}

static void a_daemon_that_dies_leaves_the_sync_to_the_next(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, NULL);
    struct id id = sandbox->id;

    world_close(world);
    world_make_provider(world);
    provider_fake_add(world->provider, &id, RUN_STATE_RUNNING, NULL);
    world_open(world);
    sandbox = sandbox_find(world->domain, &world->caller, id.text, NULL);
    assert_true(sandbox->is_disk_new);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    world_pass(world, NEW_DISKS_EVERY_S);
    assert_false(sandbox->is_disk_new);
    assert_int_equal(lose_power(world, &id)->status, SANDBOX_ERROR);
}

static void what_fails_is_tried_again(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox;
    struct id id;

    world_pass(world, 1);
    sandbox = world_create(world, NULL);
    id = sandbox->id;
    provider_fake_fail_next(world->provider, PROVIDER_CALL_SYNC_DISKS, ERR_INTERNAL);
    assert_int_equal(commits_of(world, NEW_DISKS_EVERY_S), 0);
    assert_true(sandbox->is_disk_new);
    world->refuse_commit = 1;
    world_pass(world, NEW_DISKS_EVERY_S);
    assert_true(sandbox->is_disk_new);
    world_pass(world, NEW_DISKS_EVERY_S);
    assert_false(sandbox->is_disk_new);
    assert_int_equal(lose_power(world, &id)->status, SANDBOX_ERROR);
}

/* Rows are written by whoever changes a sandbox, and by nobody else meanwhile. */
static void one_that_is_busy_waits_for_the_next_time(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, NULL);
    struct told told = {.times = 0};

    provider_fake_hold(world->provider, PROVIDER_CALL_STOP, true);
    sandbox_stop(world->domain, &world->caller, sandbox, on_told, &told);
    world_pass(world, NEW_DISKS_EVERY_S);
    assert_true(sandbox->is_disk_new);
    provider_fake_hold(world->provider, PROVIDER_CALL_STOP, false);
    TURN_UNTIL(&world->loop, told.times);
    world_pass(world, NEW_DISKS_EVERY_S);
    assert_false(sandbox->is_disk_new);
}

static void many_are_kept_in_turns(void **state)
{
    struct world *world = *state;
    struct sandbox *sandboxes[2 * NEW_DISKS_AT_ONCE + 1];

    world_pass(world, 1);
    for (size_t i = 0; i < ARRAY_COUNT(sandboxes); i++)
        sandboxes[i] = world_create(world, NULL);
    do_ask(world, sandbox_destroy, sandboxes[0]);
    assert_int_equal(commits_of(world, NEW_DISKS_EVERY_S), 2);
    for (size_t i = 1; i < ARRAY_COUNT(sandboxes); i++)
        assert_false(sandboxes[i]->is_disk_new);
}

static void one_destroyed_meanwhile_is_let_go(void **state)
{
    struct world *world = *state;
    struct sandbox *first = world_create(world, NULL), *second = world_create(world, NULL);

    provider_fake_hold(world->provider, PROVIDER_CALL_SYNC_DISKS, true);
    world_pass(world, NEW_DISKS_EVERY_S);
    do_ask(world, sandbox_destroy, first);
    provider_fake_hold(world->provider, PROVIDER_CALL_SYNC_DISKS, false);
    TURN_UNTIL(&world->loop, !second->is_disk_new);
    world_pass(world, 1);
    /* Closing does not wait for one that is under way. */
    (void) world_create(world, NULL);
    provider_fake_hold(world->provider, PROVIDER_CALL_SYNC_DISKS, true);
    world_pass(world, NEW_DISKS_EVERY_S);
}

static void a_disk_that_is_not_there_is_not_copied(void **state)
{
    struct world *world = *state;
    struct id id = world_create(world, NULL)->id;
    struct sandbox *sandbox = lose_power(world, &id);
    struct told_snapshot told =
        ask_snapshot(world, sandbox, &(struct snapshot_options){.name = NULL});

    expect_code(&told.told, ERR_CONFLICT);
    assert_non_null(strstr(told.told.failure.message, "start it first"));
    do_ask(world, sandbox_start, sandbox);
    told = ask_snapshot(world, sandbox, &(struct snapshot_options){.name = NULL});
    expect_ok(&told.told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_new_disk_is_synced_and_its_row_follows),
        WORLD_TEST(what_was_new_begins_again_with_an_empty_disk),
        WORLD_TEST(one_that_slept_sleeps_on),
        WORLD_TEST(a_stop_that_was_asked_for_stays_one),
        WORLD_TEST(a_start_that_fails_can_be_tried_again),
        WORLD_TEST(a_daemon_that_dies_leaves_the_sync_to_the_next),
        WORLD_TEST(what_fails_is_tried_again),
        WORLD_TEST(one_that_is_busy_waits_for_the_next_time),
        WORLD_TEST(many_are_kept_in_turns),
        WORLD_TEST(one_destroyed_meanwhile_is_let_go),
        WORLD_TEST(a_disk_that_is_not_there_is_not_copied),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
