#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/state.h"

/* The whole table once more, as letters: use, start, stop, sleep, wake, update, destroy, snapshot,
 * roll back. */
static const char *const verdicts[SANDBOX_STATUS_COUNT] = {
    [SANDBOX_CREATING] = "wwwwwwwww",   [SANDBOX_STARTING] = "wwwwwwwww",
    [SANDBOX_RUNNING] = "aaggagggg",    [SANDBOX_FROZEN] = "gggaggggg",
    [SANDBOX_HIBERNATED] = "gggaggggg", [SANDBOX_WAKING] = "wwwwwwwww",
    [SANDBOX_STOPPING] = "wwwwwwwww",   [SANDBOX_STOPPED] = "gggrggggg",
    [SANDBOX_ERROR] = "rrrrrrgrr",      [SANDBOX_DESTROYED] = "rrrrrrarr",
    [SANDBOX_UNKNOWN] = "rrrrrrgrr",
};

static void the_table_is_as_written_down(void **state)
{
    static const char letters[] = {
        [SANDBOX_GO] = 'g', [SANDBOX_ALREADY] = 'a', [SANDBOX_WAIT] = 'w', [SANDBOX_REFUSE] = 'r'};

    (void) state;
    for (int status = 0; status < SANDBOX_STATUS_COUNT; status++)
        for (int action = 0; action < SANDBOX_ACTION_COUNT; action++)
            assert_int_equal(letters[sandbox_verdict((enum sandbox_status) status,
                                                     (enum sandbox_action) action)],
                             verdicts[status][action]);
}

static void what_is_busy_waits_and_nothing_else_does(void **state)
{
    (void) state;
    for (int status = 0; status < SANDBOX_STATUS_COUNT; status++)
        for (int action = 0; action < SANDBOX_ACTION_COUNT; action++)
            assert_int_equal(sandbox_verdict((enum sandbox_status) status,
                                             (enum sandbox_action) action) == SANDBOX_WAIT,
                             sandbox_status_is_busy((enum sandbox_status) status));
}

static void every_refusal_comes_with_advice(void **state)
{
    (void) state;
    for (int status = 0; status < SANDBOX_STATUS_COUNT; status++)
        for (int action = 0; action < SANDBOX_ACTION_COUNT; action++) {
            const char *advice =
                sandbox_advice((enum sandbox_status) status, (enum sandbox_action) action);

            assert_true(*advice != '\0');
            if (verdicts[status][action] == 'r')
                assert_string_not_equal(advice, "try again");
        }
    assert_string_equal(sandbox_advice(SANDBOX_STOPPED, SANDBOX_ACTION_SLEEP), "start it first");
}

static void statuses_have_texts_and_come_back_from_them(void **state)
{
    enum sandbox_status status;

    (void) state;
    for (int i = 0; i < SANDBOX_STATUS_COUNT; i++) {
        assert_int_equal(
            sandbox_status_from_text(sandbox_status_text((enum sandbox_status) i), &status), 0);
        assert_int_equal(status, i);
    }
    assert_true(sandbox_status_from_text("sleeping", &status) < 0);
    assert_true(sandbox_status_from_text("", &status) < 0);
#define X(name, text) assert_string_equal(sandbox_status_text(SANDBOX_##name), text);
    SANDBOX_STATUSES(X)
#undef X
}

static void two_statuses_are_asleep(void **state)
{
    (void) state;
    for (int i = 0; i < SANDBOX_STATUS_COUNT; i++)
        assert_int_equal(sandbox_status_is_asleep((enum sandbox_status) i),
                         i == SANDBOX_FROZEN || i == SANDBOX_HIBERNATED);
}

/* As the calls of a provider need them, by the letters of each state. */
static void the_sets_are_as_written_down(void **state)
{
    static const struct {
        unsigned int set;
        const char *has; /* R running, F frozen, S stopping, s stopped, b broken, t starting */
    } sets[] = {
        {RUN_STATES_ALIVE, "RF"}, {RUN_STATES_WHOLE, "RFs"}, {RUN_STATES_ENDABLE, "RFSsbt"}};
    static const char letters[RUN_STATE_COUNT] = {
        [RUN_STATE_POOLED] = 'p',    [RUN_STATE_RUNNING] = 'R',  [RUN_STATE_FROZEN] = 'F',
        [RUN_STATE_STOPPING] = 'S',  [RUN_STATE_STOPPED] = 's',  [RUN_STATE_BROKEN] = 'b',
        [RUN_STATE_ABSENT] = 'a',    [RUN_STATE_CREATING] = 'c', [RUN_STATE_STARTING] = 't',
        [RUN_STATE_DESTROYING] = 'd'};

    (void) state;
    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
        for (unsigned int at = 0; at < RUN_STATE_COUNT; at++)
            assert_int_equal((sets[i].set >> at & 1) != 0,
                             strchr(sets[i].has, letters[at]) != NULL);
}

static void what_is_under_way_is_shown_as_what_it_still_is(void **state)
{
    (void) state;
    for (unsigned int at = 0; at < RUN_STATE_COUNT; at++) {
        enum run_state shown = run_state_shown((enum run_state) at);

        assert_true(*run_state_text((enum run_state) at) != '\0');
        if (at == RUN_STATE_STARTING)
            assert_int_equal(shown, RUN_STATE_STOPPED);
        else if (at == RUN_STATE_DESTROYING)
            assert_int_equal(shown, RUN_STATE_STOPPING);
        else
            assert_int_equal(shown, at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_as_written_down),
        cmocka_unit_test(what_is_busy_waits_and_nothing_else_does),
        cmocka_unit_test(every_refusal_comes_with_advice),
        cmocka_unit_test(statuses_have_texts_and_come_back_from_them),
        cmocka_unit_test(two_statuses_are_asleep),
        cmocka_unit_test(the_sets_are_as_written_down),
        cmocka_unit_test(what_is_under_way_is_shown_as_what_it_still_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
