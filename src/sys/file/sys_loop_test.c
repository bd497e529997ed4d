#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/fault.h"
#include "sys/file/sys_loop.h"
#include "sys/sys_test.h"

#define NEEDS_LOOP "loop devices (root, /dev/loop-control)"
#define FILE_SIZE  (1 << 20)

/* The file is on the private tmpfs and the device clears itself, so nothing outlives the child. */
static int make_backing(const char *name)
{
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    CHECK(fd >= 0);
    CHECK_EQUAL(ftruncate(fd, FILE_SIZE), 0);
    return fd;
}

static int attach(int file, char path[static SYS_LOOP_PATH_SIZE])
{
    int device = sys_loop_attach(file, path);

    if (device == -ENOENT || device == -ENXIO || device == -EPERM || device == -EACCES)
        _exit(CHILD_UNABLE);
    CHECK(device >= 0);
    CHECK(is_close_on_exec(device));
    return device;
}

static uint64_t size_of(int device)
{
    uint64_t size = 0;

    CHECK_EQUAL(ioctl(device, BLKGETSIZE64, &size), 0);
    return size;
}

static void attach_find_grow(void)
{
    char path[SYS_LOOP_PATH_SIZE], found_path[SYS_LOOP_PATH_SIZE];
    AUTO(close) int file = -EBADF, other = -EBADF, device = -EBADF, found = -EBADF;

    enter_private_mounts();
    file = make_backing("a");
    other = make_backing("b");
    CHECK_EQUAL(sys_loop_find(file, found_path), -ENOENT);
    device = attach(file, path);
    CHECK_EQUAL(size_of(device), FILE_SIZE);
    CHECK_EQUAL(pwrite(device, "burrow", 6, 4096), 6);
    CHECK_EQUAL(fsync(device), 0);
    CHECK(sys_loop_is_direct(device) >= 0);
    found = sys_loop_find(file, found_path);
    CHECK(found >= 0);
    CHECK_EQUAL(strcmp(path, found_path), 0);
    CHECK_EQUAL(sys_loop_find(other, found_path), -ENOENT);
    CHECK_EQUAL(ftruncate(file, 2 * FILE_SIZE), 0);
    CHECK_EQUAL(sys_loop_grow(device), 0);
    CHECK_EQUAL(size_of(found), 2 * FILE_SIZE);
}

static void a_file_becomes_a_device_and_is_found_again(void **state)
{
    (void) state;
    run_in_child(attach_find_grow, NEEDS_LOOP);
}

static void clear_by_closing(void)
{
    char path[SYS_LOOP_PATH_SIZE];
    AUTO(close) int file = -EBADF, device = -EBADF, found = -EBADF;

    enter_private_mounts();
    file = make_backing("a");
    device = attach(file, path);
    found = sys_loop_find(file, path);
    CHECK(found >= 0);
    device = fd_close(device);
    /* One user left: still there. */
    CHECK(sys_loop_is_direct(found) >= 0);
    found = fd_close(found);
    for (int i = 0; i < 200 && (found = sys_loop_find(file, path)) >= 0; i++) {
        found = fd_close(found);
        (void) usleep(10000);
    }
    CHECK_EQUAL(found, -ENOENT);
}

static void the_last_user_takes_the_device_with_it(void **state)
{
    (void) state;
    run_in_child(clear_by_closing, NEEDS_LOOP);
}

static void errors_are_told(void **state)
{
    char path[SYS_LOOP_PATH_SIZE];

    (void) state;
    assert_true(sys_loop_attach(-1, path) < 0);
    assert_int_equal(sys_loop_find(-1, path), -EBADF);
    assert_int_equal(sys_loop_is_direct(-1), -EBADF);
    fault_arm(FAULT_SYSTEM_CALL, 1, EMFILE);
    assert_int_equal(sys_loop_attach(0, path), -EMFILE);
    fault_disarm(FAULT_SYSTEM_CALL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_becomes_a_device_and_is_found_again),
        cmocka_unit_test(the_last_user_takes_the_device_with_it),
        cmocka_unit_test(errors_are_told),
    };

    return cmocka_run_group_tests_name("sys_loop", tests, NULL, NULL);
}
