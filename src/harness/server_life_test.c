#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "harness/server_life.h"

struct step {
    enum life_event event;
    enum life_action action;
    enum life_state state;
};

static void life_walk(struct life *life, const struct step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(life_next(life, steps[i].event), steps[i].action);
        assert_int_equal(life->state, steps[i].state);
    }
}

#define WALK(life, ...)                                                                            \
    life_walk(life, (const struct step[]){__VA_ARGS__},                                            \
              ARRAY_COUNT(((const struct step[]){__VA_ARGS__})))

#define START                                                                                      \
    {LIFE_WANTED, LIFE_LOOK, LIFE_LOOKING}, {LIFE_RUNS_NOT, LIFE_SPAWN, LIFE_SPAWNING},            \
    {                                                                                              \
        LIFE_RUNS, LIFE_PROBE, LIFE_PROBING                                                        \
    }
#define RISE                                                                                       \
    {LIFE_HEALTHY, LIFE_LOAD, LIFE_LOADING}, {LIFE_LOADED, LIFE_WATCH, LIFE_WATCHING},             \
    {                                                                                              \
        LIFE_CONNECTED, LIFE_TELL_READY, LIFE_READY                                                \
    }

static void it_is_looked_for_started_probed_loaded_and_watched(void **state)
{
    struct life life = {LIFE_ABSENT, 0, 0};

    (void) state;
    WALK(&life, START, {LIFE_UNWELL, LIFE_PROBE_LATER, LIFE_PROBING},
         {LIFE_TIMER, LIFE_PROBE, LIFE_PROBING}, RISE, {LIFE_WANTED, LIFE_TELL_LATER, LIFE_READY});
}

static void one_that_runs_already_is_not_started(void **state)
{
    struct life life = {LIFE_ABSENT, 0, 0};

    (void) state;
    WALK(&life, {LIFE_WANTED, LIFE_LOOK, LIFE_LOOKING}, {LIFE_RUNS, LIFE_PROBE, LIFE_PROBING},
         RISE);
}

static void more_who_want_it_change_nothing_while_it_starts(void **state)
{
    struct life life = {LIFE_ABSENT, 0, 0};

    (void) state;
    WALK(&life, START, {LIFE_WANTED, LIFE_NOTHING, LIFE_PROBING},
         {LIFE_HEALTHY, LIFE_LOAD, LIFE_LOADING}, {LIFE_WANTED, LIFE_NOTHING, LIFE_LOADING});
}

static void pauses_double_and_after_the_fifth_it_has_failed(void **state)
{
    struct life life = {LIFE_ABSENT, 0, 0};
    uint64_t pause = 2000;

    (void) state;
    WALK(&life, START);
    for (int i = 0; i < LIFE_RESTARTS_MAX; i++, pause *= 2) {
        WALK(&life, {LIFE_RUNS_NOT, LIFE_REST, LIFE_RESTING});
        assert_int_equal(life_rest_ms(&life), pause);
        WALK(&life, {LIFE_TIMER, LIFE_SPAWN, LIFE_SPAWNING}, {LIFE_RUNS, LIFE_PROBE, LIFE_PROBING});
    }
    WALK(&life, {LIFE_RUNS_NOT, LIFE_READ_LOG, LIFE_FAILING},
         {LIFE_LOGGED, LIFE_TELL_FAILED, LIFE_FAILED}, {LIFE_WANTED, LIFE_LOOK, LIFE_LOOKING});
    assert_int_equal(life.restarts, 0); /* afresh */
}

static void a_missing_program_is_not_tried_again(void **state)
{
    struct life life = {LIFE_ABSENT, 0, 0};

    (void) state;
    WALK(&life, START, {LIFE_MISSING, LIFE_READ_LOG, LIFE_FAILING});
}

static void events_that_break_off_are_taken_up_again(void **state)
{
    struct life life = {LIFE_READY, 0, 0};
    static const uint64_t pauses[] = {500, 1000, 2000, 5000, 5000};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(pauses); i++) {
        WALK(&life, {LIFE_BROKE_OFF, LIFE_LOOK_LATER, LIFE_CUT});
        assert_int_equal(life_look_ms(&life), pauses[i]);
        WALK(&life, {LIFE_TIMER, LIFE_LOOK, LIFE_CUT}, {LIFE_RUNS, LIFE_PROBE, LIFE_PROBING}, RISE);
    }
    WALK(&life, {LIFE_BROKE_OFF, LIFE_LOOK_LATER, LIFE_CUT}, {LIFE_TIMER, LIFE_LOOK, LIFE_CUT},
         {LIFE_RUNS_NOT, LIFE_REST, LIFE_RESTING}, {LIFE_UNWANTED, LIFE_NOTHING, LIFE_ABSENT});
    life_forgive(&life);
    assert_int_equal(life.cuts + life.restarts, 0);
}

static void a_silent_one_is_killed(void **state)
{
    struct life life = {LIFE_ABSENT, 0, 0};

    (void) state;
    WALK(&life, START, {LIFE_LATE, LIFE_KILL, LIFE_KILLING},
         {LIFE_WANTED, LIFE_NOTHING, LIFE_KILLING}, {LIFE_KILLED, LIFE_READ_LOG, LIFE_FAILING});
}

/* From whatever state, every chain of events has a name, and what waits is answered in the end. */
static void no_event_is_a_surprise_in_any_state(void **state)
{
    (void) state;
    for (int at = LIFE_ABSENT; at < LIFE_STATES; at++) {
        for (int event = LIFE_WANTED; event <= LIFE_LOGGED; event++) {
            struct life life = {(enum life_state) at, 0, 0};

            (void) life_next(&life, (enum life_event) event);
            assert_in_range(life.state, LIFE_ABSENT, LIFE_STATES - 1);
            assert_non_null(life_state_text(life.state));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_looked_for_started_probed_loaded_and_watched),
        cmocka_unit_test(one_that_runs_already_is_not_started),
        cmocka_unit_test(more_who_want_it_change_nothing_while_it_starts),
        cmocka_unit_test(pauses_double_and_after_the_fifth_it_has_failed),
        cmocka_unit_test(a_missing_program_is_not_tried_again),
        cmocka_unit_test(events_that_break_off_are_taken_up_again),
        cmocka_unit_test(a_silent_one_is_killed),
        cmocka_unit_test(no_event_is_a_surprise_in_any_state),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
