#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "base/fault.h"
#include "sys/file/sys_file.h"
#include "sys/process/sys_process.h"
#include "sys/process/sys_pty.h"
#include "sys/process/sys_spawn.h"
#include "sys/sys_test.h"

static const unsigned int modes[] = {0, SYS_FEATURE_BIT(SYS_FEATURE_PTY_PEER)};

static int reset(void **state)
{
    (void) state;
    sys_feature_pretend(0);
    fault_disarm(FAULT_SYSTEM_CALL);
    return 0;
}

static void open_or_skip(int *ret_control, int *ret_terminal)
{
    int result = sys_pty_open(ret_control, ret_terminal);

    if (result == -ENOENT || result == -ENODEV || result == -EIO)
        skip_without("/dev/ptmx and a devpts at /dev/pts");
    assert_int_equal(result, 0);
}

static void what_is_typed_arrives(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(modes); i++) {
        AUTO(close) int control = -EBADF, terminal = -EBADF;
        char line[16] = "";

        sys_feature_pretend(modes[i]);
        open_or_skip(&control, &terminal);
        assert_true(is_close_on_exec(control) && is_close_on_exec(terminal));
        assert_true(fcntl(control, F_GETFL) & O_NONBLOCK);
        assert_false(fcntl(terminal, F_GETFL) & O_NONBLOCK);
        assert_true(isatty(terminal));
        assert_int_equal(write(control, "typed\n", 6), 6);
        assert_int_equal(sys_file_poll(terminal, POLLIN, 10000), POLLIN);
        assert_int_equal(read(terminal, line, sizeof(line)), 6);
        assert_string_equal(line, "typed\n");
    }
}

static void the_window_size_is_seen_on_both_sides(void **state)
{
    AUTO(close) int control = -EBADF, terminal = -EBADF;
    uint16_t columns = 1, rows = 1;

    (void) state;
    open_or_skip(&control, &terminal);
    assert_int_equal(sys_pty_get_size(terminal, &columns, &rows), 0);
    assert_int_equal(columns, 0);
    assert_int_equal(sys_pty_set_size(control, 132, 43), 0);
    assert_int_equal(sys_pty_get_size(terminal, &columns, &rows), 0);
    assert_int_equal(columns, 132);
    assert_int_equal(rows, 43);
    assert_int_equal(sys_pty_set_size(-1, 1, 1), -EBADF);
}

/* Descriptors of the child live in a static, because run_in_child passes nothing. */
static int child_terminal;

static void log_in(void)
{
    CHECK_EQUAL(sys_pty_log_in_take(child_terminal), 0);
    CHECK_EQUAL(getsid(0), getpid());
    CHECK_EQUAL(tcgetpgrp(0), getpgrp());
    for (int fd = 0; fd <= 2; fd++) {
        CHECK(isatty(fd));
        CHECK(!is_close_on_exec(fd));
    }
    CHECK(child_terminal <= 2 || fcntl(child_terminal, F_GETFD) < 0);
    CHECK(open("/dev/tty", O_RDWR | O_CLOEXEC) >= 0);
    CHECK_EQUAL(sys_pty_log_in_take(0), -EPERM);
}

static void log_in_from_standard_input(void)
{
    CHECK_EQUAL(dup3(child_terminal, 0, O_CLOEXEC), 0);
    child_terminal = 0;
    log_in();
}

static void a_child_gets_the_terminal_as_its_own(void **state)
{
    AUTO(close) int control = -EBADF, terminal = -EBADF;

    (void) state;
    open_or_skip(&control, &terminal);
    child_terminal = terminal;
    run_in_child(log_in, "");
    run_in_child(log_in_from_standard_input, "");
}

static void a_spawned_program_gets_ctrl_c(void **state)
{
    AUTO(close) int control = -EBADF, terminal = -EBADF, pidfd = -EBADF;
    struct sys_spawn how = {.path = "/bin/sh",
                            .arguments =
                                (const char *const[]){"sh", "-c", "echo ready; read x", NULL},
                            .take_terminal = true};
    struct sys_spawn_descriptor stdio[3];
    struct sys_exit ended;
    char output[64];

    (void) state;
    open_or_skip(&control, &terminal);
    for (int fd = 0; fd <= 2; fd++)
        stdio[fd] = (struct sys_spawn_descriptor){terminal, fd};
    how.descriptors = stdio;
    how.descriptor_count = 3;
    pidfd = sys_spawn(&how, NULL);
    assert_true(pidfd >= 0);
    terminal = fd_close(terminal);
    assert_true(sys_file_poll(control, POLLIN, 10000) & POLLIN);
    assert_true(read(control, output, sizeof(output)) > 0);
    assert_memory_equal(output, "ready", 5);
    assert_int_equal(write(control, "\003", 1), 1);
    assert_int_equal(sys_process_wait(pidfd, 10000, &ended), 0);
    assert_int_equal(ended.kind, SYS_EXIT_SIGNAL);
    assert_int_equal(ended.value, SIGINT);
}

static void mask_devpts(void)
{
    unsigned int number;
    char path[32];
    int control;

    enter_private_mounts();
    control = sys_pty_open_control();
    if (control < 0 || syscall(SYS_mount, "tmpfs", "/dev/pts", "tmpfs", 0, NULL) < 0)
        _exit(CHILD_UNABLE);
    CHECK_EQUAL(sys_pty_open_terminal(control), -ENOENT);
    CHECK_EQUAL(ioctl(control, TIOCGPTN, &number), 0);
    (void) snprintf(path, sizeof(path), "/dev/pts/%u", number);
    CHECK(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) >= 0);
    CHECK_EQUAL(sys_pty_open_terminal(control), -ENODEV);
}

static void the_fallback_refuses_a_file_in_place_of_the_terminal(void **state)
{
    (void) state;
    sys_feature_pretend(modes[1]);
    run_in_child(mask_devpts, NEEDS_MOUNTS " and /dev/pts");
}

static void failures_leave_no_descriptor(void **state)
{
    int before = count_descriptors(), control = -7, terminal = -7;

    (void) state;
    for (unsigned int call = 1; call <= 2; call++) {
        int result;

        fault_arm(FAULT_SYSTEM_CALL, call, EIO);
        result = sys_pty_open(&control, &terminal);
        if (!fault_disarm(FAULT_SYSTEM_CALL))
            skip_without("/dev/ptmx");
        assert_int_equal(result, -EIO);
        assert_int_equal(control, -7);
        assert_int_equal(terminal, -7);
        assert_int_equal(count_descriptors(), before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(what_is_typed_arrives, reset),
        cmocka_unit_test_teardown(the_window_size_is_seen_on_both_sides, reset),
        cmocka_unit_test_teardown(a_child_gets_the_terminal_as_its_own, reset),
        cmocka_unit_test_teardown(a_spawned_program_gets_ctrl_c, reset),
        cmocka_unit_test_teardown(the_fallback_refuses_a_file_in_place_of_the_terminal, reset),
        cmocka_unit_test_teardown(failures_leave_no_descriptor, reset),
    };

    return cmocka_run_group_tests_name("sys_pty", tests, NULL, NULL);
}
