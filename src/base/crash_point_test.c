#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "base/crash_point.h"

/* Walks past three points in a child. Returns how many it passed, or -1 for all of them. */
static int passed_before_death(const char *armed)
{
    int pipes[2];
    char steps[8];
    pid_t pid;
    int status;
    ssize_t count;

    assert_int_equal(pipe(pipes), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        crash_point_arm(armed);
        CRASH_POINT("test.one");
        (void) !write(pipes[1], "1", 1);
        CRASH_POINT("test.two");
        (void) !write(pipes[1], "2", 1);
        CRASH_POINT("test.two");
        _exit(0);
    }
    (void) close(pipes[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    count = read(pipes[0], steps, sizeof(steps));
    (void) close(pipes[0]);
    if (WIFEXITED(status))
        return -1;
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    return (int) count;
}

static void nothing_happens_unless_armed(void **state)
{
    (void) state;
    assert_int_equal(passed_before_death(NULL), -1);
    assert_int_equal(passed_before_death(""), -1);
}

static void the_process_dies_at_the_named_point(void **state)
{
    (void) state;
    assert_int_equal(passed_before_death("test.one"), 0);
    assert_int_equal(passed_before_death("test.two"), 1);
}

static void other_names_do_nothing(void **state)
{
    (void) state;
    assert_int_equal(passed_before_death("test"), -1);
    assert_int_equal(passed_before_death("test.twofold"), -1);
}

static void a_number_counts_the_passes(void **state)
{
    (void) state;
    assert_int_equal(passed_before_death("test.two:1"), 1);
    assert_int_equal(passed_before_death("test.two:2"), 2);
    assert_int_equal(passed_before_death("test.two:3"), -1);
}

/* A helper that dies takes its master along. */
static void another_process_dies_with_it(void **state)
{
    pid_t master = fork(), helper;
    int status;

    (void) state;
    if (master == 0) {
        for (;;)
            (void) pause();
    }
    helper = fork();
    if (helper == 0) {
        crash_point_take_along(master);
        crash_point_arm("test.one");
        CRASH_POINT("test.one");
        _exit(0);
    }
    assert_int_equal(waitpid(helper, &status, 0), helper);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(waitpid(master, &status, 0), master);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_happens_unless_armed),
        cmocka_unit_test(the_process_dies_at_the_named_point),
        cmocka_unit_test(other_names_do_nothing),
        cmocka_unit_test(a_number_counts_the_passes),
        cmocka_unit_test(another_process_dies_with_it),
    };

    return cmocka_run_group_tests_name("crash_point", tests, NULL, NULL);
}
