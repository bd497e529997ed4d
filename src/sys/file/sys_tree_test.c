#include <string.h>

#include "base/rounds_testing.h"
#include "sys/file/sys_tree.h"
#include "sys/sys_test.h"

static void make_file(const char *path)
{
    AUTO(close) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
}

static int open_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    CHECK(fd >= 0);
    return fd;
}

/* A scratch folder as the working directory, and a descriptor of it. */
static int enter_scratch(char ret_path[static SCRATCH_SIZE])
{
    make_scratch(ret_path);
    assert_int_equal(chdir(ret_path), 0);
    return open_folder(".");
}

static void leave_scratch(const char *path)
{
    assert_int_equal(chdir("/"), 0);
    remove_scratch(path);
}

static void links_are_removed_and_never_followed(void **state)
{
    char folder[SCRATCH_SIZE];
    AUTO(close) int top = enter_scratch(folder);

    (void) state;
    assert_int_equal(mkdir("precious", 0700), 0);
    make_file("precious/file");
    assert_int_equal(mkdir("tree", 0700), 0);
    assert_int_equal(mkdir("tree/a", 0700), 0);
    assert_int_equal(symlink("../precious", "tree/link"), 0);
    assert_int_equal(symlink("../../precious", "tree/a/link"), 0);
    assert_int_equal(symlink("/", "tree/a/root"), 0);
    assert_int_equal(mkfifo("tree/a/fifo", 0600), 0);
    assert_int_equal(symlink("precious", "outer"), 0);
    assert_int_equal(sys_tree_delete(top, "tree"), 0);
    assert_int_equal(access("tree", F_OK), -1);
    assert_int_equal(sys_tree_delete(top, "outer"), 0);
    assert_int_equal(access("precious/file", F_OK), 0);
    assert_int_equal(sys_tree_delete(top, "gone already"), 0);
    leave_scratch(folder);
}

static void only_a_name_is_accepted(void **state)
{
    static const char *const names[] = {"", ".", "..", "a/b", "/", "../x"};
    char folder[SCRATCH_SIZE];
    AUTO(close) int top = enter_scratch(folder);

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        assert_int_equal(sys_tree_delete(top, names[i]), -EINVAL);
    leave_scratch(folder);
}

static void a_tree_with_too_much_in_it_is_left(void **state)
{
    char folder[SCRATCH_SIZE];
    AUTO(close) int top = enter_scratch(folder);

    (void) state;
    assert_int_equal(mkdir("tree", 0700), 0);
    assert_int_equal(mkdir("tree/a", 0700), 0);
    make_file("tree/a/one");
    make_file("tree/two");
    make_file("tree/three");
    assert_int_equal(sys_tree_delete_small(top, "tree", 2), -E2BIG);
    assert_int_equal(access("tree", F_OK), 0);
    assert_int_equal(sys_tree_delete_small(top, "tree", 4), 0);
    assert_int_equal(access("tree", F_OK), -1);
    leave_scratch(folder);
}

static void emptying_keeps_the_folder(void **state)
{
    char folder[SCRATCH_SIZE];
    AUTO(close) int top = enter_scratch(folder);

    (void) state;
    assert_int_equal(mkdir("a", 0700), 0);
    make_file("a/file");
    make_file("file");
    assert_int_equal(sys_tree_empty(top), 0);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(chdir("/"), 0);
}

/* Names so long and levels so many that no path could name the end. */
static void make_chain(int depth)
{
    AUTO(close) int at = open_folder(".");

    for (int i = 0; i < depth; i++) {
        int next;

        CHECK_EQUAL(mkdirat(at, "dddddddddd", 0700), 0);
        next = openat(at, "dddddddddd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK(next >= 0);
        if (i % 1000 == 0)
            CHECK_EQUAL(symlinkat("/", at, "l"), 0);
        (void) close(at);
        at = next;
    }
}

/* On a tmpfs: disks take milliseconds to free each directory. */
static void delete_a_deep_chain(void)
{
    AUTO(close) int top = -EBADF;
    int before;

    enter_private_mounts();
    top = open_folder(".");
    before = count_descriptors();
    make_chain((int) rounds_of(10000, 100000));
    CHECK_EQUAL(sys_tree_empty(top), 0);
    CHECK_EQUAL(count_descriptors(), before);
    CHECK_EQUAL(mkdir("dddddddddd", 0700), 0);
}

static void ten_thousand_levels_are_no_problem(void **state)
{
    (void) state;
    run_in_child(delete_a_deep_chain, NEEDS_MOUNTS);
}

static void wide_and_deep_together_are_deleted(void **state)
{
    char folder[SCRATCH_SIZE], name[16];
    AUTO(close) int top = enter_scratch(folder);

    (void) state;
    for (int i = 0; i < 8; i++) {
        (void) snprintf(name, sizeof(name), "wide%d", i);
        assert_int_equal(mkdir(name, 0700), 0);
        assert_int_equal(chdir(name), 0);
        make_chain(SYS_TREE_DEPTH_MAX * 2 + i);
        for (int j = 0; j < 50; j++) {
            (void) snprintf(name, sizeof(name), "f%d", j);
            make_file(name);
        }
        assert_int_equal(fchdir(top), 0);
    }
    assert_int_equal(sys_tree_empty(top), 0);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* As a user for whom modes count. */
static void delete_unreadable(void)
{
    char folder[] = "/tmp/burrow-test-XXXXXX";
    AUTO(close) int top = -EBADF;

    if (geteuid() == 0)
        CHECK_EQUAL(setgid(65534) + setuid(65534), 0);
    CHECK(mkdtemp(folder) != NULL);
    CHECK_EQUAL(chdir(folder), 0);
    top = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQUAL(mkdir("a", 0700), 0);
    CHECK_EQUAL(mkdir("a/b", 0700), 0);
    CHECK_EQUAL(mkdir("a/b/c", 0), 0);
    CHECK_EQUAL(mkdir("a/empty", 0), 0);
    CHECK_EQUAL(chmod("a/b", 0), 0);
    CHECK_EQUAL(chmod("a", 0), 0);
    CHECK_EQUAL(sys_tree_delete(top, "a"), 0);
    CHECK_EQUAL(rmdir(folder), 0);
}

static void directories_of_mode_zero_are_deleted(void **state)
{
    (void) state;
    run_in_child(delete_unreadable, "");
}

static void delete_read_only(void)
{
    char folder[] = "/tmp/burrow-test-XXXXXX";
    AUTO(close) int top = -EBADF;

    if (geteuid() == 0)
        CHECK_EQUAL(setgid(65534) + setuid(65534), 0);
    CHECK(mkdtemp(folder) != NULL);
    CHECK_EQUAL(chdir(folder), 0);
    top = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQUAL(mkdir("a", 0700), 0);
    CHECK_EQUAL(mkdir("a/b", 0700), 0);
    CHECK_EQUAL(mkdir("a/b/empty", 0500), 0);
    CHECK_EQUAL(symlink("/", "a/b/link"), 0);
    CHECK_EQUAL(chmod("a/b", 0555), 0);
    CHECK_EQUAL(chmod("a", 0400), 0);
    CHECK_EQUAL(sys_tree_delete(top, "a"), 0);
    CHECK_EQUAL(rmdir(folder), 0);
}

static void directories_that_are_read_only_are_deleted(void **state)
{
    (void) state;
    run_in_child(delete_read_only, "");
}

/* A mount inside cannot be removed: the error is told, and what is mounted survives. */
static void meet_a_mount(void)
{
    AUTO(close) int top = -EBADF;

    enter_private_mounts();
    CHECK_EQUAL(mkdir("tree", 0700), 0);
    CHECK_EQUAL(mkdir("tree/mounted", 0700), 0);
    CHECK_EQUAL(mkdir("tree/other", 0700), 0);
    CHECK_EQUAL(sys_mount_path_bind("/proc", "tree/mounted", 0, false), 0);
    top = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQUAL(sys_tree_delete(top, "tree"), -EBUSY);
    CHECK_EQUAL(access("tree/mounted/self", F_OK), 0);
}

static void what_cannot_be_removed_is_told(void **state)
{
    (void) state;
    run_in_child(meet_a_mount, NEEDS_MOUNTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_are_removed_and_never_followed),
        cmocka_unit_test(only_a_name_is_accepted),
        cmocka_unit_test(a_tree_with_too_much_in_it_is_left),
        cmocka_unit_test(emptying_keeps_the_folder),
        cmocka_unit_test(ten_thousand_levels_are_no_problem),
        cmocka_unit_test(wide_and_deep_together_are_deleted),
        cmocka_unit_test(directories_of_mode_zero_are_deleted),
        cmocka_unit_test(directories_that_are_read_only_are_deleted),
        cmocka_unit_test(what_cannot_be_removed_is_told),
    };

    return cmocka_run_group_tests_name("sys_tree", tests, NULL, NULL);
}
