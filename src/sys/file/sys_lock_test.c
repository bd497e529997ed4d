#include <errno.h>

#include "base/fault.h"
#include "sys/file/sys_lock.h"
#include "sys/sys_test.h"

static int open_file(const char *folder)
{
    char path[SCRATCH_SIZE + 8];

    (void) snprintf(path, sizeof(path), "%s/lock", folder);
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static void one_owner_keeps_the_others_out(void **state)
{
    char folder[SCRATCH_SIZE];
    AUTO(close) int first = -EBADF, second = -EBADF;

    (void) state;
    make_scratch(folder);
    first = open_file(folder);
    second = open_file(folder);
    assert_true(first >= 0 && second >= 0);
    assert_int_equal(sys_lock_take(first, SYS_LOCK_EXCLUSIVE, 0), 0);
    assert_int_equal(sys_lock_take(second, SYS_LOCK_EXCLUSIVE, 0), -ETIMEDOUT);
    assert_int_equal(sys_lock_take(second, SYS_LOCK_SHARED, 20), -ETIMEDOUT);
    sys_lock_release(first);
    assert_int_equal(sys_lock_take(second, SYS_LOCK_SHARED, 0), 0);
    assert_int_equal(sys_lock_take(first, SYS_LOCK_SHARED, 0), 0);
    assert_int_equal(sys_lock_take(first, SYS_LOCK_EXCLUSIVE, 0), -ETIMEDOUT);
    remove_scratch(folder);
}

static void a_waiter_gets_it_when_the_owner_dies(void **state)
{
    char folder[SCRATCH_SIZE], byte;
    AUTO(close) int mine = -EBADF;
    int ready[2], seen[2], status;
    pid_t owner;

    (void) state;
    make_scratch(folder);
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    assert_int_equal(pipe2(seen, O_CLOEXEC), 0);
    owner = fork();
    if (owner == 0) {
        struct timespec pause = {.tv_nsec = 30000000};

        if (sys_lock_take(open_file(folder), SYS_LOCK_EXCLUSIVE, 0) < 0 ||
            write(ready[1], "x", 1) != 1 || read(seen[0], &byte, 1) != 1)
            _exit(1);
        (void) nanosleep(&pause, NULL);
        _exit(0);
    }
    assert_true(owner > 0);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    mine = open_file(folder);
    assert_int_equal(sys_lock_take(mine, SYS_LOCK_EXCLUSIVE, 0), -ETIMEDOUT);
    assert_int_equal(write(seen[1], "x", 1), 1);
    assert_int_equal(sys_lock_take(mine, SYS_LOCK_EXCLUSIVE, 5000), 0);
    assert_int_equal(waitpid(owner, &status, 0), owner);
    assert_int_equal(status, 0);
    for (int i = 0; i < 2; i++) {
        (void) close(ready[i]);
        (void) close(seen[i]);
    }
    remove_scratch(folder);
}

static void errors_are_told(void **state)
{
    (void) state;
    assert_int_equal(sys_lock_take(-1, SYS_LOCK_EXCLUSIVE, -1), -EBADF);
    assert_int_equal(sys_lock_take(-1, SYS_LOCK_EXCLUSIVE, 1000), -EBADF);
    fault_arm(FAULT_SYSTEM_CALL, 1, ENOLCK);
    assert_int_equal(sys_lock_take(0, SYS_LOCK_SHARED, 0), -ENOLCK);
    fault_disarm(FAULT_SYSTEM_CALL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_owner_keeps_the_others_out),
        cmocka_unit_test(a_waiter_gets_it_when_the_owner_dies),
        cmocka_unit_test(errors_are_told),
    };

    return cmocka_run_group_tests_name("sys_lock", tests, NULL, NULL);
}
