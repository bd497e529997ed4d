#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "base/text.h"
#include "net/loop.h"

struct bench {
    struct loop loop;
    struct text told; /* one letter per task that ran, a line per turn */
};

struct letter {
    struct loop_task task;
    struct bench *bench;
    char name;
    struct letter *defers;  /* NULL: none */
    struct letter *cancels; /* NULL: none */
};

static void run_letter(struct loop_task *task)
{
    struct letter *letter = CONTAINER_OF(task, struct letter, task);

    text_append_char(&letter->bench->told, letter->name);
    if (letter->defers)
        loop_defer(&letter->bench->loop, &letter->defers->task);
    letter->defers = NULL;
    if (letter->cancels)
        loop_task_cancel(&letter->cancels->task);
}

static void letter_init(struct letter *letter, struct bench *bench, char name)
{
    *letter = (struct letter){.bench = bench, .name = name};
    loop_task_init(&letter->task, run_letter);
}

static int setup(void **state)
{
    struct bench *bench = test_calloc(1, sizeof(*bench));

    bench->told = (struct text) TEXT_INIT(1024);
    *state = bench;
    return loop_init(&bench->loop, NULL);
}

static int teardown(void **state)
{
    struct bench *bench = *state;

    loop_done(&bench->loop);
    text_done(&bench->told);
    test_free(bench);
    return 0;
}

static void turn(struct bench *bench)
{
    (void) uv_run(&bench->loop.uv, UV_RUN_NOWAIT);
    text_append_char(&bench->told, '|');
}

static void deferred_tasks_run_once_in_order(void **state)
{
    struct bench *bench = *state;
    struct letter a, b, c;

    letter_init(&a, bench, 'a');
    letter_init(&b, bench, 'b');
    letter_init(&c, bench, 'c');
    loop_defer(&bench->loop, &b.task);
    loop_defer(&bench->loop, &a.task);
    loop_defer(&bench->loop, &b.task);
    loop_defer(&bench->loop, &c.task);
    loop_run(&bench->loop);
    assert_string_equal(text_string(&bench->told), "bac");
}

static void a_task_deferred_by_a_task_runs_in_the_next_turn(void **state)
{
    struct bench *bench = *state;
    struct letter a, b;

    letter_init(&a, bench, 'a');
    letter_init(&b, bench, 'b');
    a.defers = &b;
    b.defers = &a;
    loop_defer(&bench->loop, &a.task);
    turn(bench);
    turn(bench);
    turn(bench);
    turn(bench);
    assert_string_equal(text_string(&bench->told), "a|b|a||");
}

static void a_task_may_defer_itself(void **state)
{
    struct bench *bench = *state;
    struct letter a;

    letter_init(&a, bench, 'a');
    a.defers = &a;
    loop_defer(&bench->loop, &a.task);
    turn(bench);
    turn(bench);
    turn(bench);
    assert_string_equal(text_string(&bench->told), "a|a||");
}

static void a_cancelled_task_does_not_run(void **state)
{
    struct bench *bench = *state;
    struct letter a, b, c;

    letter_init(&a, bench, 'a');
    letter_init(&b, bench, 'b');
    letter_init(&c, bench, 'c');
    loop_task_cancel(&a.task); /* not deferred: nothing happens */
    loop_defer(&bench->loop, &a.task);
    loop_defer(&bench->loop, &b.task);
    loop_defer(&bench->loop, &c.task);
    loop_task_cancel(&a.task);
    b.cancels = &c; /* even when it was to run in the same batch */
    loop_run(&bench->loop);
    assert_string_equal(text_string(&bench->told), "b");
    loop_defer(&bench->loop, &c.task);
    loop_run(&bench->loop);
    assert_string_equal(text_string(&bench->told), "bc");
}

/* --- deadlines ------------------------------------------------------------------------------ */

struct alarm {
    struct deadline deadline;
    struct loop *loop;
    uint64_t started;
    uint64_t fired_at;
    int fired;
    bool closed;
    uint64_t again; /* set once more from inside, 0: no */
};

static struct alarm *alarm_of(struct deadline *deadline)
{
    return CONTAINER_OF(deadline, struct alarm, deadline);
}

static void alarm_closed(struct deadline *deadline)
{
    alarm_of(deadline)->closed = true;
}

static void alarm_due(struct deadline *deadline)
{
    struct alarm *alarm = alarm_of(deadline);
    uint64_t again = alarm->again;

    alarm->fired++;
    alarm->fired_at = loop_now(alarm->loop);
    alarm->again = 0;
    if (again)
        deadline_set(deadline, again);
    else
        deadline_close(deadline, alarm_closed);
}

static void alarm_start(struct alarm *alarm, struct loop *loop)
{
    *alarm = (struct alarm){.loop = loop, .started = loop_now(loop)};
    deadline_init(loop, &alarm->deadline, alarm_due);
}

static void expect_fired(const struct alarm *alarm, uint64_t after, uint64_t before)
{
    assert_int_equal(alarm->fired, 1);
    assert_true(alarm->closed);
    assert_in_range(alarm->fired_at - alarm->started, after, before);
}

static void a_deadline_fires_once(void **state)
{
    struct bench *bench = *state;
    struct alarm alarm;

    alarm_start(&alarm, &bench->loop);
    deadline_set(&alarm.deadline, 20);
    loop_run(&bench->loop);
    expect_fired(&alarm, 20, 2000);
}

static void a_deadline_moves_later(void **state)
{
    struct bench *bench = *state;
    struct alarm alarm;

    alarm_start(&alarm, &bench->loop);
    deadline_set(&alarm.deadline, 10);
    deadline_set(&alarm.deadline, 60);
    loop_run(&bench->loop);
    expect_fired(&alarm, 60, 2000);
}

static void a_deadline_moves_earlier(void **state)
{
    struct bench *bench = *state;
    struct alarm alarm;

    alarm_start(&alarm, &bench->loop);
    deadline_set(&alarm.deadline, 30000);
    deadline_set(&alarm.deadline, 10);
    loop_run(&bench->loop);
    expect_fired(&alarm, 10, 5000);
}

static void a_cleared_deadline_may_be_set_again(void **state)
{
    struct bench *bench = *state;
    struct alarm alarm;

    alarm_start(&alarm, &bench->loop);
    deadline_set(&alarm.deadline, 10);
    deadline_clear(&alarm.deadline);
    loop_run(&bench->loop);
    assert_int_equal(alarm.fired, 0);
    deadline_set(&alarm.deadline, 10);
    deadline_clear(&alarm.deadline);
    deadline_set(&alarm.deadline, 30);
    alarm.started = loop_now(&bench->loop);
    loop_run(&bench->loop);
    expect_fired(&alarm, 30, 2000);
}

static void a_deadline_may_be_set_when_it_fires(void **state)
{
    struct bench *bench = *state;
    struct alarm alarm;

    alarm_start(&alarm, &bench->loop);
    alarm.again = 20;
    deadline_set(&alarm.deadline, 20);
    loop_run(&bench->loop);
    assert_int_equal(alarm.fired, 2);
    assert_in_range(alarm.fired_at - alarm.started, 40, 2000);
}

static void a_closed_deadline_never_fires(void **state)
{
    struct bench *bench = *state;
    struct alarm alarm;

    alarm_start(&alarm, &bench->loop);
    deadline_set(&alarm.deadline, 1);
    deadline_close(&alarm.deadline, alarm_closed);
    assert_false(alarm.closed);
    loop_run(&bench->loop);
    assert_int_equal(alarm.fired, 0);
    assert_true(alarm.closed);
}

struct context_task {
    struct loop_task task;
    struct trace_context seen;
};

static void note_context(struct loop_task *task)
{
    CONTAINER_OF(task, struct context_task, task)->seen = trace_context;
}

static void a_task_runs_as_whoever_deferred_it(void **state)
{
    static const struct id request = {.text = "aaaaaaaaaaaaaaaaaaaaaaaaaa"};
    struct bench *bench = *state;
    struct context_task mine = {.seen = {.request = {"?"}}}, nobodys = mine;

    loop_task_init(&mine.task, note_context);
    loop_task_init(&nobodys.task, note_context);
    {
        TRACE_FOR(&request, NULL);
        loop_defer(&bench->loop, &mine.task);
    }
    loop_defer(&bench->loop, &nobodys.task);
    loop_run(&bench->loop);
    assert_string_equal(mine.seen.request.text, request.text);
    assert_string_equal(nobodys.seen.request.text, "");
    assert_string_equal(trace_context.request.text, "");
}

#define LOOP_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOP_TEST(deferred_tasks_run_once_in_order),
        LOOP_TEST(a_task_deferred_by_a_task_runs_in_the_next_turn),
        LOOP_TEST(a_task_may_defer_itself),
        LOOP_TEST(a_cancelled_task_does_not_run),
        LOOP_TEST(a_task_runs_as_whoever_deferred_it),
        LOOP_TEST(a_deadline_fires_once),
        LOOP_TEST(a_deadline_moves_later),
        LOOP_TEST(a_deadline_moves_earlier),
        LOOP_TEST(a_cleared_deadline_may_be_set_again),
        LOOP_TEST(a_deadline_may_be_set_when_it_fires),
        LOOP_TEST(a_closed_deadline_never_fires),
    };

    return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
