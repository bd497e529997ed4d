#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>

#include "sys/file/sys_btrfs.h"
#include "sys/file/sys_btrfs_test_kit.h"
#include "sys/file/sys_extents.h"
#include "sys/file/sys_file.h"

#define CONTENT_SIZE 100000

static int open_folder(int directory, const char *name)
{
    int fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    CHECK(fd >= 0);
    return fd;
}

static int make_file(int folder, const char *name, char letter, size_t size)
{
    int fd = openat(folder, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    AUTO(free) char *bytes = malloc(size);

    CHECK(fd >= 0);
    memset(bytes, letter, size);
    CHECK_EQUAL(sys_file_pwrite_full(fd, bytes, size, 0), 0);
    return fd;
}

static int compare(int left, int right, const char *name)
{
    AUTO(close) int first = openat(left, name, O_RDONLY | O_CLOEXEC);
    AUTO(close) int second = openat(right, name, O_RDONLY | O_CLOEXEC);

    CHECK(first >= 0 && second >= 0);
    CHECK(sys_extents_comparable(first, second));
    return sys_extents_same(first, second);
}

/* Many extents: the kernel tells them in several answers. */
static void make_fragments(int folder, const char *name)
{
    AUTO(close) int fd = make_file(folder, name, 'x', 1);

    for (int i = 0; i < 200; i++)
        CHECK_EQUAL(sys_file_pwrite_full(fd, "content", 7, i * 16384), 0);
}

static void compress(int fd)
{
    int flags = FS_COMPR_FL;

    CHECK_EQUAL(ioctl(fd, FS_IOC_SETFLAGS, &flags), 0);
}

static void compare_snapshots(void)
{
    AUTO(close) int top = make_filesystem(), disk = -EBADF, copy = -EBADF, file = -EBADF;
    AUTO(close) int small = -EBADF, compressed = -EBADF;
    struct timespec times[2];
    struct stat status;

    CHECK_EQUAL(sys_btrfs_create(top, "disk", 0), 0);
    disk = open_folder(top, "disk");
    file = make_file(disk, "changed", 'a', CONTENT_SIZE);
    (void) close(make_file(disk, "same", 'a', CONTENT_SIZE));
    small = make_file(disk, "small", 'a', 100);
    compressed = make_file(disk, "compressed", 'a', 0);
    compress(compressed);
    (void) close(make_file(disk, "compressed", 'a', CONTENT_SIZE));
    make_fragments(disk, "fragments");
    CHECK_EQUAL(sys_btrfs_snapshot(disk, top, "copy", true, 0), 0);
    copy = open_folder(top, "copy");
    CHECK_EQUAL(compare(disk, copy, "same"), 1);
    CHECK_EQUAL(compare(disk, copy, "changed"), 1);
    CHECK_EQUAL(compare(disk, copy, "fragments"), 1);
    CHECK_EQUAL(compare(disk, copy, "small"), 0);      /* not known */
    CHECK_EQUAL(compare(disk, copy, "compressed"), 0); /* not known */
    /* In place, with its old time, and not yet on the disk. */
    CHECK_EQUAL(fstat(file, &status), 0);
    CHECK_EQUAL(sys_file_pwrite_full(file, "b", 1, 50000), 0);
    times[0] = status.st_atim;
    times[1] = status.st_mtim;
    CHECK_EQUAL(futimens(file, times), 0);
    CHECK_EQUAL(compare(disk, copy, "changed"), 0);
    CHECK_EQUAL(compare(disk, copy, "same"), 1);
}

static void snapshots_share_what_did_not_change(void **state)
{
    (void) state;
    run_in_child(compare_snapshots, NEEDS_BTRFS);
}

/* Forks give the same inode number, and often the same time, to different files. */
static void compare_forks(void)
{
    AUTO(close) int top = make_filesystem(), disk = -EBADF, fork_folder = -EBADF;
    AUTO(close) int left = -EBADF, right = -EBADF;
    struct timespec times[] = {{1000, 0}, {1000, 0}};
    struct stat first, second;

    CHECK_EQUAL(sys_btrfs_create(top, "disk", 0), 0);
    disk = open_folder(top, "disk");
    CHECK_EQUAL(sys_btrfs_snapshot(disk, top, "fork", false, 0), 0);
    fork_folder = open_folder(top, "fork");
    left = make_file(disk, "a", 'a', CONTENT_SIZE);
    right = make_file(fork_folder, "a", 'b', CONTENT_SIZE);
    CHECK_EQUAL(futimens(left, times) + futimens(right, times), 0);
    CHECK_EQUAL(fstat(left, &first) + fstat(right, &second), 0);
    CHECK_EQUAL(first.st_ino, second.st_ino);
    CHECK_EQUAL(compare(disk, fork_folder, "a"), 0);
}

static void forks_are_told_apart(void **state)
{
    (void) state;
    run_in_child(compare_forks, NEEDS_BTRFS);
}

static void compare_with_others(void)
{
    AUTO(close) int top = make_filesystem(), other = open_folder(AT_FDCWD, "/tmp");

    CHECK(sys_extents_comparable(top, top));
    CHECK(!sys_extents_comparable(top, other));
    CHECK(!sys_extents_comparable(other, top));
    CHECK(!sys_extents_comparable(other, other));
}

static void only_one_btrfs_is_comparable(void **state)
{
    (void) state;
    run_in_child(compare_with_others, NEEDS_BTRFS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(snapshots_share_what_did_not_change),
        cmocka_unit_test(forks_are_told_apart),
        cmocka_unit_test(only_one_btrfs_is_comparable),
    };

    return cmocka_run_group_tests_name("sys_extents", tests, NULL, NULL);
}
