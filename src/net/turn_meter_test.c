#include <unistd.h>

#include "base/text.h"
#include "net/net_testing.h"
#include "net/turn_meter.h"

#define HOLD_NS ((uint64_t) 60 * 1000000)
#define NAP_MS  200

struct metered {
    struct loop loop;
    struct turn_meter *meter;
    struct log *log;
    struct loop_task task;
    int pipe[2];
    bool is_done;
};

static int setup(void **state)
{
    struct metered *metered = test_calloc(1, sizeof(*metered));

    assert_int_equal(pipe(metered->pipe), 0);
    metered->log = log_new(metered->pipe[1], LOG_FORMAT_JSON, LOG_LEVEL_INFO, clock_system());
    assert_int_equal(loop_init(&metered->loop, metered->log), 0);
    metered->meter = turn_meter_new(&metered->loop, metered->log);
    *state = metered;
    return 0;
}

static int teardown(void **state)
{
    struct metered *metered = *state;

    turn_meter_close(metered->meter);
    loop_done(&metered->loop);
    log_free(metered->log);
    (void) close(metered->pipe[0]);
    (void) close(metered->pipe[1]);
    test_free(metered);
    return 0;
}

/* Something else before and behind it, so that it takes more than to name the last one. */
static void hold_the_loop(struct loop_task *task)
{
    struct metered *metered = CONTAINER_OF(task, struct metered, task);
    const struct id culprit = {.text = "guilty"}, other = {.text = "innocent"};
    uint64_t until = uv_hrtime() + HOLD_NS;

    {
        TRACE_FOR(&other, NULL);
        TRACE("test.before");
    }
    {
        TRACE_FOR(&culprit, NULL);
        TRACE("test.hold");
        while (uv_hrtime() < until) {
        }
    }
    {
        TRACE_FOR(&other, NULL);
        TRACE("test.behind");
    }
    metered->is_done = true;
}

static void who_held_the_loop_is_counted_and_named(void **state)
{
    struct metered *metered = *state;
    struct turn_meter_counts counts;
    char line[4096] = "";

    (void) uv_run(&metered->loop.uv, UV_RUN_NOWAIT);
    loop_task_init(&metered->task, hold_the_loop);
    loop_defer(&metered->loop, &metered->task);
    TURN_UNTIL(&metered->loop, metered->is_done);
    (void) uv_run(&metered->loop.uv, UV_RUN_NOWAIT); /* a turn is counted in the next one */
    turn_meter_read(metered->meter, &counts);
    assert_true(counts.longest_ns >= HOLD_NS);
    assert_true(counts.buckets[TURN_METER_BUCKETS - 1] > counts.buckets[3]); /* over 50 ms */
    for (size_t i = 1; i < TURN_METER_BUCKETS; i++)
        assert_true(counts.buckets[i] >= counts.buckets[i - 1]);
    log_flush(metered->log);
    assert_true(read(metered->pipe[0], line, sizeof(line) - 1) > 0);
    assert_non_null(strstr(line, "one turn of the loop was long"));
    assert_non_null(strstr(line, "\"request\":\"guilty\""));
    assert_non_null(strstr(line, "test.hold"));
}

static void woke(uv_timer_t *timer)
{
    ((struct metered *) timer->data)->is_done = true;
}

static void sleeping_is_not_work(void **state)
{
    struct metered *metered = *state;
    struct turn_meter_counts counts;
    uv_timer_t timer;
    uint64_t began = uv_hrtime();

    (void) uv_timer_init(&metered->loop.uv, &timer);
    timer.data = metered;
    (void) uv_timer_start(&timer, woke, NAP_MS, 0);
    while (!metered->is_done)
        (void) uv_run(&metered->loop.uv, UV_RUN_ONCE);
    (void) uv_run(&metered->loop.uv, UV_RUN_NOWAIT);
    turn_meter_read(metered->meter, &counts);
    /* The kernel says how long it was asleep; half of that is room for rounding. */
    assert_true(counts.ns_total + (uint64_t) NAP_MS / 2 * 1000000 <= uv_hrtime() - began);
    uv_close((uv_handle_t *) &timer, NULL);
    (void) uv_run(&metered->loop.uv, UV_RUN_NOWAIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_held_the_loop_is_counted_and_named, setup, teardown),
        cmocka_unit_test_setup_teardown(sleeping_is_not_work, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
