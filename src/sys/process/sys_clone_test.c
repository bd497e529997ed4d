#include <signal.h>
#include <sys/mman.h>

#include "base/fault.h"
#include "sys/process/sys_clone.h"
#include "sys/process/sys_process.h"
#include "sys/sys_probe.h"
#include "sys/sys_test.h"

static const unsigned int modes[] = {0, SYS_FEATURE_BIT(SYS_FEATURE_CLONE3)};

static int reset(void **state)
{
    (void) state;
    sys_feature_pretend(0);
    fault_disarm(FAULT_SYSTEM_CALL);
    return 0;
}

static void expect_status(int pidfd, int status)
{
    struct sys_exit ended;

    assert_int_equal(sys_process_wait(pidfd, 10000, &ended), 0);
    assert_int_equal(ended.kind, SYS_EXIT_STATUS);
    assert_int_equal(ended.value, status);
}

static void the_child_returns_zero_and_the_parent_gets_a_pidfd(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(modes); i++) {
        AUTO(close) int pidfd = -EBADF;
        struct sys_clone how = {.exit_signal = SIGCHLD, .ret_pidfd = &pidfd};
        volatile int on_stack = 7;
        pid_t pid;

        sys_feature_pretend(modes[i]);
        pid = sys_clone(&how);
        if (pid == 0) {
            on_stack = 8;
            _exit(on_stack + (getppid() > 0));
        }
        assert_true(pid > 0);
        assert_true(is_close_on_exec(pidfd));
        expect_status(pidfd, 9);
        assert_int_equal(on_stack, 7);
    }
}

static void no_pidfd_is_made_when_none_is_wanted(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(modes); i++) {
        struct sys_clone how = {.exit_signal = SIGCHLD};
        int before = count_descriptors();
        int status = 0;
        pid_t pid;

        sys_feature_pretend(modes[i]);
        pid = sys_clone(&how);
        if (pid == 0)
            _exit(3);
        assert_true(pid > 0);
        assert_int_equal(count_descriptors(), before);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(WEXITSTATUS(status), 3);
    }
}

static void the_pid_is_written_before_the_child_goes_on(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(modes); i++) {
        pid_t *shared =
            mmap(NULL, sizeof(pid_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        struct sys_clone how = {.exit_signal = SIGCHLD, .ret_pid = shared};
        int status = 0;
        pid_t pid;

        assert_true(shared != MAP_FAILED);
        sys_feature_pretend(modes[i]);
        pid = sys_clone(&how);
        if (pid == 0)
            _exit(*shared == (pid_t) syscall(SYS_getpid) ? 0 : 1);
        assert_int_equal(*shared, pid);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_int_equal(munmap(shared, sizeof(pid_t)), 0);
        how.ret_pidfd = &status;
        assert_int_equal(sys_clone(&how), -EINVAL);
    }
}

static void new_namespaces_are_really_new(void **state)
{
    (void) state;
    if (geteuid() != 0)
        skip_without("root");
    for (size_t i = 0; i < ARRAY_COUNT(modes); i++) {
        AUTO(close) int pidfd = -EBADF;
        struct sys_clone how = {.flags = CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC,
                                .exit_signal = SIGCHLD,
                                .ret_pidfd = &pidfd};
        pid_t pid;

        sys_feature_pretend(modes[i]);
        pid = sys_clone(&how);
        if (pid == 0)
            _exit(getpid() == 1 && getppid() == 0 ? 0 : 1);
        if (pid == -EPERM)
            skip_without("new namespaces (CAP_SYS_ADMIN)");
        assert_true(pid > 0);
        expect_status(pidfd, 0);
    }
}

static void clone_parent_gives_a_sibling(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(modes); i++) {
        pid_t middle, pid;
        int status = 0;

        sys_feature_pretend(modes[i]);
        middle = fork();
        if (middle == 0) {
            struct sys_clone how = {.flags = CLONE_PARENT};
            pid_t grandparent = getppid(), sibling = sys_clone(&how);

            if (sibling == 0)
                _exit(getppid() == grandparent ? 5 : 1);
            _exit(sibling > 0 ? 5 : 2);
        }
        /* Both are our children now; the sibling sends the signal of the one that made it. */
        for (int count = 0; count < 2; count++) {
            pid = waitpid(-1, &status, __WALL);
            assert_true(pid > 0);
            assert_int_equal(WEXITSTATUS(status), 5);
        }
    }
}

static void flags_that_share_memory_are_refused(void **state)
{
    static const uint64_t bad[] = {CLONE_VM,     CLONE_VM | CLONE_VFORK,
                                   CLONE_THREAD, CLONE_SIGHAND,
                                   CLONE_SETTLS, CLONE_FILES,
                                   CLONE_PIDFD,  1,
                                   1ull << 60};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct sys_clone how = {.flags = bad[i], .exit_signal = SIGCHLD};

        assert_int_equal(sys_clone(&how), -EINVAL);
    }
    assert_int_equal(sys_clone(&(struct sys_clone){.exit_signal = -1}), -EINVAL);
    assert_int_equal(sys_clone(&(struct sys_clone){.exit_signal = 65}), -EINVAL);
    assert_int_equal(sys_clone(&(struct sys_clone){.flags = CLONE_PARENT, .exit_signal = SIGCHLD}),
                     -EINVAL);
}

static void what_only_clone3_can_do_is_told_without_it(void **state)
{
    static const uint64_t flags[] = {CLONE_INTO_CGROUP, CLONE_NEWTIME, CLONE_CLEAR_SIGHAND};
    int pidfd = -7;

    (void) state;
    sys_feature_pretend(SYS_FEATURE_BIT(SYS_FEATURE_CLONE3));
    for (size_t i = 0; i < ARRAY_COUNT(flags); i++) {
        struct sys_clone how = {
            .flags = flags[i], .exit_signal = SIGCHLD, .cgroup = -1, .ret_pidfd = &pidfd};

        assert_int_equal(sys_clone(&how), -ENOSYS);
        assert_int_equal(pidfd, -7);
    }
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void a_missing_cgroup_flag_starts_no_child(void **state)
{
    struct sys_clone how = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = 1023};

    (void) state;
    sys_feature_pretend(SYS_FEATURE_BIT(SYS_FEATURE_CLONE_INTO_CGROUP));
    assert_int_equal(sys_clone(&how), -ENOSYS);
    sys_feature_pretend(0);
    if (sys_probe(SYS_FEATURE_CLONE_INTO_CGROUP) == 1)
        assert_int_equal(sys_clone(&how), -EBADF);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void an_injected_failure_starts_no_child(void **state)
{
    struct sys_clone how = {.exit_signal = SIGCHLD};

    (void) state;
    fault_arm(FAULT_SYSTEM_CALL, 1, EAGAIN);
    assert_int_equal(sys_clone(&how), -EAGAIN);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_child_returns_zero_and_the_parent_gets_a_pidfd, reset),
        cmocka_unit_test_teardown(no_pidfd_is_made_when_none_is_wanted, reset),
        cmocka_unit_test_teardown(the_pid_is_written_before_the_child_goes_on, reset),
        cmocka_unit_test_teardown(new_namespaces_are_really_new, reset),
        cmocka_unit_test_teardown(clone_parent_gives_a_sibling, reset),
        cmocka_unit_test_teardown(flags_that_share_memory_are_refused, reset),
        cmocka_unit_test_teardown(what_only_clone3_can_do_is_told_without_it, reset),
        cmocka_unit_test_teardown(a_missing_cgroup_flag_starts_no_child, reset),
        cmocka_unit_test_teardown(an_injected_failure_starts_no_child, reset),
    };

    return cmocka_run_group_tests_name("sys_clone", tests, NULL, NULL);
}
