#include "agent/agent_test.h"
#include "agent/process/process_set.c"

static void the_end_is_judged_by_what_is_known(void **state)
{
    static const struct {
        struct exec_result result;
        bool killed;
        enum process_status status;
        int code;
    } rows[] = {
        {{.exit = {.kind = SYS_EXIT_STATUS, .value = 0}}, false, PROCESS_COMPLETED, 0},
        {{.exit = {.kind = SYS_EXIT_STATUS, .value = 1}}, false, PROCESS_FAILED, 1},
        {{.exit = {.kind = SYS_EXIT_STATUS, .value = 137}}, false, PROCESS_KILLED, 137},
        {{.exit = {.kind = SYS_EXIT_STATUS, .value = 143}}, false, PROCESS_KILLED, 143},
        {{.exit = {.kind = SYS_EXIT_SIGNAL, .value = SIGSEGV}}, false, PROCESS_FAILED, 139},
        {{.exit = {.kind = SYS_EXIT_SIGNAL, .value = SIGTERM}}, false, PROCESS_KILLED, 143},
        {{.exit = {.kind = SYS_EXIT_STATUS, .value = 0}}, true, PROCESS_KILLED, 0},
        {{.exit = {.kind = SYS_EXIT_UNKNOWN}}, false, PROCESS_ERROR, -1},
        {{.exit = {.kind = SYS_EXIT_UNKNOWN}}, true, PROCESS_KILLED, -1},
        {{.exit = {.kind = SYS_EXIT_SIGNAL, .value = SIGKILL}, .timed_out = true},
         false,
         PROCESS_KILLED,
         124},
        {{.error = -ENOENT, .stage = LAUNCH_STAGE_DIRECTORY}, false, PROCESS_ERROR, -1},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct process process = {.result = rows[i].result, .killed = rows[i].killed};

        assert_int_equal(process_set_judge(&process), rows[i].status);
        assert_int_equal(process_exit_code(&process), rows[i].code);
    }
}

static void ids_are_safe_in_a_path(void **state)
{
    static const char *const good[] = {"a", "my server", "web:3000", "proc_1_abcdef", "\xc3\xa4"};
    static const char *const bad[] = {"",   "a/b", "list", "kill-all", "a?b", "a#b",
                                      "%2", "a\n", ".",    "..",       "\x7f"};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(good); i++)
        assert_true(is_good_id(good[i]));
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
        assert_false(is_good_id(bad[i]));
}

static void every_status_has_a_name(void **state)
{
    (void) state;
    for (enum process_status status = 0; status < PROCESS_STATUSES; status++)
        assert_non_null(process_status_text(status));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_is_judged_by_what_is_known),
        cmocka_unit_test(ids_are_safe_in_a_path),
        cmocka_unit_test(every_status_has_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
