#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/auto.h"
#include "launcher/loop/event_loop.h"

struct pipe_end {
    struct event_source source;
    struct event_loop *loop;
    struct pipe_end *other; /* removed by this one's callback */
    int write_end;
    unsigned int calls;
};

static void open_pipe(struct pipe_end *end, struct event_loop *loop,
                      void (*ready)(struct event_source *, uint32_t))
{
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    *end = (struct pipe_end){
        .source = {.fd = ends[0], .events = EPOLLIN, .ready = ready},
        .loop = loop,
        .write_end = ends[1],
    };
    assert_int_equal(event_loop_add(loop, &end->source), 0);
}

static void close_pipe(struct pipe_end *end)
{
    event_loop_remove(end->loop, &end->source);
    (void) fd_close(end->source.fd);
    (void) fd_close(end->write_end);
}

static void take_and_remove_other(struct event_source *source, uint32_t events)
{
    struct pipe_end *end = CONTAINER_OF(source, struct pipe_end, source);

    assert_true(events & EPOLLIN);
    end->calls++;
    event_loop_remove(end->loop, &end->other->source);
    event_loop_remove(end->loop, &end->source);
    event_loop_stop(end->loop);
}

static void a_callback_may_remove_a_source_that_is_ready_too(void **state)
{
    struct event_loop loop;
    struct pipe_end one, two;

    (void) state;
    assert_int_equal(event_loop_init(&loop, clock_system()), 0);
    open_pipe(&one, &loop, take_and_remove_other);
    open_pipe(&two, &loop, take_and_remove_other);
    one.other = &two;
    two.other = &one;
    assert_int_equal(write(one.write_end, "x", 1), 1);
    assert_int_equal(write(two.write_end, "x", 1), 1);
    assert_int_equal(event_loop_run(&loop), 0);
    assert_int_equal(one.calls + two.calls, 1);
    close_pipe(&one);
    close_pipe(&two);
    event_loop_done(&loop);
}

struct ticker {
    struct event_timer timer;
    struct event_loop *loop;
    int number;
    int *order, *count;
    bool last;
};

static void tick(struct event_timer *timer)
{
    struct ticker *ticker = CONTAINER_OF(timer, struct ticker, timer);

    ticker->order[(*ticker->count)++] = ticker->number;
    if (ticker->last)
        event_loop_stop(ticker->loop);
}

static void timers_fire_in_the_order_of_their_times(void **state)
{
    static const uint64_t times[] = {20, 5, 10, 1};
    struct event_loop loop;
    struct ticker tickers[ARRAY_COUNT(times)];
    int order[8], count = 0;

    (void) state;
    assert_int_equal(event_loop_init(&loop, clock_system()), 0);
    for (size_t i = 0; i < ARRAY_COUNT(times); i++) {
        tickers[i] = (struct ticker){.timer.fire = tick,
                                     .loop = &loop,
                                     .number = (int) i,
                                     .order = order,
                                     .count = &count,
                                     .last = i == 0};
        event_timer_set(&loop, &tickers[i].timer, times[i]);
    }
    event_timer_clear(&tickers[2].timer);
    event_timer_clear(&tickers[2].timer);
    assert_int_equal(event_loop_run(&loop), 0);
    assert_int_equal(count, 3);
    assert_int_equal(order[0], 3);
    assert_int_equal(order[1], 1);
    assert_int_equal(order[2], 0);
    event_loop_done(&loop);
}

static void a_timer_that_is_set_again_moves(void **state)
{
    struct event_loop loop;
    int order[8], count = 0;
    struct ticker early = {
        .timer.fire = tick, .loop = &loop, .number = 1, .order = order, .count = &count};
    struct ticker last = {.timer.fire = tick,
                          .loop = &loop,
                          .number = 2,
                          .order = order,
                          .count = &count,
                          .last = true};

    (void) state;
    assert_int_equal(event_loop_init(&loop, clock_system()), 0);
    event_timer_set(&loop, &early.timer, 1);
    event_timer_set(&loop, &last.timer, 10);
    event_timer_set(&loop, &last.timer, 12); /* also the last of all */
    event_timer_set(&loop, &early.timer, 60000);
    assert_int_equal(event_loop_run(&loop), 0);
    assert_int_equal(count, 1);
    assert_int_equal(order[0], 2);
    event_timer_clear(&early.timer);
    event_loop_done(&loop);
}

struct context_timer {
    struct event_timer timer;
    struct event_loop *loop;
    struct trace_context seen;
};

static void note_context(struct event_timer *timer)
{
    struct context_timer *mine = CONTAINER_OF(timer, struct context_timer, timer);

    mine->seen = trace_context;
    event_loop_stop(mine->loop);
}

static void a_timer_fires_as_whoever_set_it(void **state)
{
    static const struct id request = {.text = "aaaaaaaaaaaaaaaaaaaaaaaaaa"};
    struct event_loop loop;
    struct context_timer mine = {.timer.fire = note_context, .loop = &loop};

    (void) state;
    assert_int_equal(event_loop_init(&loop, clock_system()), 0);
    {
        TRACE_FOR(&request, NULL);
        event_timer_set(&loop, &mine.timer, 1);
    }
    assert_int_equal(event_loop_run(&loop), 0);
    assert_string_equal(mine.seen.request.text, request.text);
    assert_string_equal(trace_context.request.text, "");
    event_loop_done(&loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_callback_may_remove_a_source_that_is_ready_too),
        cmocka_unit_test(timers_fire_in_the_order_of_their_times),
        cmocka_unit_test(a_timer_that_is_set_again_moves),
        cmocka_unit_test(a_timer_fires_as_whoever_set_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
