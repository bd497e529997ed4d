#include <signal.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/fault.h"
#include "sys/mount/sys_mount.h"
#include "sys/process/sys_clone.h"
#include "sys/process/sys_namespace.h"
#include "sys/process/sys_process.h"
#include "sys/sys_test.h"

static int reset(void **state)
{
    (void) state;
    sys_feature_pretend(0);
    fault_disarm(FAULT_SYSTEM_CALL);
    return 0;
}

static void make_file(const char *path, const char *text)
{
    AUTO(close) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    CHECK(fd >= 0);
    CHECK_EQUAL(write(fd, text, strlen(text)), (ssize_t) strlen(text));
}

static unsigned long flags_of(const char *path)
{
    struct statvfs status;

    CHECK_EQUAL(statvfs(path, &status), 0);
    return status.f_flag;
}

/* A detached tmpfs. */
static int make_detached(void)
{
    AUTO(close) int filesystem = sys_mount_open_filesystem("tmpfs");
    int mount;

    if (filesystem == -ENOSYS)
        _exit(CHILD_UNABLE);
    CHECK(filesystem >= 0);
    CHECK(is_close_on_exec(filesystem));
    CHECK_EQUAL(sys_mount_set_string(filesystem, "source", "burrow-test"), 0);
    CHECK_EQUAL(sys_mount_set_string(filesystem, "size", "1M"), 0);
    CHECK_EQUAL(sys_mount_create(filesystem), 0);
    mount = sys_mount_detached(filesystem, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    CHECK(mount >= 0);
    CHECK(is_close_on_exec(mount));
    return mount;
}

static void attach_by_path_and_descriptor(void)
{
    AUTO(close) int mount = -EBADF, copy = -EBADF, place = -EBADF;

    enter_private_mounts();
    mount = make_detached();
    CHECK_EQUAL(mkdir("a", 0700), 0);
    CHECK_EQUAL(mkdir("b", 0700), 0);
    place = open("b", O_PATH | O_CLOEXEC);
    CHECK_EQUAL(sys_mount_attach(mount, AT_FDCWD, "a"), 0);
    CHECK_EQUAL(flags_of("a") & (ST_NOSUID | ST_NODEV | ST_RDONLY), ST_NOSUID | ST_NODEV);
    make_file("a/file", "x");
    copy = sys_mount_copy(AT_FDCWD, "a", false);
    CHECK(copy >= 0);
    CHECK_EQUAL(sys_mount_attach(copy, place, ""), 0);
    CHECK_EQUAL(access("b/file", F_OK), 0);
    CHECK_EQUAL(sys_mount_unmount("b", SYS_UNMOUNT_NOFOLLOW), -EBUSY);
    copy = fd_close(copy);
    CHECK_EQUAL(sys_mount_unmount("b", SYS_UNMOUNT_NOFOLLOW), 0);
    CHECK_EQUAL(access("b/file", F_OK), -1);
    CHECK_EQUAL(sys_mount_unmount("b", 0), -EINVAL);
}

static void a_detached_mount_appears_where_it_is_attached(void **state)
{
    (void) state;
    run_in_child(attach_by_path_and_descriptor, NEEDS_MOUNTS);
}

static void change_recursively(void)
{
    struct sys_mount_attributes readonly = {.set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC,
                                            .recursive = true};
    struct sys_mount_attributes writable = {.clear = MOUNT_ATTR_RDONLY};
    AUTO(close) int outer = -EBADF, inner = -EBADF;

    enter_private_mounts();
    outer = make_detached();
    inner = make_detached();
    CHECK_EQUAL(mkdir("a", 0700), 0);
    CHECK_EQUAL(sys_mount_attach(outer, AT_FDCWD, "a"), 0);
    CHECK_EQUAL(mkdir("a/b", 0700), 0);
    CHECK_EQUAL(sys_mount_attach(inner, AT_FDCWD, "a/b"), 0);
    CHECK_EQUAL(sys_mount_change(outer, "", &readonly), 0);
    CHECK(flags_of("a") & ST_RDONLY);
    CHECK(flags_of("a/b") & ST_RDONLY);
    CHECK_EQUAL(open("a/b/x", O_CREAT | O_WRONLY | O_CLOEXEC, 0600), -1);
    CHECK_EQUAL(sys_mount_change(AT_FDCWD, "a/b", &writable), 0);
    CHECK(flags_of("a") & ST_RDONLY);
    CHECK(!(flags_of("a/b") & ST_RDONLY));
    CHECK(flags_of("a/b") & ST_NOEXEC);
    CHECK_EQUAL(sys_mount_unmount("a", 0), -EBUSY);
    CHECK_EQUAL(sys_mount_unmount("a", SYS_UNMOUNT_DETACH), 0);
}

static void attributes_reach_the_mounts_beneath(void **state)
{
    (void) state;
    run_in_child(change_recursively, NEEDS_MOUNTS);
}

static void show_reason(void)
{
    AUTO(close) int filesystem = -EBADF;
    char message[256];

    enter_private_mounts();
    filesystem = sys_mount_open_filesystem("tmpfs");
    if (filesystem == -ENOSYS)
        _exit(CHILD_UNABLE);
    CHECK_EQUAL(sys_mount_read_message(filesystem, message, sizeof(message)), 0);
    CHECK_EQUAL(sys_mount_set_flag(filesystem, "nonsense"), -EINVAL);
    CHECK(sys_mount_read_message(filesystem, message, sizeof(message)) > 0);
    CHECK(strstr(message, "nonsense") != NULL);
    CHECK_EQUAL(sys_mount_open_filesystem("no-such-filesystem"), -ENODEV);
    CHECK(sys_mount_set_descriptor(filesystem, "fd", 0) < 0);
}

static void the_kernel_says_why_a_mount_fails(void **state)
{
    (void) state;
    run_in_child(show_reason, NEEDS_MOUNTS);
}

/* A user namespace where 0 is 100000, kept alive by a descriptor. */
static int make_user_namespace(void)
{
    static const struct sys_id_range ids[] = {{0, 100000, 65536}};
    int pidfd = -EBADF, namespace;
    struct sys_clone how = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD, .ret_pidfd = &pidfd};
    struct sys_exit ended;
    pid_t pid = sys_clone(&how);

    if (pid == 0) {
        for (;;)
            pause();
    }
    if (pid == -EPERM)
        _exit(CHILD_UNABLE);
    CHECK(pid > 0);
    CHECK_EQUAL(sys_namespace_map_users(pid, ids, 1), 0);
    CHECK_EQUAL(sys_namespace_map_groups(pid, ids, 1), 0);
    namespace = sys_namespace_open(pid, "user");
    CHECK(namespace >= 0);
    CHECK_EQUAL(sys_process_kill(pidfd, SIGKILL), 0);
    CHECK_EQUAL(sys_process_wait(pidfd, -1, &ended), 0);
    return namespace;
}

static void map_ids(void)
{
    AUTO(close) int mount = -EBADF, copy = -EBADF, namespace = -EBADF;
    struct stat status;
    int result;

    enter_private_mounts();
    mount = make_detached();
    CHECK_EQUAL(mkdir("a", 0700), 0);
    CHECK_EQUAL(mkdir("b", 0700), 0);
    CHECK_EQUAL(sys_mount_attach(mount, AT_FDCWD, "a"), 0);
    make_file("a/file", "x");
    namespace = make_user_namespace();
    copy = sys_mount_copy(mount, "", false);
    CHECK(copy >= 0);
    result = sys_mount_set_id_map(copy, namespace);
    if (result == -EINVAL) /* tmpfs learned it in 6.3 */
        _exit(CHILD_UNABLE);
    CHECK_EQUAL(result, 0);
    CHECK_EQUAL(sys_mount_set_id_map(copy, namespace), -EPERM);
    CHECK_EQUAL(sys_mount_attach(copy, AT_FDCWD, "b"), 0);
    CHECK_EQUAL(stat("a/file", &status), 0);
    CHECK_EQUAL(status.st_uid, 0);
    CHECK_EQUAL(stat("b/file", &status), 0);
    CHECK_EQUAL(status.st_uid, 100000);
}

static void ids_are_shown_through_a_map(void **state)
{
    (void) state;
    run_in_child(map_ids, "idmapped tmpfs (root, Linux 6.3, user namespaces)");
}

static void change_root(void)
{
    AUTO(close) int mount = -EBADF;

    enter_private_mounts();
    mount = make_detached();
    CHECK_EQUAL(mkdir("new", 0700), 0);
    CHECK_EQUAL(sys_mount_attach(mount, AT_FDCWD, "new"), 0);
    make_file("new/inside", "x");
    CHECK_EQUAL(chdir("new"), 0);
    CHECK_EQUAL(sys_mount_pivot_root(".", "."), 0);
    CHECK_EQUAL(sys_mount_unmount(".", SYS_UNMOUNT_DETACH), 0);
    CHECK_EQUAL(chdir("/"), 0);
    CHECK_EQUAL(access("/inside", F_OK), 0);
    CHECK_EQUAL(access("/proc", F_OK), -1);
    CHECK_EQUAL(access("/../etc", F_OK), -1);
}

static void the_root_is_exchanged(void **state)
{
    (void) state;
    run_in_child(change_root, NEEDS_MOUNTS);
}

static void a_missing_api_is_told(void **state)
{
    struct sys_mount_attributes change = {.set = MOUNT_ATTR_RDONLY};

    (void) state;
    sys_feature_pretend(SYS_FEATURE_BIT(SYS_FEATURE_MOUNT_API));
    assert_int_equal(sys_mount_open_filesystem("tmpfs"), -ENOSYS);
    assert_int_equal(sys_mount_create(-1), -ENOSYS);
    assert_int_equal(sys_mount_detached(-1, 0), -ENOSYS);
    assert_int_equal(sys_mount_copy(-1, "", false), -ENOSYS);
    assert_int_equal(sys_mount_attach(-1, -1, ""), -ENOSYS);
    sys_feature_pretend(SYS_FEATURE_BIT(SYS_FEATURE_MOUNT_SETATTR));
    assert_int_equal(sys_mount_change(-1, "", &change), -ENOSYS);
    sys_feature_pretend(0);
    fault_arm(FAULT_SYSTEM_CALL, 1, EBUSY);
    assert_int_equal(sys_mount_unmount("/does/not/exist", 0), -EBUSY);
    assert_int_equal(sys_mount_unmount("/does/not/exist", 0), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_detached_mount_appears_where_it_is_attached, reset),
        cmocka_unit_test_teardown(attributes_reach_the_mounts_beneath, reset),
        cmocka_unit_test_teardown(the_kernel_says_why_a_mount_fails, reset),
        cmocka_unit_test_teardown(ids_are_shown_through_a_map, reset),
        cmocka_unit_test_teardown(the_root_is_exchanged, reset),
        cmocka_unit_test_teardown(a_missing_api_is_told, reset),
    };

    return cmocka_run_group_tests_name("sys_mount", tests, NULL, NULL);
}
