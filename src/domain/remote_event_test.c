#include "domain/domain_testing.h"
#include "domain/remote_event.h"

static void on_kept(void *context, const struct error *failure)
{
    note_told(context, failure, NULL);
}

static struct told keep(struct world *world, const struct remote_event *event)
{
    struct told told = {.times = 0};

    remote_event_keep(world->domain, event, on_kept, &told);
    assert_int_equal(told.times, 0);
    TURN_UNTIL(&world->loop, told.times);
    return told;
}

static void an_event_is_kept_in_the_stream_of_its_sandbox(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    const struct remote_event event = {
        .name = "sandbox.woken", .sandbox = sandbox->id.text, .data = "{}"};
    struct told told = keep(world, &event);

    expect_ok(&told);
    expect_events(world, &sandbox->id, "sandbox.created remote.sandbox.woken");
}

static void what_fits_no_sandbox_is_the_systems(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    const struct id system = {.text = REMOTE_EVENT_SYSTEM};
    /* A name alone belongs to nobody: every owner may have a "demo". */
    const struct remote_event event = {.name = "sandbox.error", .sandbox = "demo", .data = "{}"};
    struct told told = keep(world, &event);

    expect_ok(&told);
    expect_events(world, &sandbox->id, "sandbox.created");
    expect_events(world, &system, "remote.sandbox.error");
}

static void only_signs_of_work_count_as_use(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct remote_event event = {
        .name = "sandbox.stopped", .sandbox = sandbox->id.text, .data = "{}"};
    uint64_t idle_since = sandbox->idle_since_ns;
    struct told told;

    clock_manual_advance(&world->clock, 5000);
    told = keep(world, &event);
    expect_ok(&told);
    assert_int_equal(sandbox->idle_since_ns, idle_since);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING); /* a worker's word changes no status */
    event.is_activity = true;
    told = keep(world, &event);
    expect_ok(&told);
    assert_true(sandbox->idle_since_ns > idle_since);
}

static void what_cannot_be_kept_is_told(void **state)
{
    struct world *world = *state;
    const struct remote_event event = {.name = "sandbox.woken", .data = "{}"};
    struct told told;

    world->refuse_all = true;
    told = keep(world, &event);
    world->refuse_all = false;
    assert_true(told.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(an_event_is_kept_in_the_stream_of_its_sandbox),
        WORLD_TEST(what_fits_no_sandbox_is_the_systems),
        WORLD_TEST(only_signs_of_work_count_as_use),
        WORLD_TEST(what_cannot_be_kept_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
