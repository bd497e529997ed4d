/* Snapshots: made, found, deleted, pruned, recovered. */
#include "domain/sandbox/sandbox_set.h"
#include "domain/snapshot/snapshot_testing.h"

static struct snapshot *find(struct world *world, const char *name)
{
    struct error err = ERROR_INIT;

    return snapshot_find(world->domain, &world->caller, name, &err);
}

/* --- made ------------------------------------------------------------------------------------ */

static void an_answer_means_that_it_is_kept(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct told_snapshot told =
        ask_snapshot(world, sandbox, &(struct snapshot_options){.name = "first"});
    struct kept_snapshots rows = world_snapshot_rows(world, &sandbox->id);

    expect_ok(&told.told);
    assert_true(told.has_how && told.how.pause_us > 0); /* it stood still for it */
    assert_int_equal(rows.count, 1);
    assert_string_equal(rows.name, "first");
    assert_string_equal(rows.state, "ready");
    assert_string_equal(rows.inside, world->saved);
    assert_int_equal(world_copies(world).count, 1);
    assert_ptr_equal(find(world, "first"), told.snapshot);
    assert_ptr_equal(find(world, told.snapshot->id.text), told.snapshot);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    expect_events(world, &sandbox->id, "sandbox.created snapshot.created");
}

static void it_is_made_in_every_state_that_has_a_disk(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");

    do_ask(world, sandbox_sleep, sandbox);
    assert_int_equal(sandbox->status, SANDBOX_FROZEN);
    (void) world_snapshot(world, sandbox, "frozen");
    assert_int_equal(sandbox->status, SANDBOX_FROZEN);
    do_ask(world, sandbox_stop, sandbox);
    (void) world_snapshot(world, sandbox, "stopped");
    assert_int_equal(sandbox->status, SANDBOX_STOPPED);
    assert_int_equal(world_copies(world).count, 2);
}

static void only_one_that_runs_stands_still_and_only_if_it_may(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    const struct snapshot_options held = {.name = NULL}, live = {.no_freeze = true};

    assert_int_equal(ask_snapshot(world, sandbox, &held).how.pause_us, 1);
    assert_int_equal(ask_snapshot(world, sandbox, &live).how.pause_us, 0);
    do_ask(world, sandbox_sleep, sandbox);
    assert_int_equal(ask_snapshot(world, sandbox, &held).how.pause_us, 0);
    assert_int_equal(world->domain->counters.snapshots, 3);
    assert_int_equal(world->domain->counters.snapshot_pause_us_total, 1);
}

static void what_else_is_wished_waits_for_it(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct told_snapshot snapshot = {.count = 0};
    struct told stopped = {.times = 0};
    struct told_use use;

    provider_fake_hold(world->provider, PROVIDER_CALL_SNAPSHOT, true);
    snapshot_make(world->domain, &world->caller, sandbox, &(struct snapshot_options){.name = NULL},
                  on_snapshot_told, &snapshot);
    sandbox_stop(world->domain, &world->caller, sandbox, on_told, &stopped);
    use_begin(world, sandbox, &use, 0);
    world_wait(world);
    assert_int_equal(use.times, 1); /* it goes on */
    assert_int_equal(snapshot.told.times + stopped.times, 0);
    sandbox_use_end(&use.use);
    provider_fake_hold(world->provider, PROVIDER_CALL_SNAPSHOT, false);
    TURN_UNTIL(&world->loop, stopped.times);
    expect_ok(&snapshot.told);
    expect_ok(&stopped);
}

static void names_are_one_owners_and_have_a_rule(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct id id = id_new();
    static const char *const bad[] = {"", "a/b", "a\nb"};
    struct told_snapshot told;

    (void) world_snapshot(world, sandbox, "first");
    told = ask_snapshot(world, sandbox, &(struct snapshot_options){.name = "first"});
    expect_code(&told.told, ERR_CONFLICT);
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        told = ask_snapshot(world, sandbox, &(struct snapshot_options){.name = bad[i]});
        expect_code(&told.told, ERR_INVALID);
    }
    told = ask_snapshot(world, sandbox, &(struct snapshot_options){.name = id.text});
    expect_code(&told.told, ERR_INVALID);
    told = ask_snapshot(world, sandbox, &(struct snapshot_options){.expires_ms = 1});
    expect_code(&told.told, ERR_INVALID);
    world->caller.scope = CALLER_READ;
    told = ask_snapshot(world, sandbox, &(struct snapshot_options){.name = "second"});
    expect_code(&told.told, ERR_FORBIDDEN);
    assert_int_equal(world_copies(world).count, 1);
}

static void a_failure_leaves_nothing_and_the_name_is_free(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct told_snapshot told;

    provider_fake_fail_next(world->provider, PROVIDER_CALL_SNAPSHOT, ERR_NO_SPACE);
    told = ask_snapshot(world, sandbox, &(struct snapshot_options){.name = "first"});
    expect_code(&told.told, ERR_NO_SPACE);
    assert_null(find(world, "first"));
    world->refuse_commit = 1;
    told = ask_snapshot(world, sandbox, &(struct snapshot_options){.name = "first"});
    expect_code(&told.told, ERR_NO_SPACE);
    world_wait(world);
    assert_null(find(world, "first"));
    assert_int_equal(world_copies(world).count, 0);
    assert_int_equal(world_snapshot_rows(world, &sandbox->id).count, 0);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    (void) world_snapshot(world, sandbox, "first");
}

static void a_size_that_is_not_known_is_no_reason_to_fail(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");

    provider_fake_fail_next(world->provider, PROVIDER_CALL_DISK_USAGE, ERR_NOT_IMPLEMENTED);
    assert_int_equal(world_snapshot(world, sandbox, NULL)->size, 0);
}

static void others_do_not_see_it(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct snapshot *snapshot = world_snapshot(world, sandbox, "first");
    struct caller other = {.scope = CALLER_WRITE, .owner = id_new()};
    struct caller narrow = {
        .scope = CALLER_SANDBOX, .owner = world->caller.owner, .sandbox = id_new()};
    struct error err = ERROR_INIT;

    assert_null(snapshot_find(world->domain, &other, snapshot->id.text, &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_null(snapshot_find(world->domain, &other, "first", &err));
    assert_null(snapshot_find(world->domain, &narrow, snapshot->id.text, &err));
}

/* --- listed ---------------------------------------------------------------------------------- */

struct listing {
    size_t count;
    char names[256];
};

static void note_one(void *context, struct snapshot *snapshot)
{
    struct listing *listing = context;
    size_t length = strlen(listing->names);

    listing->count++;
    (void) snprintf(listing->names + length, sizeof(listing->names) - length, "%s ",
                    snapshot->name);
}

static void a_list_comes_in_pages_newest_first(void **state)
{
    struct world *world = *state;
    struct sandbox *a = world_create(world, "a"), *b = world_create(world, "b");
    struct snapshot_filter filter = {.limit = 2};
    AUTO(pool) struct pool pool = POOL_INIT;
    struct listing listing = {.count = 0};
    struct error err = ERROR_INIT;
    const char *next = NULL;
    static const char *const names[] = {"s1", "s2", "s3", "s4", "s5"};

    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        (void) world_snapshot(world, i % 2 ? b : a, names[i]);
        clock_manual_advance(&world->clock, 10);
    }
    do {
        assert_int_equal(snapshot_list(world->domain, &world->caller, &filter, &pool, note_one,
                                       &listing, &next, &err),
                         0);
        filter.after = next;
    } while (next);
    assert_string_equal(listing.names, "s5 s4 s3 s2 s1 ");
    filter = (struct snapshot_filter){.sandbox = &b->id, .limit = 10};
    listing = (struct listing){.count = 0};
    assert_int_equal(snapshot_list(world->domain, &world->caller, &filter, &pool, note_one,
                                   &listing, &next, &err),
                     0);
    assert_string_equal(listing.names, "s4 s2 ");
    filter.after = "nonsense";
    assert_int_equal(snapshot_list(world->domain, &world->caller, &filter, &pool, note_one,
                                   &listing, &next, &err),
                     -1);
    assert_int_equal(err.code, ERR_INVALID);
}

/* --- deleted --------------------------------------------------------------------------------- */

static void a_delete_takes_row_and_copy(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct snapshot *snapshot = world_snapshot(world, sandbox, "first");
    struct told told;

    world->refuse_commit = 1;
    told = ask_delete(world, snapshot);
    expect_code(&told, ERR_NO_SPACE);
    assert_ptr_equal(find(world, "first"), snapshot);
    provider_fake_fail_next(world->provider, PROVIDER_CALL_DELETE_SNAPSHOT, ERR_UNAVAILABLE);
    told = ask_delete(world, snapshot);
    expect_ok(&told);
    assert_null(find(world, "first"));
    assert_int_equal(world_snapshot_rows(world, &sandbox->id).count, 0);
    world_pass(world, 11); /* and tried again */
    assert_int_equal(world_copies(world).count, 0);
    expect_events(world, &sandbox->id, "sandbox.created snapshot.created snapshot.deleted");
}

static void it_outlives_its_sandbox_unless_it_was_made_by_itself(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct id id = sandbox->id;
    struct told_snapshot told;

    (void) world_snapshot(world, sandbox, "mine");
    told = ask_snapshot(world, sandbox, &(struct snapshot_options){.reason = SNAPSHOT_INTERVAL});
    expect_ok(&told.told);
    told =
        ask_snapshot(world, sandbox,
                     &(struct snapshot_options){.reason = SNAPSHOT_INTERVAL,
                                                .expires_ms = world->clock.wall_ms + 3600 * 1000});
    expect_ok(&told.told);
    assert_int_equal(world_copies(world).count, 3);
    do_ask(world, sandbox_destroy, sandbox);
    world_wait(world);
    assert_int_equal(world_copies(world).count, 2);
    assert_int_equal(world_snapshot_rows(world, &id).count, 2);
    assert_non_null(find(world, "mine"));
}

/* --- by themselves --------------------------------------------------------------------------- */

static struct sandbox *create_with(struct world *world, const struct sandbox_spec *spec)
{
    struct told told = ask_create(world, &world->caller, spec);

    expect_ok(&told);
    return told.sandbox;
}

static void an_interval_makes_them_and_the_oldest_go(void **state)
{
    struct world *world = *state;
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct sandbox *sandbox;
    struct snapshot *first;

    spec.snapshot_every_ms = 60 * 1000;
    spec.snapshot_keep = 2;
    spec.keep_alive = true;
    sandbox = create_with(world, &spec);
    first = world_snapshot(world, sandbox, "mine");
    world_pass_quietly(world, 59);
    assert_int_equal(world_copies(world).count, 1);
    world_pass_quietly(world, 5);
    assert_int_equal(world_copies(world).count, 2);
    world_pass_quietly(world, 200);
    assert_int_equal(world_copies(world).count, 3); /* two, and the one made by hand */
    assert_ptr_equal(find(world, "mine"), first);
    do_ask(world, sandbox_stop, sandbox);
    world_pass_quietly(world, 300);
    assert_int_equal(world_copies(world).count, 3); /* what does not run does not change */
}

static void those_that_are_too_old_go(void **state)
{
    struct world *world = *state;
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct sandbox *sandbox;

    spec.snapshot_every_ms = 60 * 1000;
    spec.snapshot_keep_for_ms = 150 * 1000;
    spec.keep_alive = true;
    sandbox = create_with(world, &spec);
    world_pass_quietly(world, 130);
    assert_int_equal(world_copies(world).count, 2);
    do_ask(world, sandbox_stop, sandbox);
    world_pass_quietly(world, 90);
    assert_int_equal(world_copies(world).count, 1);
    world_pass_quietly(world, 90);
    assert_int_equal(world_copies(world).count, 0);
    assert_int_equal(world_snapshot_rows(world, &sandbox->id).count, 0);
}

static void one_that_fails_on_its_interval_is_tried_at_the_next(void **state)
{
    struct world *world = *state;
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;

    spec.snapshot_every_ms = 60 * 1000;
    spec.keep_alive = true;
    (void) create_with(world, &spec);
    provider_fake_fail_next(world->provider, PROVIDER_CALL_SNAPSHOT, ERR_NO_SPACE);
    world_pass_quietly(world, 70);
    assert_int_equal(world_copies(world).count, 0);
    world_pass_quietly(world, 60);
    assert_int_equal(world_copies(world).count, 1);
}

/* --- quotas ---------------------------------------------------------------------------------- */

static void quotas_count_snapshots_and_what_they_hold(void **state)
{
    struct world *world = *state;
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct sandbox *sandbox;
    struct told_snapshot told;
    struct told created;

    world->domain->options.default_quota = (struct quota){.snapshots = 2, .disk_bytes = 1000};
    spec.limits.disk_bytes = 600;
    sandbox = create_with(world, &spec);
    (void) world_snapshot(world, sandbox, "first");
    snapshot_set_size(world->domain, find(world, "first"), 350);
    spec.limits.disk_bytes = 100;
    created = ask_create(world, &world->caller, &spec);
    expect_code(&created, ERR_QUOTA);
    assert_non_null(strstr(created.failure.message, "disk"));
    (void) world_snapshot(world, sandbox, "second");
    told = ask_snapshot(world, sandbox, &(struct snapshot_options){.name = "third"});
    expect_code(&told.told, ERR_QUOTA);
    assert_non_null(strstr(told.told.failure.message, "snapshots"));
    world->domain->options.default_quota.snapshots = 0;
    snapshot_set_size(world->domain, find(world, "second"), 50);
    told = ask_snapshot(world, sandbox, &(struct snapshot_options){.name = "third"});
    expect_code(&told.told, ERR_QUOTA);
    assert_non_null(strstr(told.told.failure.message, "disk"));
}

/* --- after a restart ------------------------------------------------------------------------- */

static void restart(struct world *world, const struct id *sandbox, const struct id *copies,
                    size_t count)
{
    world_close(world);
    world_make_provider(world);
    provider_fake_add(world->provider, sandbox, RUN_STATE_RUNNING, NULL);
    for (size_t i = 0; i < count; i++)
        provider_fake_add_snapshot(world->provider, &copies[i]);
    world_open_as_is(world);
    world_wait(world);
}

static void after_a_restart_rows_and_copies_agree(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct id id = sandbox->id;
    struct id kept = world_snapshot(world, sandbox, "kept")->id;
    struct id lost = world_snapshot(world, sandbox, "lost")->id;
    struct id copies[] = {kept, id_new()}; /* the second was never acknowledged */
    struct provider_snapshots view;

    restart(world, &id, copies, 2);
    view = world_copies(world);
    assert_int_equal(view.count, 1);
    assert_true(id_equal(&view.ids[0], &kept));
    assert_int_equal(find(world, "kept")->state, SNAPSHOT_IS_READY);
    assert_int_equal(find(world, "lost")->state, SNAPSHOT_IS_LOST);
    expect_events(world, &id, "sandbox.created snapshot.created snapshot.created snapshot.lost");
    /* The pool was not there, and is now. */
    copies[1] = lost;
    restart(world, &id, copies, 2);
    assert_int_equal(find(world, "lost")->state, SNAPSHOT_IS_READY);
    assert_int_equal(world_copies(world).count, 2);
    expect_events(world, &id,
                  "sandbox.created snapshot.created snapshot.created snapshot.lost "
                  "snapshot.found");
}

static void what_is_lost_cannot_be_used_and_can_be_deleted(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct id id = sandbox->id;
    struct told_snapshot told;
    struct told gone;

    (void) world_snapshot(world, sandbox, "lost");
    restart(world, &id, NULL, 0);
    told = ask_roll_back(world, sandbox_set_by_id(world->domain, id.text), find(world, "lost"));
    expect_code(&told.told, ERR_GONE);
    gone = ask_delete(world, find(world, "lost"));
    expect_ok(&gone);
    assert_int_equal(world_snapshot_rows(world, &id).count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(an_answer_means_that_it_is_kept),
        WORLD_TEST(it_is_made_in_every_state_that_has_a_disk),
        WORLD_TEST(only_one_that_runs_stands_still_and_only_if_it_may),
        WORLD_TEST(what_else_is_wished_waits_for_it),
        WORLD_TEST(names_are_one_owners_and_have_a_rule),
        WORLD_TEST(a_failure_leaves_nothing_and_the_name_is_free),
        WORLD_TEST(a_size_that_is_not_known_is_no_reason_to_fail),
        WORLD_TEST(others_do_not_see_it),
        WORLD_TEST(a_list_comes_in_pages_newest_first),
        WORLD_TEST(a_delete_takes_row_and_copy),
        WORLD_TEST(it_outlives_its_sandbox_unless_it_was_made_by_itself),
        WORLD_TEST(an_interval_makes_them_and_the_oldest_go),
        WORLD_TEST(those_that_are_too_old_go),
        WORLD_TEST(one_that_fails_on_its_interval_is_tried_at_the_next),
        WORLD_TEST(quotas_count_snapshots_and_what_they_hold),
        WORLD_TEST(after_a_restart_rows_and_copies_agree),
        WORLD_TEST(what_is_lost_cannot_be_used_and_can_be_deleted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
