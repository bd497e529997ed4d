#include "domain/sandbox/new_disks.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/workspace/workspace_testing.h"

static void a_workspace_is_synced_known_and_restored(void **state)
{
    struct memory *memory = *state;
    struct world *world = memory->world;
    struct sandbox *sandbox = world_create(world, "demo");
    struct id id = sandbox->id;
    struct workspace_state known;
    struct heard heard;
    char expected[512];

    assert_false(workspace_find(world->domain, &id, &known));
    heard = do_restore(memory, sandbox);
    expect(&heard, ERR_NOT_FOUND);
    heard = do_sync(memory, sandbox);
    expect_good(&heard);
    assert_int_equal(heard.synced.files, 3);
    assert_int_equal(heard.synced.skipped, 2);
    assert_int_equal(heard.synced.total_bytes, 70);
    assert_int_equal(heard.synced.time_ms, WORLD_START_MS);
    (void) snprintf(expected, sizeof(expected), "/workspace workspaces/%s/ manifests/%s.json",
                    id.text, id.text);
    assert_string_equal(memory->synced, expected);
    assert_string_equal(memory->excludes, "node_modules dist ");
    assert_int_equal(snapshots(memory), 0);

    /* It is there after a restart, too. */
    world_close(world);
    world_open(world);
    assert_true(workspace_find(world->domain, &id, &known));
    assert_int_equal(known.files, 7);
    assert_int_equal(known.bytes, 70);
    assert_int_equal(known.synced_ms, WORLD_START_MS);
    assert_int_equal(workspace_bytes(world->domain, &world->caller.owner), 70);
    assert_int_equal(workspace_bytes(world->domain, NULL), 70);
}

static void it_is_restored_on_request(void **state)
{
    struct memory *memory = *state;
    struct world *world = memory->world;
    struct sandbox *sandbox = world_create(world, "demo");
    struct heard heard = do_sync(memory, sandbox);

    expect_good(&heard);
    do_ask(world, sandbox_sleep, sandbox);
    heard = do_restore(memory, sandbox);
    expect_good(&heard);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    assert_int_equal(heard.files, 7);
    assert_int_equal(heard.bytes, 70);
    assert_string_equal(memory->restored, memory->synced);
    memory->fail_restore = ERR_UPSTREAM;
    heard = do_restore(memory, sandbox);
    expect(&heard, ERR_UPSTREAM);
}

static void those_who_ask_meanwhile_share_the_next_sync(void **state)
{
    struct memory *memory = *state;
    struct world *world = memory->world;
    struct sandbox *sandbox = world_create(world, "demo");
    struct heard first = {.times = 0}, others[3] = {{.times = 0}};

    memory->is_held = true;
    workspace_sync(world->domain, &world->caller, sandbox, true, on_synced, &first);
    TURN_UNTIL(&world->loop, memory->syncs == 1);
    for (size_t i = 0; i < ARRAY_COUNT(others); i++)
        workspace_sync(world->domain, &world->caller, sandbox, true, on_synced, &others[i]);
    world_wait(world);
    assert_int_equal(memory->syncs, 1);
    assert_int_equal(first.times, 0);
    let_go(memory);
    TURN_UNTIL(&world->loop, others[2].times);
    world_wait(world);
    assert_int_equal(memory->syncs, 2);
    assert_int_equal(first.times, 1);
    assert_int_equal(others[0].times, 1);
    assert_int_equal(others[1].times, 1);
    assert_int_equal(snapshots(memory), 0);
}

/* One who wants a mirror of one moment is enough. */
static void it_stands_still_unless_nobody_wants_that(void **state)
{
    struct memory *memory = *state;
    struct world *world = memory->world;
    struct sandbox *sandbox = world_create(world, "demo");
    struct heard first = {.times = 0}, both[2] = {{.times = 0}};

    memory->is_held = true;
    workspace_sync(world->domain, &world->caller, sandbox, false, on_synced, &first);
    TURN_UNTIL(&world->loop, memory->syncs == 1);
    workspace_sync(world->domain, &world->caller, sandbox, false, on_synced, &both[0]);
    workspace_sync(world->domain, &world->caller, sandbox, true, on_synced, &both[1]);
    world_wait(world);
    let_go(memory);
    TURN_UNTIL(&world->loop, both[1].times);
    world_wait(world);
    assert_int_equal(first.synced.pause_us, 0);
    assert_int_equal(both[0].synced.pause_us, 1);
    assert_int_equal(both[1].synced.pause_us, 1);
}

static void a_failure_is_told_and_leaves_what_was(void **state)
{
    struct memory *memory = *state;
    struct world *world = memory->world;
    struct sandbox *sandbox = world_create(world, "demo");
    struct workspace_state known;
    struct heard heard;

    memory->fail_sync = ERR_UNAVAILABLE;
    heard = do_sync(memory, sandbox);
    expect(&heard, ERR_UNAVAILABLE);
    assert_false(workspace_find(world->domain, &sandbox->id, &known));
    provider_fake_fail_next(world->provider, PROVIDER_CALL_SNAPSHOT, ERR_NO_SPACE);
    heard = do_sync(memory, sandbox);
    expect(&heard, ERR_NO_SPACE);
    memory->fail_sync = ERR_NONE;
    heard = do_sync(memory, sandbox);
    expect_good(&heard);
    memory->fail_sync = ERR_UNAVAILABLE;
    heard = do_sync(memory, sandbox);
    expect(&heard, ERR_UNAVAILABLE);
    assert_true(workspace_find(world->domain, &sandbox->id, &known));
    assert_int_equal(snapshots(memory), 0);
    world->refuse_commit = 1;
    memory->fail_sync = ERR_NONE;
    heard = do_sync(memory, sandbox);
    expect(&heard, ERR_NO_SPACE);
}

static void its_objects_go_with_the_sandbox(void **state)
{
    struct memory *memory = *state;
    struct world *world = memory->world;
    struct sandbox *sandbox = world_create(world, "demo");
    struct id id = sandbox->id;
    struct heard heard = do_sync(memory, sandbox);
    struct workspace_state known;
    char expected[512];

    expect_good(&heard);
    memory->fail_remove = ERR_UNAVAILABLE;
    do_ask(world, sandbox_destroy, sandbox);
    TURN_UNTIL(&world->loop, memory->removals == 1);
    world_wait(world);
    assert_int_equal(workspace_bytes(world->domain, NULL), 70); /* still there, still counted */

    /* What was left is found after a restart. */
    world_close(world);
    memory->fail_remove = ERR_NONE;
    memory->removed[0] = '\0';
    world_open(world);
    assert_int_equal(workspace_bytes(world->domain, NULL), 70);
    world_pass(world, 2);
    TURN_UNTIL(&world->loop, memory->removals == 3);
    (void) snprintf(expected, sizeof(expected), "manifests/%s.json workspaces/%s/ ", id.text,
                    id.text);
    assert_string_equal(memory->removed, expected);
    TURN_UNTIL(&world->loop, workspace_bytes(world->domain, NULL) == 0);
    assert_false(workspace_find(world->domain, &id, &known));
    world_close(world);
    world_open(world);
    world_pass(world, 40);
    assert_int_equal(memory->removals, 3);
}

static void a_sandbox_destroyed_meanwhile_leaves_nothing(void **state)
{
    struct memory *memory = *state;
    struct world *world = memory->world;
    struct sandbox *sandbox = world_create(world, "demo");
    struct heard running = {.times = 0}, waiting = {.times = 0};

    memory->is_held = true;
    workspace_sync(world->domain, &world->caller, sandbox, true, on_synced, &running);
    TURN_UNTIL(&world->loop, memory->syncs == 1);
    workspace_sync(world->domain, &world->caller, sandbox, true, on_synced, &waiting);
    world_wait(world);
    do_ask(world, sandbox_destroy, sandbox);
    TURN_UNTIL(&world->loop, waiting.times);
    expect(&waiting, ERR_NOT_FOUND);
    assert_int_equal(memory->removals, 0);
    let_go(memory);
    TURN_UNTIL(&world->loop, memory->removals == 2);
    world_wait(world);
    expect(&running, ERR_NOT_FOUND);
    assert_int_equal(workspace_bytes(world->domain, NULL), 0);
    assert_int_equal(snapshots(memory), 0);
}

static void an_owner_may_store_only_so_much(void **state)
{
    struct memory *memory = *state;
    struct world *world = memory->world;
    struct sandbox *one, *two;
    struct heard heard, both[2] = {{.times = 0}};

    world_close(world);
    world->options.default_quota.storage_bytes = 100;
    world_open(world);
    one = world_create(world, "one");
    two = world_create(world, "two");
    heard = do_sync(memory, one);
    expect_good(&heard);
    assert_int_equal(memory->bytes_max, 100);
    memory->fail_sync = ERR_QUOTA;
    heard = do_sync(memory, two);
    expect(&heard, ERR_QUOTA);
    assert_int_equal(memory->bytes_max, 30);
    assert_non_null(strstr(heard.failure.message, "70"));
    assert_non_null(strstr(heard.failure.message, "100"));
    memory->fail_sync = ERR_NONE;
    memory->answer.total_bytes = 100;
    heard = do_sync(memory, one);
    expect_good(&heard);
    memory->syncs = 0;
    heard = do_sync(memory, two);
    expect(&heard, ERR_QUOTA);
    assert_int_equal(memory->syncs, 0);

    /* One after the other, so that both cannot take what is left. */
    memory->is_held = true;
    workspace_sync(world->domain, &world->caller, one, true, on_synced, &both[0]);
    workspace_sync(world->domain, &world->caller, two, true, on_synced, &both[1]);
    world_wait(world);
    assert_int_equal(memory->syncs, 1);
    let_go(memory);
    TURN_UNTIL(&world->loop, both[1].times);
    expect(&both[1], ERR_QUOTA);
}

static void who_may_not_is_refused(void **state)
{
    struct memory *memory = *state;
    struct world *world = memory->world;
    struct sandbox *sandbox = world_create(world, "demo");
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct caller mine = world->caller;
    struct heard heard;
    struct told told;

    world->caller.scope = CALLER_READ;
    heard = do_sync(memory, sandbox);
    expect(&heard, ERR_FORBIDDEN);
    world->caller = mine;
    spec.name = (char *) "elsewhere";
    spec.folder = (char *) "/etc";
    told = ask_create(world, &world->caller, &spec);
    expect_ok(&told);
    heard = do_sync(memory, told.sandbox);
    expect(&heard, ERR_INVALID);
    assert_int_equal(memory->syncs, 0);
}

static void closing_answers_everybody(void **state)
{
    struct memory *memory = *state;
    struct world *world = memory->world;
    struct sandbox *sandbox = world_create(world, "demo");
    struct heard running = {.times = 0}, waiting = {.times = 0};

    memory->is_held = true;
    memory->fail_sync = ERR_CANCELLED;
    workspace_sync(world->domain, &world->caller, sandbox, true, on_synced, &running);
    TURN_UNTIL(&world->loop, memory->syncs == 1);
    workspace_sync(world->domain, &world->caller, sandbox, true, on_synced, &waiting);
    world_wait(world);
    domain_close(world->domain, world_on_closed, world);
    let_go(memory);
    TURN_UNTIL(&world->loop, world->closed);
    expect(&running, ERR_CANCELLED);
    expect(&waiting, ERR_UNAVAILABLE);
}

static struct sandbox *create_synced(struct world *world)
{
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct told told;

    spec.name = (char *) "demo";
    spec.sync = true;
    told = ask_create(world, &world->caller, &spec);
    expect_ok(&told);
    return told.sandbox;
}

/* --- sleep ------------------------------------------------------------------------------------ */

static void reopen_without_freeze(struct memory *memory)
{
    world_close(memory->world);
    memory->world->fake.missing = PROVIDER_FREEZE;
    world_open(memory->world);
}

static void it_is_synced_before_its_processes_end_for_sleep(void **state)
{
    struct memory *memory = *state;
    struct world *world = memory->world;
    struct sandbox *sandbox;
    struct told told;

    reopen_without_freeze(memory);
    sandbox = create_synced(world);
    do_ask(world, sandbox_sleep, sandbox);
    assert_int_equal(sandbox->status, SANDBOX_HIBERNATED);
    assert_int_equal(memory->syncs, 1);
    do_ask(world, sandbox_wake, sandbox);

    /* What cannot be saved stays awake, and says why. */
    memory->fail_sync = ERR_UNAVAILABLE;
    told = ask(world, sandbox_sleep, sandbox);
    expect_code(&told, ERR_UNAVAILABLE);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    assert_non_null(strstr(sandbox->reason, "the store is not well"));
    assert_int_equal(snapshots(memory), 0);
    memory->fail_sync = ERR_NONE;
    do_ask(world, sandbox_sleep, sandbox);
    assert_int_equal(sandbox->status, SANDBOX_HIBERNATED);
}

/* --- a disk that is gone ---------------------------------------------------------------------- */

/* The provider of the next domain knows nothing of earlier sandboxes. */
static struct sandbox *lose_disk(struct memory *memory, const struct id *id)
{
    struct sandbox *sandbox;

    world_close(memory->world);
    world_open(memory->world);
    sandbox = sandbox_set_by_id(memory->world->domain, id->text);
    assert_non_null(sandbox);
    return sandbox;
}

static void a_lost_disk_is_made_anew_at_wake(void **state)
{
    struct memory *memory = *state;
    struct world *world = memory->world;
    struct sandbox *sandbox = world_create(world, "demo"), *other = world_create(world, "other");
    struct id id = sandbox->id, other_id = other->id;
    struct heard heard = do_sync(memory, sandbox);

    expect_good(&heard);
    world_pass(world, NEW_DISKS_EVERY_S); /* a disk that is gone is damage from now on */
    sandbox = lose_disk(memory, &id);
    other = sandbox_set_by_id(world->domain, other_id.text);
    assert_int_equal(other->status, SANDBOX_ERROR);
    assert_int_equal(sandbox->status, SANDBOX_HIBERNATED);
    assert_true(sandbox->is_disk_lost);
    do_ask(world, sandbox_wake, sandbox);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    assert_int_equal(memory->restores, 1);
    assert_int_equal(sandbox->restored_files, 7);
    assert_string_equal(memory->restored, memory->synced);
    assert_false(sandbox->is_disk_lost);
    assert_false(sandbox->is_rebuilding);

    /* The next wake is like any other. */
    do_ask(world, sandbox_stop, sandbox);
    do_ask(world, sandbox_start, sandbox);
    assert_int_equal(memory->restores, 1);
    assert_int_equal(sandbox->restored_files, 0);
}

static void a_failed_rebuild_is_tried_again_from_the_start(void **state)
{
    struct memory *memory = *state;
    struct world *world = memory->world;
    struct sandbox *sandbox = world_create(world, "demo");
    struct id id = sandbox->id;
    struct heard heard = do_sync(memory, sandbox);
    struct told told;

    expect_good(&heard);
    sandbox = lose_disk(memory, &id);
    memory->fail_restore = ERR_UPSTREAM;
    for (int i = 0; i < 2; i++) {
        told = ask(world, sandbox_wake, sandbox);
        expect_code(&told, ERR_UPSTREAM);
        assert_int_equal(sandbox->status, SANDBOX_HIBERNATED);
        assert_true(sandbox->is_disk_lost);
        assert_int_equal(memory->restores, i + 1);
    }

    /* Also after a restart in the middle of one, which left something that runs. */
    world_close(world);
    world_make_provider(world);
    provider_fake_add(world->provider, &id, RUN_STATE_RUNNING, NULL);
    world_open(world);
    sandbox = sandbox_set_by_id(world->domain, id.text);
    assert_int_equal(sandbox->status, SANDBOX_HIBERNATED);
    assert_true(sandbox->is_disk_lost);
    memory->fail_restore = ERR_NONE;
    do_ask(world, sandbox_wake, sandbox);
    assert_int_equal(memory->restores, 3);
    assert_false(sandbox->is_rebuilding);
}

static void others_sleep_without(void **state)
{
    struct memory *memory = *state;
    struct sandbox *sandbox;

    reopen_without_freeze(memory);
    sandbox = world_create(memory->world, "demo");
    do_ask(memory->world, sandbox_sleep, sandbox);
    assert_int_equal(sandbox->status, SANDBOX_HIBERNATED);
    assert_int_equal(memory->syncs, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        MEMORY_TEST(a_workspace_is_synced_known_and_restored),
        MEMORY_TEST(it_is_restored_on_request),
        MEMORY_TEST(those_who_ask_meanwhile_share_the_next_sync),
        MEMORY_TEST(it_stands_still_unless_nobody_wants_that),
        MEMORY_TEST(a_failure_is_told_and_leaves_what_was),
        MEMORY_TEST(its_objects_go_with_the_sandbox),
        MEMORY_TEST(a_sandbox_destroyed_meanwhile_leaves_nothing),
        MEMORY_TEST(an_owner_may_store_only_so_much),
        MEMORY_TEST(who_may_not_is_refused),
        MEMORY_TEST(closing_answers_everybody),
        MEMORY_TEST(it_is_synced_before_its_processes_end_for_sleep),
        MEMORY_TEST(others_sleep_without),
        MEMORY_TEST(a_lost_disk_is_made_anew_at_wake),
        MEMORY_TEST(a_failed_rebuild_is_tried_again_from_the_start),
    };

    return cmocka_run_group_tests_name("workspace", tests, NULL, NULL);
}
