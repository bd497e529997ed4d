#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>

#include "sys/file/sys_btrfs.h"
#include "sys/file/sys_btrfs_test_kit.h"

#define MEGABYTE (1ULL << 20)

static int open_folder(int directory, const char *name)
{
    int fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    CHECK(fd >= 0);
    return fd;
}

static uint64_t number_of(int directory, const char *name)
{
    AUTO(close) int fd = open_folder(directory, name);
    struct sys_btrfs_subvolume subvolume;

    CHECK_EQUAL(sys_btrfs_inspect(fd, &subvolume), 0);
    return subvolume.number;
}

/* Fill until the filesystem says no. Returns the bytes written and the errno. */
static uint64_t fill(int directory, const char *name, int *ret_errno)
{
    static char block[1 << 16];
    AUTO(close) int fd = openat(directory, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    uint64_t written = 0;
    ssize_t count;

    CHECK(fd >= 0);
    memset(block, 'x', sizeof(block));
    while (written < 64 * MEGABYTE && (count = write(fd, block, sizeof(block))) > 0)
        written += (uint64_t) count;
    *ret_errno = count < 0 ? errno : 0;
    if (count > 0 && fsync(fd) < 0)
        *ret_errno = errno;
    return written;
}

static void use_subvolumes(void)
{
    AUTO(close) int top = make_filesystem(), disk = -EBADF, copy = -EBADF;
    struct sys_btrfs_subvolume subvolume;

    CHECK_EQUAL(sys_btrfs_create(top, "disk", 0), 0);
    CHECK_EQUAL(sys_btrfs_create(top, "disk", 0), -EEXIST);
    disk = open_folder(top, "disk");
    CHECK_EQUAL(mkdirat(disk, "folder", 0700), 0);
    CHECK_EQUAL(sys_btrfs_inspect(disk, &subvolume), 0);
    CHECK(!subvolume.read_only && subvolume.number >= 256);
    CHECK_EQUAL(sys_btrfs_flush(disk, top, "disk"), 0);
    CHECK_EQUAL(sys_btrfs_flush(disk, top, "copy"), 0); /* a name that is free stays so */
    CHECK_EQUAL(sys_btrfs_snapshot(disk, top, "copy", true, 0), 0);
    copy = open_folder(top, "copy");
    CHECK_EQUAL(sys_btrfs_inspect(copy, &subvolume), 0);
    CHECK(subvolume.read_only);
    CHECK_EQUAL(mkdirat(disk, "later", 0700), 0);
    CHECK_EQUAL(faccessat(copy, "folder", F_OK, 0), 0);
    CHECK_EQUAL(faccessat(copy, "later", F_OK, 0), -1);
    CHECK_EQUAL(mkdirat(copy, "x", 0700), -1);
    CHECK_EQUAL(errno, EROFS);
    CHECK_EQUAL(sys_btrfs_delete(top, "copy"), 0);
    CHECK_EQUAL(sys_btrfs_delete(top, "copy"), -ENOENT);
    CHECK_EQUAL(sys_btrfs_delete(top, "disk"), 0);
    CHECK_EQUAL(mkdirat(top, "plain", 0700), 0);
    CHECK_EQUAL(sys_btrfs_delete(top, "plain"), -EINVAL);
}

static void subvolumes_are_made_copied_and_dropped(void **state)
{
    (void) state;
    run_in_child(use_subvolumes, NEEDS_BTRFS);
}

static void limit_with(enum sys_btrfs_quota kind)
{
    AUTO(close) int top = make_filesystem(), disk = -EBADF;
    struct sys_btrfs_usage usage;
    uint64_t number, written;
    int error, result;

    CHECK_EQUAL(sys_btrfs_quota(top), SYS_BTRFS_QUOTA_OFF);
    result = sys_btrfs_enable_quota(top, kind);
    if (result == -EINVAL) /* Linux before 6.7 */
        _exit(CHILD_UNABLE);
    CHECK_EQUAL(result, 0);
    CHECK_EQUAL(sys_btrfs_enable_quota(top, kind), 0);
    CHECK_EQUAL(sys_btrfs_quota(top), kind);
    CHECK_EQUAL(sys_btrfs_create(top, "disk", 16 * MEGABYTE), 0);
    disk = open_folder(top, "disk");
    number = number_of(top, "disk");
    written = fill(disk, "file", &error);
    CHECK_EQUAL(error, EDQUOT);
    CHECK(written >= 14 * MEGABYTE && written <= 16 * MEGABYTE);
    CHECK_EQUAL(sys_btrfs_sync(top), 0);
    CHECK_EQUAL(sys_btrfs_usage(top, number, &usage), 0);
    CHECK_EQUAL(usage.limit, 16 * MEGABYTE);
    CHECK(usage.used >= written && usage.used <= 16 * MEGABYTE);
    CHECK_EQUAL(sys_btrfs_set_limit(top, number, 32 * MEGABYTE), 0);
    CHECK(fill(disk, "more", &error) > 8 * MEGABYTE);
    CHECK_EQUAL(error, EDQUOT);
    CHECK_EQUAL(sys_btrfs_set_limit(top, number, 0), 0);
    CHECK_EQUAL(fill(disk, "much", &error), 64 * MEGABYTE);
    CHECK_EQUAL(sys_btrfs_sync(top), 0);
    CHECK_EQUAL(sys_btrfs_usage(top, number, &usage), 0);
    CHECK_EQUAL(usage.limit, 0);
    CHECK_EQUAL(unlinkat(disk, "much", 0), 0);
    CHECK_EQUAL(sys_btrfs_disable_quota(top), 0);
    CHECK_EQUAL(sys_btrfs_quota(top), SYS_BTRFS_QUOTA_OFF);
}

static void limit_simply(void)
{
    limit_with(SYS_BTRFS_QUOTA_SIMPLE);
}

static void limit_by_groups(void)
{
    limit_with(SYS_BTRFS_QUOTA_GROUPS);
}

static void simple_quota_limits_a_subvolume(void **state)
{
    (void) state;
    run_in_child(limit_simply, NEEDS_BTRFS ", Linux 6.7 for simple quota");
}

static void group_quota_limits_a_subvolume(void **state)
{
    (void) state;
    run_in_child(limit_by_groups, NEEDS_BTRFS);
}

static void walk_records(void)
{
    AUTO(close) int top = make_filesystem();
    struct sys_btrfs_usage usage;
    uint64_t first, second, found = 0;

    CHECK_EQUAL(sys_btrfs_next_record(top, 0, &found), -ENOENT);
    CHECK_EQUAL(sys_btrfs_usage(top, 256, &usage), -ENOENT);
    CHECK_EQUAL(sys_btrfs_enable_quota(top, SYS_BTRFS_QUOTA_GROUPS), 0);
    CHECK_EQUAL(sys_btrfs_create(top, "a", MEGABYTE), 0);
    CHECK_EQUAL(sys_btrfs_create(top, "b", 0), 0);
    first = number_of(top, "a");
    second = number_of(top, "b");
    CHECK(second > first);
    CHECK_EQUAL(sys_btrfs_sync(top), 0);
    CHECK_EQUAL(sys_btrfs_next_record(top, 256, &found), 0);
    CHECK_EQUAL(found, first);
    CHECK_EQUAL(sys_btrfs_next_record(top, first + 1, &found), 0);
    CHECK_EQUAL(found, second);
    CHECK_EQUAL(sys_btrfs_next_record(top, second + 1, &found), -ENOENT);
    CHECK_EQUAL(sys_btrfs_has_subvolume(top, first), 1);
    CHECK_EQUAL(sys_btrfs_has_subvolume(top, second + 1), 0);
    CHECK(sys_btrfs_drop_record(top, second + 1) < 0);
}

static void records_are_walked_in_order(void **state)
{
    (void) state;
    run_in_child(walk_records, NEEDS_BTRFS);
}

static void give_space_back(void)
{
    AUTO(close) int top = make_filesystem();
    struct stat before, after;
    uint64_t bytes = 0;
    int error;

    CHECK_EQUAL(fill(top, "file", &error), 64 * MEGABYTE);
    CHECK_EQUAL(sys_btrfs_sync(top), 0);
    CHECK_EQUAL(stat("big/image", &before), 0);
    CHECK_EQUAL(unlinkat(top, "file", 0), 0);
    CHECK_EQUAL(sys_btrfs_sync(top), 0);
    CHECK_EQUAL(sys_btrfs_trim(top, &bytes), 0);
    CHECK(bytes > 32 * MEGABYTE);
    CHECK_EQUAL(stat("big/image", &after), 0);
    CHECK(after.st_blocks < before.st_blocks - (long) (32 * MEGABYTE / 512));
    CHECK_EQUAL(sys_btrfs_grow(top), 0);
}

static void freed_blocks_are_given_back(void **state)
{
    (void) state;
    run_in_child(give_space_back, NEEDS_BTRFS);
}

static void write_in_place(void)
{
    AUTO(close) int top = make_filesystem(), file = -EBADF;
    int flags = 0;

    file = openat(top, "file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK_EQUAL(sys_btrfs_disable_copy(file), 0);
    CHECK_EQUAL(ioctl(file, FS_IOC_GETFLAGS, &flags), 0);
    CHECK(flags & FS_NOCOW_FL);
}

static void a_file_can_be_written_in_place(void **state)
{
    (void) state;
    run_in_child(write_in_place, NEEDS_BTRFS);
}

static void other_filesystems_and_names_are_refused(void **state)
{
    AUTO(close) int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void) state;
    assert_int_equal(sys_btrfs_create(proc, "x", 0), -ENOTTY);
    assert_int_equal(sys_btrfs_quota(proc), -ENOTTY);
    assert_int_equal(sys_btrfs_create(proc, "a/b", 0), -EINVAL);
    assert_int_equal(sys_btrfs_create(proc, "", 0), -EINVAL);
    assert_int_equal(sys_btrfs_delete(proc, "../x"), -EINVAL);
    assert_int_equal(sys_btrfs_enable_quota(proc, SYS_BTRFS_QUOTA_OFF), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(subvolumes_are_made_copied_and_dropped),
        cmocka_unit_test(simple_quota_limits_a_subvolume),
        cmocka_unit_test(group_quota_limits_a_subvolume),
        cmocka_unit_test(records_are_walked_in_order),
        cmocka_unit_test(freed_blocks_are_given_back),
        cmocka_unit_test(a_file_can_be_written_in_place),
        cmocka_unit_test(other_filesystems_and_names_are_refused),
    };

    return cmocka_run_group_tests_name("sys_btrfs", tests, NULL, NULL);
}
