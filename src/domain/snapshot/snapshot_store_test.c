/* Disks as lists of layers: what is stored as a difference from what, and snapshots that leave this
 * machine and come back. */
#include "domain/sandbox/tier_testing.h"
#include "domain/snapshot/snapshot_internal.h"
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

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void offload(struct tiers *tiers, struct sandbox *sandbox)
{
    do_ask(tiers->world, sandbox_sleep, sandbox);
    tiers_until(tiers, sandbox, SANDBOX_TIER_OFFLOADED);
    world_settle(tiers->world);
}

static size_t layers_of(const char *list, char ret_first[static VAULT_LAYER_SIZE])
{
    AUTO(stored_disk) struct stored_disk disk = {.layers = NULL};
    struct error err = ERROR_INIT;

    assert_non_null(list);
    assert_int_equal(stored_disk_read(list, &disk, &err), 0);
    memcpy(ret_first, disk.layers[0].id, VAULT_LAYER_SIZE);
    return disk.count;
}

static struct told_snapshot ask_fork(struct world *world, struct snapshot *snapshot)
{
    struct told_snapshot told = {.count = 0};

    snapshot_fork(world->domain, &world->caller, snapshot, &(struct fork_options){.count = 1},
                  on_forked, &told);
    TURN_UNTIL(&world->loop, told.told.times);
    world_settle(world);
    return told;
}

/* --- differences ------------------------------------------------------------------------------ */

static void what_came_back_is_stored_as_a_difference(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct sandbox *sandbox = tiers_offloaded(tiers);
    char first[VAULT_LAYER_SIZE];
    struct id base;

    use_once(world, sandbox);
    world_settle(world);
    base = sandbox->base;
    assert_true(provider_fake_has_snapshot(world->provider, &base));
    assert_int_equal(world_snapshot_rows(world, &sandbox->id).count, 1);
    assert_string_equal(snapshot_set_by_id(world->domain, base.text)->layers ? "known" : "",
                        "known");
    offload(tiers, sandbox);
    assert_string_equal(tiers->base.id.text, base.text);
    assert_int_equal(tiers->base.set, DISK_OF_SNAPSHOT);
    assert_int_equal(layers_of(sandbox->stored, first), 2);
    assert_string_equal(first, TIER_LAYER);
    assert_int_equal(world_copies(world).count, 0); /* it was of use for that only */
    assert_int_equal(world_snapshot_rows(world, &sandbox->id).count, 0);
    use_once(world, sandbox);
    assert_int_equal(tiers->fetched_layers, 2);
    assert_string_equal(tiers->layer, TIER_LAYER);
}

static void it_goes_with_its_sandbox(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct sandbox *sandbox = tiers_offloaded(tiers);
    struct id id = sandbox->id;

    use_once(world, sandbox);
    assert_int_equal(world_copies(world).count, 1);
    do_ask(world, sandbox_destroy, sandbox);
    world_settle(world);
    assert_int_equal(world_copies(world).count, 0);
    assert_int_equal(world_snapshot_rows(world, &id).count, 0);
}

static void a_row_that_cannot_be_kept_leaves_what_it_was_told_apart_from(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct sandbox *sandbox = tiers_offloaded(tiers);
    struct id base;

    use_once(world, sandbox);
    world_settle(world);
    base = sandbox->base;
    do_ask(world, sandbox_sleep, sandbox);
    tiers_until(tiers, sandbox, SANDBOX_TIER_HIBERNATED);
    world_pass(world, 1);
    world->refuse_commit = 1;
    for (int i = 0; i < 20 && tiers->stored < 2; i++)
        world_pass(world, 10);
    world_settle(world);
    assert_null(sandbox->stored);
    assert_string_equal(sandbox->base.text, base.text);
    assert_true(provider_fake_has_snapshot(world->provider, &base));
}

/* A stack that is full is the matter of one disk. */
static void a_disk_that_is_dear_to_copy_has_none_and_others_do(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct sandbox *dear = tiers_offloaded(tiers), *other = world_create(world, "other");

    offload(tiers, other);
    provider_fake_set_copying(world->provider, true);
    use_once(world, dear);
    world_settle(world);
    assert_string_equal(dear->base.text, "");
    assert_int_equal(world_copies(world).count, 0);
    provider_fake_set_copying(world->provider, false);
    use_once(world, other);
    world_settle(world);
    assert_true(provider_fake_has_snapshot(world->provider, &other->base));
    offload(tiers, dear); /* where it is seen to be cheap again */
    use_once(world, dear);
    assert_true(provider_fake_has_snapshot(world->provider, &dear->base));
}

static void a_disk_without_a_row_for_its_copy_is_stored_whole(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct sandbox *sandbox = tiers_offloaded(tiers);
    char first[VAULT_LAYER_SIZE];

    provider_fake_fail_next(world->provider, PROVIDER_CALL_SNAPSHOT, ERR_NO_SPACE);
    use_once(world, sandbox);
    assert_string_equal(sandbox->base.text, "");
    offload(tiers, sandbox);
    assert_string_equal(tiers->base.id.text, "");
    assert_int_equal(layers_of(sandbox->stored, first), 1);
}

static void forks_of_one_snapshot_share_its_layers(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct sandbox *origin = world_create(world, "origin");
    struct snapshot *snapshot = world_snapshot(world, origin, "first");
    struct sandbox *one = ask_fork(world, snapshot).sandboxes[0];
    struct sandbox *two = ask_fork(world, snapshot).sandboxes[0];
    char first[VAULT_LAYER_SIZE], second[VAULT_LAYER_SIZE];

    offload(tiers, one);
    assert_int_equal(tiers->stored, 2); /* the snapshot, and what differs */
    assert_string_equal(tiers->base.id.text, snapshot->id.text);
    assert_int_equal(snapshot->state, SNAPSHOT_IS_READY);
    assert_int_equal(layers_of(snapshot->layers, first), 1);
    assert_int_equal(layers_of(one->stored, second), 2);
    assert_string_equal(first, second);
    offload(tiers, two);
    assert_int_equal(tiers->stored, 3);
    assert_int_equal(layers_of(two->stored, second), 2);
    assert_string_equal(first, second);
    assert_true(provider_fake_has_snapshot(world->provider, &snapshot->id));
}

static void what_a_snapshot_here_has_is_not_fetched(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct snapshot *snapshot = world_snapshot(world, world_create(world, "origin"), "first");
    struct sandbox *fork = ask_fork(world, snapshot).sandboxes[0];
    char first[VAULT_LAYER_SIZE];

    offload(tiers, fork);
    use_once(world, fork);
    assert_int_equal(tiers->fetched, 1);
    assert_int_equal(tiers->fetched_layers, 1);
    assert_string_equal(tiers->start.id.text, snapshot->id.text);
    assert_string_not_equal(tiers->layer, TIER_LAYER);
    offload(tiers, fork);
    assert_int_equal(layers_of(fork->stored, first), 3);
    tiers->fetch_failure = ERR_NOT_FOUND; /* once with it, once without */
    assert_true(ask(world, sandbox_wake, fork).failed);
    assert_int_equal(tiers->fetched, 3);
    assert_int_equal(tiers->fetched_layers, 3);
    assert_string_equal(tiers->start.id.text, "");
    assert_int_equal(snapshot->pins, 0);
}

static void a_snapshot_that_cannot_be_stored_holds_up_nothing(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct snapshot *snapshot = world_snapshot(world, world_create(world, "origin"), "first");
    struct sandbox *fork = ask_fork(world, snapshot).sandboxes[0];
    char first[VAULT_LAYER_SIZE];

    tiers->store_failure = ERR_NO_SPACE;
    tiers->store_failures = 1;
    offload(tiers, fork);
    assert_int_equal(tiers->stored, 2);
    assert_string_equal(tiers->base.id.text, "");
    assert_int_equal(layers_of(fork->stored, first), 1);
    assert_null(snapshot->layers);
}

static void what_cannot_be_told_apart_is_stored_whole(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct sandbox *sandbox = tiers_offloaded(tiers);
    char first[VAULT_LAYER_SIZE];

    use_once(world, sandbox);
    tiers->store_failure = ERR_NOT_FOUND;
    tiers->store_failures = 1;
    offload(tiers, sandbox);
    assert_int_equal(tiers->stored, 3);
    assert_string_equal(tiers->base.id.text, "");
    assert_int_equal(layers_of(sandbox->stored, first), 1);
    assert_int_equal(world_copies(world).count, 0);
}

static void a_rollback_is_told_apart_from_what_it_went_back_to(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct sandbox *sandbox = tiers_offloaded(tiers);
    struct snapshot *snapshot = world_snapshot(world, sandbox, "first");
    struct told_snapshot told;
    struct id base = sandbox->base;

    assert_true(*base.text);
    told = ask_roll_back(world, sandbox, snapshot);
    expect_ok(&told.told);
    world_settle(world);
    assert_string_equal(sandbox->base.text, snapshot->id.text);
    assert_false(provider_fake_has_snapshot(world->provider, &base));
    tiers_until(tiers, sandbox, SANDBOX_TIER_OFFLOADED);
    assert_string_equal(tiers->base.id.text, snapshot->id.text);
}

static void it_is_known_after_a_restart(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct sandbox *sandbox = tiers_offloaded(tiers);
    struct id id = sandbox->id, base;

    use_once(world, sandbox);
    world_settle(world);
    base = sandbox->base;
    world_close(world);
    world_make_provider(world);
    provider_fake_add(world->provider, &id, RUN_STATE_RUNNING, NULL);
    provider_fake_add_snapshot(world->provider, &base);
    world_open(world);
    sandbox = sandbox_find(world->domain, &world->caller, id.text, NULL);
    assert_string_equal(sandbox->base.text, base.text);
    offload(tiers, sandbox);
    assert_string_equal(tiers->base.id.text, base.text);
}

/* --- from there and back ---------------------------------------------------------------------- */

/* A snapshot that is in the object store only. */
static struct snapshot *stored_snapshot(struct tiers *tiers)
{
    struct world *world = tiers->world;
    struct snapshot *snapshot = world_snapshot(world, world_create(world, "origin"), "first");

    offload(tiers, ask_fork(world, snapshot).sandboxes[0]);
    snapshot_set_size(world->domain, snapshot, 1000);
    world->domain->options.snapshot_cache_bytes = 999;
    world_pass_quietly(world, 2);
    world->domain->options.snapshot_cache_bytes = 0;
    return snapshot;
}

static void what_is_too_much_stays_in_the_store_only(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct snapshot *snapshot = stored_snapshot(tiers);

    assert_int_equal(snapshot->state, SNAPSHOT_IS_STORED);
    assert_false(provider_fake_has_snapshot(world->provider, &snapshot->id));
    assert_string_equal(world_snapshot_rows(world, &snapshot->sandbox).state, "stored");
}

static void what_nobody_stored_or_somebody_needs_stays_here(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct snapshot *snapshot = world_snapshot(world, world_create(world, "origin"), "first");
    struct snapshot *other = world_snapshot(world, world_create(world, "other"), "other");

    offload(tiers, ask_fork(world, snapshot).sandboxes[0]);
    snapshot_set_size(world->domain, snapshot, 1000);
    snapshot_set_size(world->domain, other, 1000);
    world->domain->options.snapshot_cache_bytes = 999;
    snapshot_pin(snapshot);
    world_pass_quietly(world, 2);
    assert_int_equal(snapshot->state, SNAPSHOT_IS_READY);
    snapshot_unpin(world->domain, snapshot);
    world_pass_quietly(world, 2);
    assert_int_equal(snapshot->state, SNAPSHOT_IS_STORED);
    assert_int_equal(other->state, SNAPSHOT_IS_READY);
}

static void those_who_need_it_have_it_fetched_once(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct snapshot *snapshot = stored_snapshot(tiers);
    struct told_snapshot one = {.count = 0}, two = {.count = 0};

    snapshot_fork(world->domain, &world->caller, snapshot, &(struct fork_options){.count = 1},
                  on_forked, &one);
    snapshot_fork(world->domain, &world->caller, snapshot, &(struct fork_options){.count = 2},
                  on_forked, &two);
    TURN_UNTIL(&world->loop, one.told.times && two.told.times);
    world_settle(world);
    expect_ok(&one.told);
    expect_ok(&two.told);
    assert_int_equal(two.count, 2);
    assert_int_equal(tiers->fetched, 1);
    assert_int_equal(snapshot->state, SNAPSHOT_IS_READY);
    assert_true(provider_fake_has_snapshot(world->provider, &snapshot->id));
    assert_string_equal(world_snapshot_rows(world, &snapshot->sandbox).state, "ready");
    assert_int_equal(world_provider(world).count, 4); /* the origin, three forks; no scratch disk */
}

static void a_rollback_has_it_fetched(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct snapshot *snapshot = stored_snapshot(tiers);
    struct sandbox *origin = sandbox_find(world->domain, &world->caller, "origin", NULL);
    struct told_snapshot told;

    tiers->fetch_failure = ERR_NOT_FOUND;
    told = ask_roll_back(world, origin, snapshot);
    expect_code(&told.told, ERR_GONE);
    assert_int_equal(origin->status, SANDBOX_RUNNING);
    assert_int_equal(snapshot->state, SNAPSHOT_IS_STORED);
    tiers->fetch_failure = ERR_NONE;
    told = ask_roll_back(world, origin, snapshot);
    expect_ok(&told.told);
    assert_string_equal(provider_fake_origin(world->provider, &origin->id)->id.text,
                        snapshot->id.text);
}

static void a_fetch_that_fails_leaves_it_where_it_is(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct snapshot *snapshot = stored_snapshot(tiers);
    struct told_snapshot told;

    tiers->fetch_failure = ERR_UNAVAILABLE;
    told = ask_fork(world, snapshot);
    expect_code(&told.told, ERR_UNAVAILABLE);
    assert_non_null(strstr(told.told.failure.message, "brought back"));
    tiers->fetch_failure = ERR_NONE;
    provider_fake_fail_next(world->provider, PROVIDER_CALL_SNAPSHOT, ERR_NO_SPACE);
    told = ask_fork(world, snapshot);
    expect_code(&told.told, ERR_NO_SPACE);
    assert_int_equal(snapshot->state, SNAPSHOT_IS_STORED);
    assert_int_equal(world_provider(world).count, 1); /* the origin */
    told = ask_fork(world, snapshot);
    expect_ok(&told.told);
}

static void one_that_is_deleted_meanwhile_leaves_nothing(void **state)
{
    struct tiers *tiers = *state;
    struct world *world = tiers->world;
    struct snapshot *snapshot = stored_snapshot(tiers);
    struct told_snapshot told = {.count = 0};
    struct told gone;

    provider_fake_hold(world->provider, PROVIDER_CALL_DISK_JOB, true);
    snapshot_fork(world->domain, &world->caller, snapshot, &(struct fork_options){.count = 1},
                  on_forked, &told);
    world_wait(world);
    gone = ask_delete(world, snapshot);
    expect_ok(&gone);
    provider_fake_hold(world->provider, PROVIDER_CALL_DISK_JOB, false);
    TURN_UNTIL(&world->loop, told.told.times);
    assert_true(told.told.failed);
    world_settle(world);
    assert_int_equal(world_copies(world).count, 0);
    assert_int_equal(world_provider(world).count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(what_came_back_is_stored_as_a_difference),
        STORE_TEST(it_goes_with_its_sandbox),
        STORE_TEST(a_row_that_cannot_be_kept_leaves_what_it_was_told_apart_from),
        STORE_TEST(a_disk_that_is_dear_to_copy_has_none_and_others_do),
        STORE_TEST(a_disk_without_a_row_for_its_copy_is_stored_whole),
        STORE_TEST(forks_of_one_snapshot_share_its_layers),
        STORE_TEST(what_a_snapshot_here_has_is_not_fetched),
        STORE_TEST(a_snapshot_that_cannot_be_stored_holds_up_nothing),
        STORE_TEST(what_cannot_be_told_apart_is_stored_whole),
        STORE_TEST(a_rollback_is_told_apart_from_what_it_went_back_to),
        STORE_TEST(it_is_known_after_a_restart),
        STORE_TEST(what_is_too_much_stays_in_the_store_only),
        STORE_TEST(what_nobody_stored_or_somebody_needs_stays_here),
        STORE_TEST(those_who_need_it_have_it_fetched_once),
        STORE_TEST(a_rollback_has_it_fetched),
        STORE_TEST(a_fetch_that_fails_leaves_it_where_it_is),
        STORE_TEST(one_that_is_deleted_meanwhile_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
