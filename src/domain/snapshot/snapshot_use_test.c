/* What is made of snapshots: forks, rollbacks, lists of what changed. */
#include "domain/sandbox/sandbox_set.h"
#include "domain/snapshot/snapshot_testing.h"

/* --- forks ----------------------------------------------------------------------------------- */

static struct told_snapshot ask_fork(struct world *world, struct snapshot *snapshot,
                                     struct sandbox *sandbox, const struct fork_options *options)
{
    struct told_snapshot told = {.count = 0};

    if (snapshot)
        snapshot_fork(world->domain, &world->caller, snapshot, options, on_forked, &told);
    else
        sandbox_fork(world->domain, &world->caller, sandbox, options, on_forked, &told);
    assert_int_equal(told.told.times, 0);
    TURN_UNTIL(&world->loop, told.told.times);
    world_wait(world); /* what is cleared away behind it */
    return told;
}

static struct sandbox *create_blue(struct world *world)
{
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct sandbox_pair variable = {.name = (char *) "MODE", .value = (char *) "test"};
    struct told told;

    spec.name = (char *) "blue";
    spec.environment = (struct sandbox_pairs){.items = &variable, .count = 1};
    spec.limits.memory_bytes = 1 << 28;
    told = ask_create(world, &world->caller, &spec);
    expect_ok(&told);
    return told.sandbox;
}

static void a_fork_has_the_spec_and_an_identity_of_its_own(void **state)
{
    struct world *world = *state;
    struct sandbox *origin = create_blue(world), *fork;
    struct snapshot *snapshot = world_snapshot(world, origin, "first");
    struct told_snapshot told = ask_fork(world, snapshot, NULL, &(struct fork_options){.count = 1});

    expect_ok(&told.told);
    assert_int_equal(told.count, 1);
    fork = told.sandboxes[0];
    assert_false(id_equal(&fork->id, &origin->id));
    assert_null(fork->spec.name);
    assert_int_equal(fork->status, SANDBOX_RUNNING);
    assert_int_equal(fork->spec.limits.memory_bytes, 1 << 28);
    assert_string_equal(sandbox_pairs_get(&fork->spec.environment, "MODE"), "test");
    assert_string_equal(sandbox_pairs_get(&fork->spec.labels, "forkedFrom"), origin->id.text);
    /* Its sessions came along, in one call with its variables. */
    assert_string_equal(world->restored,
                        "{\"replace\":true,\"env\":{\"MODE\":\"test\"},\"sessions\":[]}");
    assert_int_equal(world->asked_environment, 1); /* its origin's */
    expect_events(world, &fork->id, "sandbox.created sandbox.forked");
    expect_row(world, &fork->id, "running");
    assert_int_equal(world_state(world, &fork->id), RUN_STATE_RUNNING);
}

static void a_fork_that_does_not_take_its_variables_is_none(void **state)
{
    struct world *world = *state;
    struct sandbox *origin = create_blue(world);
    struct snapshot *snapshot = world_snapshot(world, origin, "first");
    struct told_snapshot told;

    world->mood = AGENT_FAILS;
    told = ask_fork(world, snapshot, NULL, &(struct fork_options){.count = 1});
    expect_code(&told.told, ERR_UPSTREAM);
    assert_int_equal(world->asked_restore, 1);
    assert_int_equal(world->asked_environment, 2); /* its origin's; then alone, without sessions */
    world_settle(world);
    assert_int_equal(world_provider(world).count, 1);
}

static void forks_may_be_many_with_names_and_changes(void **state)
{
    struct world *world = *state;
    struct sandbox *origin = create_blue(world);
    struct sandbox_pair variable = {.name = (char *) "MODE", .value = NULL};
    struct sandbox_pairs removed = {.items = &variable, .count = 1};
    struct sandbox_change change = {.fields = SPEC_BIT(keep_alive) | SPEC_BIT(environment),
                                    .spec = {.keep_alive = true, .environment = removed}};
    struct told_snapshot told =
        ask_fork(world, world_snapshot(world, origin, NULL), NULL,
                 &(struct fork_options){.count = 20, .name = "try", .change = &change});
    struct error err = ERROR_INIT;

    expect_ok(&told.told);
    assert_int_equal(told.count, 20);
    for (size_t i = 0; i < 20; i++) {
        assert_true(told.sandboxes[i]->spec.keep_alive);
        assert_null(sandbox_pairs_get(&told.sandboxes[i]->spec.environment, "MODE"));
    }
    assert_non_null(sandbox_find(world->domain, &world->caller, "try-1", &err));
    assert_non_null(sandbox_find(world->domain, &world->caller, "try-20", &err));
    assert_int_equal(world->domain->counters.forked, 20);
}

static void all_forks_are_made_or_none(void **state)
{
    struct world *world = *state;
    struct sandbox *origin = create_blue(world);
    struct snapshot *snapshot = world_snapshot(world, origin, NULL);
    struct told_snapshot told;

    (void) world_create(world, "try-3"); /* in the way */
    told = ask_fork(world, snapshot, NULL, &(struct fork_options){.count = 5, .name = "try"});
    expect_code(&told.told, ERR_CONFLICT);
    world_wait(world);
    assert_int_equal(world_provider(world).count, 2);
    told = ask_fork(world, snapshot, NULL, &(struct fork_options){.count = 0});
    expect_code(&told.told, ERR_INVALID);
    told = ask_fork(world, snapshot, NULL, &(struct fork_options){.count = SNAPSHOT_FORKS_MAX + 1});
    expect_code(&told.told, ERR_INVALID);
}

static void a_running_sandbox_is_copied_in_passing(void **state)
{
    struct world *world = *state;
    struct sandbox *origin = create_blue(world);
    struct told_snapshot told = ask_fork(world, NULL, origin, &(struct fork_options){.count = 3});

    expect_ok(&told.told);
    assert_int_equal(told.count, 3);
    assert_true(told.has_how);
    assert_int_equal(origin->status, SANDBOX_RUNNING);
    assert_int_equal(world_copies(world).count, 0);
    assert_int_equal(world_snapshot_rows(world, &origin->id).count, 0);
    provider_fake_fail_next(world->provider, PROVIDER_CALL_SNAPSHOT, ERR_NO_SPACE);
    told = ask_fork(world, NULL, origin, &(struct fork_options){.count = 2});
    expect_code(&told.told, ERR_NO_SPACE);
    assert_int_equal(origin->status, SANDBOX_RUNNING);
}

static void one_fork_of_a_running_sandbox_is_its_only_copy(void **state)
{
    struct world *world = *state;
    struct sandbox *origin = create_blue(world);
    struct told_snapshot told = {.count = 0};
    const struct disk_ref *disk;

    provider_fake_fail_next(world->provider, PROVIDER_CALL_SNAPSHOT, ERR_NO_SPACE);
    provider_fake_hold(world->provider, PROVIDER_CALL_CREATE, true);
    sandbox_fork(world->domain, &world->caller, origin, &(struct fork_options){.count = 1},
                 on_forked, &told);
    world_wait(world);
    assert_true(origin->is_held);
    assert_int_equal(world_copies(world).count, 0);
    provider_fake_hold(world->provider, PROVIDER_CALL_CREATE, false);
    TURN_UNTIL(&world->loop, told.told.times);
    expect_ok(&told.told);
    disk = provider_fake_origin(world->provider, &told.sandboxes[0]->id);
    assert_int_equal(disk->set, DISK_OF_SANDBOX);
    assert_string_equal(disk->id.text, origin->id.text);
    assert_true(told.has_how);
    assert_false(origin->is_held);
    provider_fake_fail_next(world->provider, PROVIDER_CALL_CREATE, ERR_NO_SPACE);
    told = ask_fork(world, NULL, origin, &(struct fork_options){.count = 1});
    expect_code(&told.told, ERR_NO_SPACE);
    assert_int_equal(origin->status, SANDBOX_RUNNING);
    assert_false(origin->is_held);
}

static void one_without_processes_cannot_wake_before_its_forks_are_there(void **state)
{
    struct world *world = *state;
    struct sandbox *origin = create_blue(world);
    struct told_snapshot told = {.count = 0};
    struct told_use use;

    do_ask(world, sandbox_stop, origin);
    provider_fake_hold(world->provider, PROVIDER_CALL_CREATE, true);
    sandbox_fork(world->domain, &world->caller, origin, &(struct fork_options){.count = 1},
                 on_forked, &told);
    use_begin(world, origin, &use, SANDBOX_USE_START);
    world_wait(world);
    assert_int_equal(use.times, 0);
    assert_int_equal(world_copies(world).count, 0);
    provider_fake_hold(world->provider, PROVIDER_CALL_CREATE, false);
    TURN_UNTIL(&world->loop, told.told.times && use.times);
    expect_ok(&told.told);
    assert_false(told.has_how);
    assert_int_equal(origin->status, SANDBOX_RUNNING);
    sandbox_use_end(&use.use);
}

static void a_snapshot_that_is_deleted_stays_for_the_forks_under_way(void **state)
{
    struct world *world = *state;
    struct snapshot *snapshot = world_snapshot(world, create_blue(world), NULL);
    struct told_snapshot told = {.count = 0};
    struct told gone;

    provider_fake_hold(world->provider, PROVIDER_CALL_CREATE, true);
    snapshot_fork(world->domain, &world->caller, snapshot, &(struct fork_options){.count = 1},
                  on_forked, &told);
    gone = ask_delete(world, snapshot);
    expect_ok(&gone);
    assert_int_equal(world_copies(world).count, 1);
    provider_fake_hold(world->provider, PROVIDER_CALL_CREATE, false);
    TURN_UNTIL(&world->loop, told.told.times);
    expect_ok(&told.told);
    world_wait(world);
    assert_int_equal(world_copies(world).count, 0);
}

/* --- rollback -------------------------------------------------------------------------------- */

static void a_rollback_keeps_the_present_and_the_state(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = create_blue(world);
    struct snapshot *snapshot = world_snapshot(world, sandbox, "first");
    struct told_snapshot told;

    world->saved = "{\"sessions\":[\"later\"]}";
    told = ask_roll_back(world, sandbox, snapshot);
    expect_ok(&told.told);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    assert_int_equal(world_state(world, &sandbox->id), RUN_STATE_RUNNING);
    assert_non_null(strstr(world->restored, snapshot->inside + 1)); /* the sessions of then */
    assert_int_equal(told.snapshot->reason, SNAPSHOT_ROLLBACK);
    assert_string_equal(told.snapshot->inside, world->saved);
    assert_true(told.snapshot->expires_ms > 0);
    assert_int_equal(world_copies(world).count, 2);
    assert_int_equal(world_snapshot_rows(world, &sandbox->id).count, 2);
    expect_row(world, &sandbox->id, "running");
    expect_events(world, &sandbox->id,
                  "sandbox.created snapshot.created snapshot.created sandbox.rolled_back");
    /* And forth again. */
    told = ask_roll_back(world, sandbox, told.snapshot);
    expect_ok(&told.told);
}

static void a_rollback_goes_on_where_nothing_is_counted(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = create_blue(world);
    struct snapshot *snapshot = world_snapshot(world, sandbox, "first");
    struct told_snapshot told;

    provider_fake_fail_next(world->provider, PROVIDER_CALL_DISK_USAGE, ERR_NOT_IMPLEMENTED);
    told = ask_roll_back(world, sandbox, snapshot);
    expect_ok(&told.told);
    provider_fake_fail_next(world->provider, PROVIDER_CALL_DISK_USAGE, ERR_UNAVAILABLE);
    told = ask_roll_back(world, sandbox, snapshot);
    expect_code(&told.told, ERR_UNAVAILABLE);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
}

static void what_sleeps_sleeps_on_and_what_is_stopped_stays_so(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = create_blue(world);
    struct snapshot *snapshot = world_snapshot(world, sandbox, NULL);
    struct told_snapshot told;

    do_ask(world, sandbox_sleep, sandbox);
    told = ask_roll_back(world, sandbox, snapshot);
    expect_ok(&told.told);
    assert_int_equal(sandbox->status, SANDBOX_HIBERNATED);
    assert_string_equal(sandbox->inside, snapshot->inside);
    use_once(world, sandbox);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    do_ask(world, sandbox_stop, sandbox);
    told = ask_roll_back(world, sandbox, snapshot);
    expect_ok(&told.told);
    assert_int_equal(sandbox->status, SANDBOX_STOPPED);
    expect_row(world, &sandbox->id, "stopped");
}

static void a_rollback_that_fails_leaves_it_running_on_its_disk(void **state)
{
    static const enum provider_call_kind steps[] = {PROVIDER_CALL_STOP, PROVIDER_CALL_SNAPSHOT,
                                                    PROVIDER_CALL_ROLL_BACK};
    struct world *world = *state;
    struct sandbox *sandbox = create_blue(world);
    struct snapshot *snapshot = world_snapshot(world, sandbox, NULL);
    struct told_snapshot told;

    for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
        provider_fake_fail_next(world->provider, steps[i], ERR_NO_SPACE);
        told = ask_roll_back(world, sandbox, snapshot);
        expect_code(&told.told, ERR_NO_SPACE);
        world_wait(world);
        assert_int_equal(sandbox->status, SANDBOX_RUNNING);
        assert_int_equal(world_state(world, &sandbox->id), RUN_STATE_RUNNING);
        expect_row(world, &sandbox->id, "running");
    }
    /* The store: the present cannot be kept. */
    world->refuse_commit = 1;
    told = ask_roll_back(world, sandbox, snapshot);
    expect_code(&told.told, ERR_NO_SPACE);
    world_wait(world);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    assert_int_equal(world_copies(world).count, 2); /* the one, and what the third try saved */
}

static void one_that_cannot_be_started_again_is_stopped_and_says_so(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = create_blue(world);
    struct snapshot *snapshot = world_snapshot(world, sandbox, NULL);
    struct told_snapshot told;

    provider_fake_fail_next(world->provider, PROVIDER_CALL_START, ERR_UNAVAILABLE);
    told = ask_roll_back(world, sandbox, snapshot);
    expect_code(&told.told, ERR_UNAVAILABLE);
    world_wait(world);
    assert_int_equal(sandbox->status, SANDBOX_STOPPED);
    assert_non_null(strstr(sandbox->reason, "rollback"));
    use_once(world, sandbox); /* nobody asked for it to be stopped */
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
}

static void only_a_snapshot_of_the_same_image_fits(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = create_blue(world);
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct told_snapshot told;
    struct told other;

    spec.image = (char *) "debian";
    other = ask_create(world, &world->caller, &spec);
    expect_ok(&other);
    told = ask_roll_back(world, sandbox, world_snapshot(world, other.sandbox, NULL));
    expect_code(&told.told, ERR_INVALID);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
}

/* --- what changed ---------------------------------------------------------------------------- */

struct fake_vault {
    struct vault vault;
    struct world *world;
    struct disk_ref newer, older;
    vault_line *line;
    vault_done *done;
    void *context;
    struct loop_task task;
};

static void vault_tell(struct loop_task *task)
{
    struct fake_vault *vault = CONTAINER_OF(task, struct fake_vault, task);

    vault->line(vault->context, "{\"added\":\"a\"}", 13);
    vault->done(vault->context, NULL);
}

static void vault_diff(void *self, const struct vault_asker *asker, const struct disk_ref *newer,
                       const struct disk_ref *older, vault_line *line, vault_done *done,
                       void *context)
{
    struct fake_vault *vault = self;

    assert_int_equal(asker->haste, VAULT_ASKED);

    vault->newer = *newer;
    vault->older = *older;
    vault->line = line;
    vault->done = done;
    vault->context = context;
    loop_defer(&vault->world->loop, &vault->task);
}

struct told_diff {
    struct told told;
    int lines;
};

static void on_line(void *context, const char *line, size_t length)
{
    assert_memory_equal(line, "{\"added\":\"a\"}", length);
    ((struct told_diff *) context)->lines++;
}

static void on_diff(void *context, const struct error *failure)
{
    note_told(&((struct told_diff *) context)->told, failure, NULL);
}

static struct told_diff ask_diff(struct world *world, struct snapshot_place older,
                                 struct snapshot_place newer)
{
    struct told_diff told = {.lines = 0};

    snapshot_diff(world->domain, &world->caller, older, newer, on_line, on_diff, &told);
    assert_int_equal(told.told.times, 0);
    TURN_UNTIL(&world->loop, told.told.times);
    world_wait(world);
    return told;
}

static void disks_are_compared_by_the_vault(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = create_blue(world);
    struct fake_vault vault = {.vault = {.self = &vault, .diff = vault_diff}, .world = world};
    struct snapshot_place first = {.snapshot = world_snapshot(world, sandbox, "first")};
    struct snapshot_place second = {.snapshot = world_snapshot(world, sandbox, "second")};
    struct snapshot_place present = {.sandbox = sandbox};
    struct told_diff told = ask_diff(world, first, second);

    expect_code(&told.told, ERR_NOT_IMPLEMENTED); /* there is none */
    loop_task_init(&vault.task, vault_tell);
    world->domain->options.vault = &vault.vault;
    told = ask_diff(world, first, second);
    expect_ok(&told.told);
    assert_int_equal(told.lines, 1);
    assert_true(id_equal(&vault.older.id, &first.snapshot->id));
    assert_true(id_equal(&vault.newer.id, &second.snapshot->id));
    told = ask_diff(world, first, present);
    expect_ok(&told.told);
    assert_int_equal(vault.newer.set, DISK_OF_SNAPSHOT); /* a copy in passing */
    assert_int_equal(world_copies(world).count, 2);
    do_ask(world, sandbox_stop, sandbox);
    told = ask_diff(world, first, present);
    expect_ok(&told.told);
    assert_int_equal(vault.newer.set, DISK_OF_SANDBOX);
    assert_true(id_equal(&vault.newer.id, &sandbox->id));
    do_ask(world, sandbox_start, sandbox); /* it is held no longer */
    told = ask_diff(world, present, present);
    expect_code(&told.told, ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_fork_has_the_spec_and_an_identity_of_its_own),
        WORLD_TEST(a_fork_that_does_not_take_its_variables_is_none),
        WORLD_TEST(forks_may_be_many_with_names_and_changes),
        WORLD_TEST(all_forks_are_made_or_none),
        WORLD_TEST(a_running_sandbox_is_copied_in_passing),
        WORLD_TEST(one_fork_of_a_running_sandbox_is_its_only_copy),
        WORLD_TEST(one_without_processes_cannot_wake_before_its_forks_are_there),
        WORLD_TEST(a_snapshot_that_is_deleted_stays_for_the_forks_under_way),
        WORLD_TEST(a_rollback_keeps_the_present_and_the_state),
        WORLD_TEST(a_rollback_goes_on_where_nothing_is_counted),
        WORLD_TEST(what_sleeps_sleeps_on_and_what_is_stopped_stays_so),
        WORLD_TEST(a_rollback_that_fails_leaves_it_running_on_its_disk),
        WORLD_TEST(one_that_cannot_be_started_again_is_stopped_and_says_so),
        WORLD_TEST(only_a_snapshot_of_the_same_image_fits),
        WORLD_TEST(disks_are_compared_by_the_vault),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
