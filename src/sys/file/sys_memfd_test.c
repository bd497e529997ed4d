#include <string.h>
#include <sys/mman.h>

#include "base/fault.h"
#include "sys/file/sys_memfd.h"
#include "sys/sys_probe.h"
#include "sys/sys_test.h"

static const unsigned int modes[] = {0, SYS_FEATURE_BIT(SYS_FEATURE_MEMFD_NOEXEC)};

static int reset(void **state)
{
    (void) state;
    sys_feature_pretend(0);
    fault_disarm(FAULT_SYSTEM_CALL);
    return 0;
}

static void sealed_bytes_can_be_read_but_not_changed(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(modes); i++) {
        AUTO(close) int fd = -EBADF;
        char data[8] = "";
        size_t size = 0;

        sys_feature_pretend(modes[i]);
        fd = sys_memfd_from_bytes("plan", SYS_MEMFD_DATA, "bytes", 5);
        assert_true(fd >= 0);
        assert_true(is_close_on_exec(fd));
        assert_int_equal(sys_memfd_check(fd, SYS_MEMFD_SEALS_ALL, 5, &size), 0);
        assert_int_equal(size, 5);
        assert_int_equal(read(fd, data, sizeof(data)), 5);
        assert_string_equal(data, "bytes");
        assert_int_equal(pwrite(fd, "x", 1, 0), -1);
        assert_int_equal(errno, EPERM);
        assert_int_equal(ftruncate(fd, 0), -1);
        assert_int_equal(ftruncate(fd, 6), -1);
        assert_ptr_equal(mmap(NULL, 5, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
        assert_int_equal(sys_memfd_add_seals(fd, F_SEAL_GROW), -EPERM);
    }
}

static void each_missing_seal_is_noticed(void **state)
{
    static const int seals[] = {F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE};
    size_t size;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(seals); i++) {
        AUTO(close) int fd = sys_memfd_create("test", SYS_MEMFD_DATA);

        assert_int_equal(sys_memfd_add_seals(fd, SYS_MEMFD_SEALS_ALL & ~seals[i]), 0);
        assert_int_equal(sys_memfd_check(fd, SYS_MEMFD_SEALS_ALL, 10, &size), -EPERM);
        assert_int_equal(sys_memfd_check(fd, SYS_MEMFD_SEALS_ALL & ~seals[i], 10, &size), 0);
    }
}

static void what_is_too_long_or_no_memfd_is_refused(void **state)
{
    AUTO(close) int fd = sys_memfd_from_bytes("plan", SYS_MEMFD_DATA, "bytes", 5);
    AUTO(close) int file = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    size_t size = 77;
    int ends[2];

    (void) state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(sys_memfd_check(fd, SYS_MEMFD_SEALS_ALL, 4, &size), -EFBIG);
    assert_int_equal(sys_memfd_check(ends[0], SYS_MEMFD_SEALS_ALL, 4, &size), -EINVAL);
    assert_int_equal(sys_memfd_check(-1, SYS_MEMFD_SEALS_ALL, 4, &size), -EBADF);
    /* A file of a tmpfs has seals too, but never all of them. */
    assert_true(sys_memfd_check(file, SYS_MEMFD_SEALS_ALL, 1 << 20, &size) < 0);
    assert_int_equal(size, 77);
    close(ends[0]);
    close(ends[1]);
}

static void data_is_not_executable_where_the_kernel_can_promise_it(void **state)
{
    AUTO(close) int data = sys_memfd_create("data", SYS_MEMFD_DATA);
    AUTO(close) int program = sys_memfd_create("program", SYS_MEMFD_PROGRAM);
    struct stat status;

    (void) state;
    assert_true(data >= 0);
    assert_true(program >= 0);
    assert_int_equal(fstat(program, &status), 0);
    assert_true(status.st_mode & 0100);
    assert_false(sys_memfd_get_seals(program) & SYS_MEMFD_SEAL_EXEC);
    if (sys_probe(SYS_FEATURE_MEMFD_NOEXEC) != 1)
        skip_without("MFD_NOEXEC_SEAL (Linux 6.3)");
    assert_int_equal(fstat(data, &status), 0);
    assert_false(status.st_mode & 0111);
    assert_int_equal(fchmod(data, 0700), -1);
}

static void without_noexec_a_memfd_can_still_be_sealed(void **state)
{
    AUTO(close) int fd = -EBADF;

    (void) state;
    sys_feature_pretend(modes[1]);
    fd = sys_memfd_create("test", SYS_MEMFD_DATA);
    assert_true(fd >= 0);
    assert_int_equal(sys_memfd_get_seals(fd), 0);
    assert_int_equal(sys_memfd_add_seals(fd, F_SEAL_WRITE), 0);
    assert_int_equal(sys_memfd_get_seals(fd), F_SEAL_WRITE);
}

static void failures_leave_no_descriptor(void **state)
{
    int before = count_descriptors();

    (void) state;
    for (unsigned int call = 1; call <= 3; call++) {
        fault_arm(FAULT_SYSTEM_CALL, call, EIO);
        assert_int_equal(sys_memfd_from_bytes("plan", SYS_MEMFD_DATA, "bytes", 5), -EIO);
        assert_true(fault_disarm(FAULT_SYSTEM_CALL));
    }
    assert_int_equal(count_descriptors(), before);
}

static void a_page_that_is_held_for_a_moment_is_waited_for(void **state)
{
    AUTO(close) int fd = -EBADF;
    size_t size = 0;

    (void) state;
    fault_arm(FAULT_SYSTEM_CALL, 3, EBUSY); /* create, write, seal */
    fd = sys_memfd_from_bytes("plan", SYS_MEMFD_DATA, "bytes", 5);
    assert_true(fault_disarm(FAULT_SYSTEM_CALL));
    assert_true(fd >= 0);
    assert_int_equal(sys_memfd_check(fd, SYS_MEMFD_SEALS_ALL, 5, &size), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(sealed_bytes_can_be_read_but_not_changed, reset),
        cmocka_unit_test_teardown(each_missing_seal_is_noticed, reset),
        cmocka_unit_test_teardown(what_is_too_long_or_no_memfd_is_refused, reset),
        cmocka_unit_test_teardown(data_is_not_executable_where_the_kernel_can_promise_it, reset),
        cmocka_unit_test_teardown(without_noexec_a_memfd_can_still_be_sealed, reset),
        cmocka_unit_test_teardown(failures_leave_no_descriptor, reset),
        cmocka_unit_test_teardown(a_page_that_is_held_for_a_moment_is_waited_for, reset),
    };

    return cmocka_run_group_tests_name("sys_memfd", tests, NULL, NULL);
}
