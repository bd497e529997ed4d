/* Every crash point is reached, and a process that is told to dies there. */
#include <signal.h>
#include <sys/wait.h>

#include "base/crash_point.h"
#include "domain/domain_crash_points.h"
#include "domain/sandbox/tier_testing.h"
#include "domain/snapshot/snapshot_testing.h"

static void live_with_snapshots(struct world *world, struct sandbox *sandbox)
{
    struct snapshot *snapshot = world_snapshot(world, sandbox, "first");
    struct told_snapshot rolled_back = ask_roll_back(world, sandbox, snapshot), forked = {0};
    struct told gone;

    expect_ok(&rolled_back.told);
    sandbox_fork(world->domain, &world->caller, sandbox, &(struct fork_options){.count = 2},
                 on_forked, &forked);
    TURN_UNTIL(&world->loop, forked.told.times);
    expect_ok(&forked.told);
    gone = ask_delete(world, snapshot);
    expect_ok(&gone);
    world_settle(world);
}

static struct sandbox *fork_one(struct world *world, struct snapshot *snapshot)
{
    struct told_snapshot told = {.count = 0};

    snapshot_fork(world->domain, &world->caller, snapshot, &(struct fork_options){.count = 1},
                  on_forked, &told);
    TURN_UNTIL(&world->loop, told.told.times);
    expect_ok(&told.told);
    return told.sandboxes[0];
}

/* Down to the object store, and back; what is stored there as well leaves this machine, and comes
 * back; a list of two layers becomes one. */
static void live_in_tiers(void)
{
    struct tiers *tiers = tiers_new(0);
    struct world *world = tiers->world;
    struct sandbox *sandbox = tiers_offloaded(tiers), *fork;
    struct snapshot *snapshot;

    use_once(world, sandbox);
    snapshot = world_snapshot(world, sandbox, "first");
    fork = fork_one(world, snapshot);
    do_ask(world, sandbox_sleep, fork);
    tiers_until(tiers, fork, SANDBOX_TIER_OFFLOADED);
    snapshot_set_size(world->domain, snapshot, 1000);
    world->domain->options.snapshot_cache_bytes = 1;
    world_pass_quietly(world, 2);
    (void) fork_one(world, snapshot);
    world->domain->options.squash_above = 1;
    world_pass_quietly(world, 2);
    tiers_free(tiers);
}

/* Once through a life, with and without freezing. */
static void live(unsigned int missing)
{
    struct provider_fake_options fake = {.missing = missing};
    struct world *world = world_new(&fake);
    struct sandbox *sandbox;

    world_open(world);
    sandbox = world_create(world, "demo");
    do_ask(world, sandbox_sleep, sandbox);
    do_ask(world, sandbox_wake, sandbox);
    do_ask(world, sandbox_stop, sandbox);
    do_ask(world, sandbox_start, sandbox);
    live_with_snapshots(world, sandbox);
    do_ask(world, sandbox_destroy, sandbox);
    world_free(world);
}

static int live_in_child(const char *crash_point)
{
    int status = 0;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        crash_point_arm(crash_point);
        live(0);
        live(PROVIDER_FREEZE);
        live_in_tiers();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void each_point_is_passed(void **state)
{
    (void) state;
    for (size_t i = 0; domain_crash_points[i]; i++) {
        int status = live_in_child(domain_crash_points[i]);

        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
            fail_msg("nobody died at %s", domain_crash_points[i]);
        print_message("# %s\n", domain_crash_points[i]);
    }
}

static void without_one_nobody_dies(void **state)
{
    (void) state;
    assert_int_equal(live_in_child("domain.nowhere"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_point_is_passed),
        cmocka_unit_test(without_one_nobody_dies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
