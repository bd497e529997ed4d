#include <poll.h>
#include <signal.h>

#include "base/fault.h"
#include "sys/file/sys_file.h"
#include "sys/process/sys_signal.h"
#include "sys/sys_test.h"

static void read_own_signals(void)
{
    static const int wanted[] = {SIGTERM, SIGUSR1};
    struct sys_signal signal;
    int fd = sys_signal_open(wanted, ARRAY_COUNT(wanted));

    CHECK(fd >= 0);
    CHECK(is_close_on_exec(fd));
    CHECK_EQUAL(sys_signal_read(fd, &signal), -EAGAIN);
    CHECK_EQUAL(kill(getpid(), SIGTERM), 0);
    CHECK_EQUAL(sys_file_poll(fd, POLLIN, 1000), POLLIN);
    CHECK_EQUAL(sys_signal_read(fd, &signal), 0);
    CHECK_EQUAL(signal.number, SIGTERM);
    CHECK_EQUAL(signal.sender, getpid());
    CHECK_EQUAL(signal.uid, getuid());
    CHECK_EQUAL(signal.code, SI_USER);
    CHECK_EQUAL(sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = 0}), 0);
    CHECK_EQUAL(sys_signal_read(fd, &signal), 0);
    CHECK_EQUAL(signal.code, SI_QUEUE);
    CHECK_EQUAL(sys_signal_read(fd, &signal), -EAGAIN);
}

static void blocked_signals_are_read(void **state)
{
    (void) state;
    run_in_child(read_own_signals, "");
}

static void a_failed_open_leaves_the_mask(void **state)
{
    static const int wanted[] = {SIGUSR2}, wrong[] = {SIGUSR2, 1000};
    sigset_t mask;

    (void) state;
    fault_arm(FAULT_SYSTEM_CALL, 1, EMFILE);
    assert_int_equal(sys_signal_open(wanted, 1), -EMFILE);
    assert_true(fault_disarm(FAULT_SYSTEM_CALL));
    assert_int_equal(sys_signal_open(wrong, 2), -EINVAL);
    assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &mask), 0);
    assert_int_equal(sigismember(&mask, SIGUSR2), 0);
}

static void handle(int number)
{
    (void) number;
}

static void reset_everything(void)
{
    struct sigaction action = {.sa_handler = handle};
    sigset_t mask;

    CHECK_EQUAL(sys_signal_ignore(SIGPIPE), 0);
    CHECK_EQUAL(sigaction(SIGUSR1, &action, NULL), 0);
    CHECK_EQUAL(sigaction(SIGRTMAX, &action, NULL), 0);
    CHECK_EQUAL(sys_signal_block_all(&mask), 0);
    CHECK_EQUAL(sys_signal_reset(), 0);
    CHECK_EQUAL(sigprocmask(SIG_SETMASK, NULL, &mask), 0);
    for (int number = 1; number <= SIGRTMAX; number++) {
        CHECK(sigismember(&mask, number) <= 0);
        if (sigaction(number, NULL, &action) == 0)
            CHECK(action.sa_handler == SIG_DFL);
    }
}

static void a_reset_forgets_handlers_ignoring_and_mask(void **state)
{
    (void) state;
    run_in_child(reset_everything, "");
}

static void reset_one(void)
{
    static const int some[] = {SIGPIPE};
    struct sigaction action;
    sigset_t mask;

    CHECK_EQUAL(sys_signal_ignore(SIGPIPE), 0);
    CHECK_EQUAL(sys_signal_ignore(SIGUSR1), 0);
    CHECK_EQUAL(sys_signal_block_all(&mask), 0);
    CHECK_EQUAL(sys_signal_reset_some(some, ARRAY_COUNT(some)), 0);
    CHECK_EQUAL(sigaction(SIGPIPE, NULL, &action), 0);
    CHECK(action.sa_handler == SIG_DFL);
    CHECK_EQUAL(sigaction(SIGUSR1, NULL, &action), 0);
    CHECK(action.sa_handler == SIG_IGN);
    CHECK_EQUAL(sigprocmask(SIG_SETMASK, NULL, &mask), 0);
    CHECK(sigisemptyset(&mask));
}

static void a_small_reset_takes_the_named_ones_and_the_mask(void **state)
{
    (void) state;
    run_in_child(reset_one, "");
}

static void block_and_restore(void)
{
    sigset_t before, mask;

    CHECK_EQUAL(sys_signal_block_all(&before), 0);
    CHECK_EQUAL(kill(getpid(), SIGTERM), 0); /* would end us */
    CHECK_EQUAL(sigprocmask(SIG_SETMASK, NULL, &mask), 0);
    CHECK_EQUAL(sigismember(&mask, SIGTERM), 1);
    CHECK_EQUAL(sys_signal_ignore(SIGTERM), 0);
    CHECK_EQUAL(sys_signal_restore(&before), 0);
    CHECK_EQUAL(sigprocmask(SIG_SETMASK, NULL, &mask), 0);
    CHECK_EQUAL(sigismember(&mask, SIGTERM), 0);
}

static void all_signals_can_be_held_back_for_a_moment(void **state)
{
    (void) state;
    run_in_child(block_and_restore, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocked_signals_are_read),
        cmocka_unit_test(a_failed_open_leaves_the_mask),
        cmocka_unit_test(a_reset_forgets_handlers_ignoring_and_mask),
        cmocka_unit_test(a_small_reset_takes_the_named_ones_and_the_mask),
        cmocka_unit_test(all_signals_can_be_held_back_for_a_moment),
    };

    return cmocka_run_group_tests_name("sys_signal", tests, NULL, NULL);
}
