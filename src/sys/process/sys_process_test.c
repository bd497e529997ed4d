#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/fault.h"
#include "sys/file/sys_file.h"
#include "sys/process/sys_clone.h"
#include "sys/process/sys_process.h"
#include "sys/sys_test.h"

static int reset(void **state)
{
    (void) state;
    sys_feature_pretend(0);
    fault_disarm(FAULT_SYSTEM_CALL);
    return 0;
}

/* A child that waits to be killed (and dies with us). */
static pid_t start_sleeper(int *ret_pidfd)
{
    struct sys_clone how = {.exit_signal = SIGCHLD, .ret_pidfd = ret_pidfd};
    pid_t parent = getpid(), pid = sys_clone(&how);

    if (pid == 0) {
        if (sys_process_die_with_parent(SIGKILL, parent) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    assert_true(pid > 0);
    return pid;
}

static int start_exiting(int status)
{
    int pidfd = -EBADF;
    struct sys_clone how = {.exit_signal = SIGCHLD, .ret_pidfd = &pidfd};
    pid_t pid = sys_clone(&how);

    if (pid == 0)
        _exit(status);
    assert_true(pid > 0);
    return pidfd;
}

static void exit_status_and_signal_are_told_apart(void **state)
{
    AUTO(close) int exited = start_exiting(0), failed = start_exiting(255), killed = -EBADF;
    struct sys_exit ended = {0};

    (void) state;
    assert_int_equal(ended.kind, SYS_EXIT_UNKNOWN);
    assert_int_equal(sys_process_wait(exited, -1, &ended), 0);
    assert_int_equal(ended.kind, SYS_EXIT_STATUS);
    assert_int_equal(ended.value, 0);
    assert_int_equal(sys_process_wait(failed, -1, &ended), 0);
    assert_int_equal(ended.kind, SYS_EXIT_STATUS);
    assert_int_equal(ended.value, 255);
    start_sleeper(&killed);
    assert_int_equal(sys_process_kill(killed, 0), 0);
    assert_int_equal(sys_process_kill(killed, SIGKILL), 0);
    assert_int_equal(sys_process_wait(killed, -1, &ended), 0);
    assert_int_equal(ended.kind, SYS_EXIT_SIGNAL);
    assert_int_equal(ended.value, SIGKILL);
    assert_false(ended.dumped_core);
    assert_int_equal(sys_process_kill(killed, 0), -ESRCH);
}

static void waiting_ends_at_the_timeout_and_only_once(void **state)
{
    AUTO(close) int pidfd = -EBADF;
    struct sys_exit ended = {.value = 99};

    (void) state;
    start_sleeper(&pidfd);
    assert_int_equal(sys_process_wait(pidfd, 0, &ended), -ETIMEDOUT);
    assert_int_equal(sys_process_wait(pidfd, 20, &ended), -ETIMEDOUT);
    assert_int_equal(ended.value, 99);
    assert_int_equal(sys_process_kill(pidfd, SIGTERM), 0);
    assert_int_equal(sys_process_wait(pidfd, 10000, &ended), 0);
    assert_int_equal(sys_process_wait(pidfd, 0, &ended), -ECHILD);
}

static void a_child_that_is_not_waited_for_is_killed(void **state)
{
    AUTO(close) int slow = -EBADF, unlucky = -EBADF, quick = start_exiting(3);
    struct sys_exit ended = {0};

    (void) state;
    assert_int_equal(sys_process_wait_or_kill(quick, 10000, &ended), 0);
    assert_int_equal(ended.kind, SYS_EXIT_STATUS);
    assert_int_equal(ended.value, 3);
    start_sleeper(&slow);
    assert_int_equal(sys_process_wait_or_kill(slow, 10, &ended), -ETIMEDOUT);
    assert_int_equal(ended.kind, SYS_EXIT_SIGNAL);
    assert_int_equal(ended.value, SIGKILL);
    assert_int_equal(sys_process_wait(slow, 0, &ended), -ECHILD);
    start_sleeper(&unlucky);
    ended = (struct sys_exit){0};
    fault_arm(FAULT_SYSTEM_CALL, 1, EIO);
    assert_int_equal(sys_process_wait_or_kill(unlucky, 10000, &ended), -EIO);
    assert_int_equal(ended.kind, SYS_EXIT_SIGNAL);
    assert_int_equal(sys_process_wait(unlucky, 0, &ended), -ECHILD);
}

static void strangers_are_not_waited_for_or_killed(void **state)
{
    AUTO(close) int self = sys_process_open(getpid());
    struct sys_exit ended;

    (void) state;
    assert_true(self >= 0);
    assert_true(is_close_on_exec(self));
    assert_int_equal(sys_process_wait(self, -1, &ended), -ECHILD);
    assert_int_equal(sys_process_wait_or_kill(self, 0, &ended), -ECHILD);
    assert_int_equal(sys_process_wait(-1, 0, &ended), -EINVAL);
}

static void any_child_that_ended_is_reaped(void)
{
    AUTO(close) int exited = start_exiting(7), sleeping = -EBADF;
    pid_t sleeper = start_sleeper(&sleeping), pid = 0;
    struct sys_exit ended;

    CHECK_EQUAL(sys_file_poll(exited, POLLIN, 5000), POLLIN);
    CHECK_EQUAL(sys_process_reap(&pid, &ended), 0);
    CHECK(pid != sleeper);
    CHECK_EQUAL(ended.kind, SYS_EXIT_STATUS);
    CHECK_EQUAL(ended.value, 7);
    CHECK_EQUAL(sys_process_is_child(pid), 0);
    CHECK_EQUAL(sys_process_reap(&pid, &ended), -EAGAIN);
    CHECK_EQUAL(sys_process_is_child(sleeper), 1);
    CHECK_EQUAL(sys_process_kill(sleeping, SIGKILL), 0);
    CHECK_EQUAL(sys_file_poll(sleeping, POLLIN, 5000), POLLIN);
    CHECK_EQUAL(sys_process_is_child(sleeper), 1);
    CHECK_EQUAL(sys_process_reap(&pid, &ended), 0);
    CHECK_EQUAL(pid, sleeper);
    CHECK_EQUAL(ended.kind, SYS_EXIT_SIGNAL);
    CHECK_EQUAL(ended.value, SIGKILL);
    CHECK_EQUAL(sys_process_reap(&pid, &ended), -ECHILD);
}

/* In a child: reaping anything would take children of other tests. */
static void children_are_reaped_whichever_ends(void **state)
{
    (void) state;
    run_in_child(any_child_that_ended_is_reaped, "");
}

static void opening_a_dead_process_fails(void **state)
{
    AUTO(close) int pidfd = -EBADF;
    struct sys_exit ended;
    pid_t pid = start_sleeper(&pidfd);

    (void) state;
    assert_int_equal(sys_process_kill(pidfd, SIGKILL), 0);
    assert_int_equal(sys_process_wait(pidfd, -1, &ended), 0);
    assert_int_equal(sys_process_open(pid), -ESRCH);
    assert_int_equal(sys_process_open(-1), -EINVAL);
}

static void a_descriptor_of_a_child_can_be_taken(void **state)
{
    AUTO(close) int pidfd = -EBADF, taken = -EBADF;
    struct sys_exit ended;
    struct stat ours, theirs;
    int ends[2];

    (void) state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    start_sleeper(&pidfd);
    taken = sys_process_get_descriptor(pidfd, ends[1]);
    sys_feature_pretend(SYS_FEATURE_BIT(SYS_FEATURE_PIDFD_GETFD));
    assert_int_equal(sys_process_get_descriptor(pidfd, ends[1]), -ENOSYS);
    assert_int_equal(sys_process_kill(pidfd, SIGKILL), 0);
    assert_int_equal(sys_process_wait(pidfd, -1, &ended), 0);
    if (taken == -EPERM || taken == -ENOSYS) {
        close(ends[0]);
        close(ends[1]);
        skip_without("the right to trace a child");
    }
    assert_true(taken >= 0);
    assert_true(is_close_on_exec(taken));
    assert_int_equal(fstat(ends[1], &ours), 0);
    assert_int_equal(fstat(taken, &theirs), 0);
    assert_true(ours.st_ino == theirs.st_ino);
    close(ends[0]);
    close(ends[1]);
}

static void start_time_is_found_behind_any_name(void **state)
{
#define BEFORE " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 "
    static const struct {
        const char *stat;
        int result;
        uint64_t ticks;
    } cases[] = {
        {"12 (sh)" BEFORE "4711 20 21\n", 0, 4711},
        {"12 (a) S 1) (b c)" BEFORE "0 20\n", 0, 0},
        {"12 (\n) \t))" BEFORE "18446744073709551605 20", 0, UINT64_MAX - 10},
        {"12 (sh)" BEFORE "99999999999999999999 1", -EINVAL, 0},
        {"12 (sh)" BEFORE "4711", -EINVAL, 0},
        {"12 (sh)" BEFORE "-1 2", -EINVAL, 0},
        {"12 (sh) S 1 2 3", -EINVAL, 0},
        {"12 (sh)", -EINVAL, 0},
        {")", -EINVAL, 0},
        {"", -EINVAL, 0},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        uint64_t ticks = 0;

        assert_int_equal(sys_process_parse_start_time(cases[i].stat, &ticks), cases[i].result);
        assert_true(ticks == cases[i].ticks);
    }
}

static void rename_and_look(void)
{
    uint64_t first = 0, second = 0;

    if (access("/proc/self/stat", R_OK) < 0)
        _exit(CHILD_UNABLE);
    CHECK_EQUAL(sys_process_start_time(getpid(), &first), 0);
    CHECK_EQUAL(prctl(PR_SET_NAME, ") R 1 (x)"), 0);
    CHECK_EQUAL(sys_process_start_time(getpid(), &second), 0);
    CHECK(first == second && first > 0);
}

static void start_time_does_not_depend_on_the_name(void **state)
{
    uint64_t ticks;

    (void) state;
    run_in_child(rename_and_look, "/proc");
    assert_int_equal(sys_process_start_time(0, &ticks), -EINVAL);
    assert_int_equal(sys_process_start_time(INT32_MAX, &ticks), -ENOENT);
}

static void set_and_read_options(void)
{
    int subreaper = 0;

    CHECK_EQUAL(sys_process_set_no_new_privileges(), 0);
    CHECK_EQUAL(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
    CHECK_EQUAL(sys_process_set_subreaper(true), 0);
    CHECK_EQUAL(prctl(PR_GET_CHILD_SUBREAPER, &subreaper), 0);
    CHECK_EQUAL(subreaper, 1);
    CHECK_EQUAL(sys_process_set_subreaper(false), 0);
    CHECK_EQUAL(prctl(PR_GET_CHILD_SUBREAPER, &subreaper), 0);
    CHECK_EQUAL(subreaper, 0);
    CHECK_EQUAL(sys_process_set_dumpable(false), 0);
    CHECK_EQUAL(prctl(PR_GET_DUMPABLE), 0);
    CHECK_EQUAL(sys_process_set_dumpable(true), 0);
    CHECK_EQUAL(prctl(PR_GET_DUMPABLE), 1);
    CHECK_EQUAL(sys_process_die_with_parent(SIGKILL, getpid()), -ESRCH);
}

static void settings_of_the_process_take_effect(void **state)
{
    (void) state;
    run_in_child(set_and_read_options, "");
}

/* We keep the read end; the grandchild holds the write end until it dies with its parent. */
static void a_child_dies_with_its_parent(void **state)
{
    int ends[2], status;
    pid_t middle;

    (void) state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    middle = fork();
    if (middle == 0) {
        int ready[2];
        char byte = 0;
        pid_t parent = getpid();

        CHECK_EQUAL(pipe2(ready, O_CLOEXEC), 0);
        if (fork() == 0) {
            CHECK_EQUAL(sys_process_die_with_parent(SIGKILL, parent), 0);
            CHECK_EQUAL(write(ready[1], &byte, 1), 1);
            for (;;)
                pause();
        }
        CHECK_EQUAL(read(ready[0], &byte, 1), 1);
        _exit(0);
    }
    close(ends[1]);
    assert_int_equal(waitpid(middle, &status, 0), middle);
    assert_int_equal(status, 0);
    assert_int_equal(sys_file_poll(ends[0], POLLIN, 10000), POLLHUP);
    close(ends[0]);
}

static void set_and_ask_by_pidfd(void)
{
    AUTO(close) int parent = sys_process_open(getppid()), ended = start_exiting(0);
    struct sys_exit how;

    CHECK_EQUAL(sys_process_die_with_pidfd(SIGKILL, parent), 0);
    CHECK_EQUAL(sys_file_poll(ended, POLLIN, 10000), POLLIN);
    CHECK_EQUAL(sys_process_die_with_pidfd(SIGKILL, ended), -ESRCH); /* nobody has waited for it */
    CHECK_EQUAL(sys_process_wait(ended, -1, &how), 0);
    CHECK_EQUAL(sys_process_die_with_pidfd(SIGKILL, ended), -ESRCH);
}

static void a_parent_that_is_gone_is_seen_by_its_pidfd(void **state)
{
    (void) state;
    run_in_child(set_and_ask_by_pidfd, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(exit_status_and_signal_are_told_apart, reset),
        cmocka_unit_test_teardown(waiting_ends_at_the_timeout_and_only_once, reset),
        cmocka_unit_test_teardown(a_child_that_is_not_waited_for_is_killed, reset),
        cmocka_unit_test_teardown(strangers_are_not_waited_for_or_killed, reset),
        cmocka_unit_test_teardown(children_are_reaped_whichever_ends, reset),
        cmocka_unit_test_teardown(opening_a_dead_process_fails, reset),
        cmocka_unit_test_teardown(a_descriptor_of_a_child_can_be_taken, reset),
        cmocka_unit_test_teardown(start_time_is_found_behind_any_name, reset),
        cmocka_unit_test_teardown(start_time_does_not_depend_on_the_name, reset),
        cmocka_unit_test_teardown(settings_of_the_process_take_effect, reset),
        cmocka_unit_test_teardown(a_child_dies_with_its_parent, reset),
        cmocka_unit_test_teardown(a_parent_that_is_gone_is_seen_by_its_pidfd, reset),
    };

    return cmocka_run_group_tests_name("sys_process", tests, NULL, NULL);
}
