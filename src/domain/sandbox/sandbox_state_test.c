#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "domain/sandbox/sandbox_state.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_as_written_down),
        cmocka_unit_test(what_is_busy_waits_and_nothing_else_does),
        cmocka_unit_test(every_refusal_comes_with_advice),
        cmocka_unit_test(statuses_have_texts_and_come_back_from_them),
        cmocka_unit_test(two_statuses_are_asleep),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
