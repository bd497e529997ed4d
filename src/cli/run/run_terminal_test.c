#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "cli/run/run_terminal.h"
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "sys/process/sys_pty.h"

static void open_pair(int *ret_control, int *ret_terminal)
{
    assert_int_equal(sys_pty_open(ret_control, ret_terminal), 0);
}

static bool is_raw(int fd)
{
    struct termios now;

    assert_int_equal(tcgetattr(fd, &now), 0);
    return !(now.c_lflag & (ICANON | ECHO | ISIG));
}

static void a_terminal_is_raw_and_then_as_before(void **state)
{
    struct run_terminal terminal = RUN_TERMINAL_INIT;
    struct termios before = {0}, after = {0}; /* padding too */
    AUTO(close) int control = -EBADF, fd = -EBADF;

    (void) state;
    open_pair(&control, &fd);
    assert_int_equal(tcgetattr(fd, &before), 0);
    run_terminal_leave(&terminal);
    assert_false(is_raw(fd));
    assert_int_equal(run_terminal_enter(&terminal, fd), 0);
    assert_true(is_raw(fd));
    run_terminal_leave(&terminal);
    run_terminal_leave(&terminal);
    assert_int_equal(tcgetattr(fd, &after), 0);
    assert_memory_equal(&before, &after, sizeof(before));
}

/* A shell that had the terminal meanwhile leaves it in its own state. */
static void entering_again_keeps_the_first_state(void **state)
{
    struct run_terminal terminal = RUN_TERMINAL_INIT;
    struct termios other;
    AUTO(close) int control = -EBADF, fd = -EBADF;

    (void) state;
    open_pair(&control, &fd);
    assert_int_equal(run_terminal_enter(&terminal, fd), 0);
    assert_int_equal(tcgetattr(fd, &other), 0);
    other.c_lflag |= ICANON;
    assert_int_equal(tcsetattr(fd, TCSANOW, &other), 0);
    assert_int_equal(run_terminal_enter(&terminal, fd), 0);
    assert_true(is_raw(fd));
    run_terminal_leave(&terminal);
    assert_false(is_raw(fd));
}

static void what_is_no_terminal_stays_alone(void **state)
{
    struct run_terminal terminal = RUN_TERMINAL_INIT;
    AUTO(close) int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    (void) state;
    assert_int_equal(run_terminal_enter(&terminal, fd), -ENOTTY);
    assert_false(terminal.raw);
}

static void the_size_is_known_or_usual(void **state)
{
    AUTO(close) int control = -EBADF, fd = -EBADF;
    uint16_t columns, rows;

    (void) state;
    open_pair(&control, &fd);
    run_terminal_size(fd, &columns, &rows);
    assert_int_equal(columns, 80);
    assert_int_equal(rows, 24);
    assert_int_equal(sys_pty_set_size(control, 132, 50), 0);
    run_terminal_size(fd, &columns, &rows);
    assert_int_equal(columns, 132);
    assert_int_equal(rows, 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_terminal_is_raw_and_then_as_before),
        cmocka_unit_test(entering_again_keeps_the_first_state),
        cmocka_unit_test(what_is_no_terminal_stays_alone),
        cmocka_unit_test(the_size_is_known_or_usual),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
