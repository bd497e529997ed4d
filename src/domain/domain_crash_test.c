/* Every crash point is reached, and a process that is told to dies there. */
#include <signal.h>
#include <sys/wait.h>

#include "base/crash_point.h"
#include "domain/conversation/harness_testing.h"
#include "domain/domain_crash_points.h"
#include "domain/sandbox/tier_testing.h"
#include "domain/snapshot/snapshot_testing.h"
#include "domain/task/task_schedule.h"
#include "domain/task/team.h"

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

/* Agents in sandboxes do what they are asked, at once. */
struct crash_operation {
    struct loop_task task;
    inside_text_done *done;
    void *context;
};

static void crash_operated(struct loop_task *task)
{
    AUTO(free) struct crash_operation *operation = CONTAINER_OF(task, struct crash_operation, task);

    operation->done(operation->context, NULL, "{\"exitCode\":0,\"stdout\":\"\"}");
}

static void crash_operate(void *self, const struct id *sandbox, enum inside_operation what,
                          const char *json, uint64_t timeout_ms, inside_text_done *done,
                          void *context)
{
    struct crash_operation *operation = mem_alloc(sizeof(*operation));
    struct world *world = self;

    (void) sandbox, (void) what, (void) json, (void) timeout_ms;
    operation->done = done;
    operation->context = context;
    loop_task_init(&operation->task, crash_operated);
    loop_defer(&world->loop, &operation->task);
}

static void crash_turn(struct world *world, struct fake_harness *fake)
{
    struct sandbox *sandbox = world_create(world, "talk");
    struct id turn = begin_turn(world, begin_conversation(world, sandbox), "hello");
    struct harness_turn *handle;

    TURN_UNTIL(&world->loop, fake->prompts);
    handle = fake_last(fake);
    handle->listener->permission(handle->context, "per_1", "{}");
    fake_finish(fake);
    wait_turn(world, &turn);
}

static void on_crash_team(void *context, const struct error *failure, const struct team *team)
{
    (void) failure, (void) team;
    ++*(int *) context;
}

static void on_crash_schedule(void *context, const struct error *failure,
                              struct task_schedule *schedule)
{
    (void) failure;
    *(struct task_schedule **) context = schedule;
}

static void on_crash_task(void *context, const struct error *failure, const struct task *task,
                          bool is_new)
{
    (void) failure, (void) task, (void) is_new;
    ++*(int *) context;
}

static struct json_place crash_json(const char *text)
{
    struct json_place place = {.value = json_read(text, strlen(text), NULL, NULL)};

    assert_non_null(place.value);
    return place;
}

/* A turn that asks; a team with a checkout; a schedule that begins a task. */
static void live_with_agents(void)
{
    const struct json_place team = crash_json(
        "{\"members\":[{\"text\":\"a\"}],\"shared\":\"fork\",\"git\":{\"url\":\"https://h/r\"}}");
    const struct json_place plan =
        crash_json("{\"name\":\"s\",\"cron\":\"@daily\",\"task\":{\"text\":\"b\"}}");
    struct fake_memory *memory = mem_alloc(sizeof(*memory));
    struct world *world = world_new(NULL);
    struct task_schedule *schedule = NULL;
    struct fake_harness fake;
    struct task_counters counters;
    int teams = 0, tasks = 0;

    fake_harness_init(&fake, world, memory);
    world->inside.operate = crash_operate;
    world_open(world);
    world_tick(world);
    crash_turn(world, &fake);
    fake.is_quick = true;
    team_create(world->domain, &world->caller, &team, on_crash_team, &teams);
    schedule_create(world->domain, &world->caller, &plan, on_crash_schedule, &schedule);
    TURN_UNTIL(&world->loop, teams && schedule);
    schedule_run(world->domain, &world->caller, schedule, on_crash_task, &tasks);
    TURN_UNTIL(&world->loop, tasks);
    do {
        world_settle(world);
        task_count(world->domain, &counters);
    } while (counters.live);
    world_free(world);
    json_decref(team.value);
    json_decref(plan.value);
    free(memory);
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
        live_with_agents();
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
