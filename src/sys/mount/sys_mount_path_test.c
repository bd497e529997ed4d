#include <string.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include "base/fault.h"
#include "sys/mount/sys_mount_path.h"
#include "sys/sys_test.h"

/* Everything is run as the kernel is, without mount_setattr, and without the whole new API. */
static const unsigned int modes[] = {
    0,
    SYS_FEATURE_BIT(SYS_FEATURE_MOUNT_SETATTR),
    SYS_FEATURE_BIT(SYS_FEATURE_MOUNT_SETATTR) | SYS_FEATURE_BIT(SYS_FEATURE_MOUNT_API),
};

static int reset(void **state)
{
    (void) state;
    sys_feature_pretend(0);
    return 0;
}

static void run_in_every_mode(void (*body)(void))
{
    for (size_t i = 0; i < ARRAY_COUNT(modes); i++) {
        sys_feature_pretend(modes[i]);
        run_in_child(body, NEEDS_MOUNTS);
    }
}

#define ALL_FLAGS (ST_RDONLY | ST_NOSUID | ST_NODEV | ST_NOEXEC | ST_NOATIME)

static unsigned long flags_of(const char *path)
{
    struct statvfs status;

    CHECK_EQUAL(statvfs(path, &status), 0);
    return status.f_flag & ALL_FLAGS;
}

static void mount_with_options(void)
{
    static const struct sys_mount_option options[] = {
        {"size", "64k"}, {"mode", "0711"}, {"nr_inodes", "50"}, {0}};
    struct statfs filesystem;
    struct stat status;

    enter_private_mounts();
    CHECK_EQUAL(mkdir("a", 0700), 0);
    CHECK_EQUAL(
        sys_mount_path_new("tmpfs", "burrow", "a", MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID, options),
        0);
    CHECK_EQUAL(flags_of("a"), ST_NODEV | ST_NOSUID);
    CHECK_EQUAL(statfs("a", &filesystem), 0);
    CHECK_EQUAL((long long) filesystem.f_blocks * filesystem.f_bsize, 65536);
    CHECK_EQUAL(filesystem.f_files, 50);
    CHECK_EQUAL(stat("a", &status), 0);
    CHECK_EQUAL(status.st_mode & 07777, 0711);
    CHECK_EQUAL(sys_mount_path_new("tmpfs", "x", "a", MOUNT_ATTR_RDONLY, NULL), 0);
    CHECK_EQUAL(flags_of("a"), ST_RDONLY);
    CHECK_EQUAL(sys_mount_path_new("no-such", "x", "a", 0, NULL), -ENODEV);
    CHECK_EQUAL(sys_mount_path_new("tmpfs", "x", "none", 0, NULL), -ENOENT);
    CHECK_EQUAL(sys_mount_path_new("tmpfs", "x", "a", MOUNT_ATTR_IDMAP, NULL), -EINVAL);
}

static void a_filesystem_gets_its_options_and_attributes(void **state)
{
    (void) state;
    run_in_every_mode(mount_with_options);
}

static void bind_with_attributes(void)
{
    enter_private_mounts();
    CHECK_EQUAL(mkdir("source", 0700), 0);
    CHECK_EQUAL(mkdir("target", 0700), 0);
    CHECK_EQUAL(mkdir("source/in", 0700), 0);
    CHECK_EQUAL(sys_mount_path_bind("source", "target",
                                    MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOATIME,
                                    false),
                0);
    CHECK_EQUAL(access("target/in", F_OK), 0);
    CHECK_EQUAL(flags_of("target"), ST_RDONLY | ST_NOSUID | ST_NOATIME);
    CHECK_EQUAL(flags_of("source"), 0);
    CHECK_EQUAL(mkdir("target/x", 0700), -1);
    CHECK_EQUAL(errno, EROFS);
    CHECK_EQUAL(mkdir("source/x", 0700), 0);
    CHECK_EQUAL(sys_mount_path_bind("none", "target", 0, false), -ENOENT);
}

static void a_bind_mount_is_restricted_but_not_its_source(void **state)
{
    (void) state;
    run_in_every_mode(bind_with_attributes);
}

static void bind_tree(void)
{
    enter_private_mounts();
    CHECK_EQUAL(mkdir("source", 0700), 0);
    CHECK_EQUAL(mkdir("target", 0700), 0);
    CHECK_EQUAL(sys_mount_path_new("tmpfs", "outer", "source", 0, NULL), 0);
    CHECK_EQUAL(mkdir("source/inner", 0700), 0);
    CHECK_EQUAL(sys_mount_path_new("tmpfs", "inner", "source/inner", 0, NULL), 0);
    CHECK_EQUAL(mkdir("source/inner/x", 0700), 0);
    CHECK_EQUAL(sys_mount_path_bind("source", "target", 0, false), 0);
    CHECK_EQUAL(access("target/inner/x", F_OK), -1);
    CHECK_EQUAL(sys_mount_unmount("target", 0), 0);
    CHECK_EQUAL(sys_mount_path_bind("source", "target", 0, true), 0);
    CHECK_EQUAL(access("target/inner/x", F_OK), 0);
    CHECK_EQUAL(sys_mount_unmount("target", SYS_UNMOUNT_DETACH), 0);
    /* All or nothing: without mount_setattr no half-protected tree appears. */
    if (sys_feature_missing(SYS_FEATURE_MOUNT_SETATTR)) {
        CHECK_EQUAL(sys_mount_path_bind("source", "target", MOUNT_ATTR_RDONLY, true), -ENOSYS);
        CHECK_EQUAL(access("target/inner", F_OK), -1);
    } else {
        CHECK_EQUAL(sys_mount_path_bind("source", "target", MOUNT_ATTR_RDONLY, true), 0);
        CHECK_EQUAL(flags_of("target/inner"), ST_RDONLY);
    }
}

static void a_tree_is_bound_with_or_without_its_mounts(void **state)
{
    (void) state;
    run_in_every_mode(bind_tree);
}

static void restrict_more(void)
{
    enter_private_mounts();
    CHECK_EQUAL(mkdir("a", 0700), 0);
    CHECK_EQUAL(sys_mount_path_new("tmpfs", "x", "a", MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NODEV, NULL),
                0);
    CHECK_EQUAL(sys_mount_path_restrict("a", MOUNT_ATTR_RDONLY), 0);
    CHECK_EQUAL(flags_of("a"), ST_RDONLY | ST_NOEXEC | ST_NODEV);
    CHECK_EQUAL(sys_mount_path_restrict("a", MOUNT_ATTR_NOSUID), 0);
    CHECK_EQUAL(flags_of("a"), ST_RDONLY | ST_NOEXEC | ST_NODEV | ST_NOSUID);
    CHECK_EQUAL(mkdir("a/x", 0700), -1);
    CHECK_EQUAL(sys_mount_path_restrict("none", MOUNT_ATTR_RDONLY), -ENOENT);
    CHECK_EQUAL(mkdir("plain", 0700), 0);
    CHECK_EQUAL(sys_mount_path_restrict("plain", MOUNT_ATTR_RDONLY), -EINVAL);
}

static void restrictions_add_up(void **state)
{
    (void) state;
    run_in_every_mode(restrict_more);
}

/* The `shared:` and `master:` tags of the mount at `place` in /proc/self/mountinfo. */
static bool has_tag(const char *place, const char *tag)
{
    FILE *list = fopen("/proc/self/mountinfo", "re");
    char line[1024], path[64];
    bool found = false;

    if (!list)
        _exit(CHILD_UNABLE);
    (void) snprintf(path, sizeof(path), " %s ", place);
    while (fgets(line, sizeof(line), list)) {
        if (strstr(line, path) && strstr(line, tag))
            found = true;
    }
    (void) fclose(list);
    return found;
}

static void propagate(void)
{
    enter_private_mounts();
    CHECK_EQUAL(mkdir("a", 0700), 0);
    CHECK_EQUAL(sys_mount_path_new("tmpfs", "x", "a", 0, NULL), 0);
    CHECK_EQUAL(mkdir("a/b", 0700), 0);
    CHECK_EQUAL(sys_mount_path_new("tmpfs", "x", "a/b", 0, NULL), 0);
    CHECK_EQUAL(sys_mount_path_propagate("/tmp/a", MS_SHARED, true), 0);
    CHECK(has_tag("/tmp/a", " shared:"));
    CHECK(has_tag("/tmp/a/b", " shared:"));
    CHECK_EQUAL(sys_mount_path_propagate("/tmp/a", MS_PRIVATE, false), 0);
    CHECK(!has_tag("/tmp/a", " shared:"));
    CHECK(has_tag("/tmp/a/b", " shared:"));
    CHECK_EQUAL(sys_mount_path_propagate("/tmp/a", MS_PRIVATE, true), 0);
    CHECK(!has_tag("/tmp/a/b", " shared:"));
}

static void propagation_is_set_for_one_or_all(void **state)
{
    (void) state;
    run_in_every_mode(propagate);
}

/* What is mounted beneath a copy stays there, although everybody shares the original. */
static void copy_shared(void)
{
    enter_private_mounts();
    CHECK_EQUAL(mkdir("a", 0700) + mkdir("copy", 0700) + mkdir("tree", 0700), 0);
    CHECK_EQUAL(sys_mount_path_new("tmpfs", "x", "a", 0, NULL), 0);
    CHECK_EQUAL(mkdir("a/b", 0700) + mkdir("a/c", 0700), 0);
    CHECK_EQUAL(sys_mount_path_new("tmpfs", "x", "a/c", 0, NULL), 0);
    CHECK_EQUAL(sys_mount_path_propagate("/tmp/a", MS_SHARED, true), 0);
    CHECK_EQUAL(sys_mount_path_bind("a", "copy", MOUNT_ATTR_NODEV, false), 0);
    CHECK_EQUAL(sys_mount_path_bind("a", "tree", 0, true), 0);
    CHECK(!has_tag("/tmp/copy", "shared:") && !has_tag("/tmp/copy", "master:"));
    CHECK(!has_tag("/tmp/tree", "shared:") && !has_tag("/tmp/tree/c", "shared:"));
    CHECK_EQUAL(sys_mount_path_new("tmpfs", "from-copy", "copy/b", 0, NULL), 0);
    CHECK(!has_tag("/tmp/a/b", "from-copy"));
}

static void a_copy_is_in_no_group_of_its_original(void **state)
{
    (void) state;
    run_in_every_mode(copy_shared);
}

static void copy_in_group(void)
{
    AUTO(close) int copy = -EBADF;

    enter_private_mounts();
    CHECK_EQUAL(mkdir("a", 0700) + mkdir("copy", 0700), 0);
    CHECK_EQUAL(sys_mount_path_new("tmpfs", "x", "a", 0, NULL), 0);
    CHECK_EQUAL(mkdir("a/b", 0700), 0);
    CHECK_EQUAL(sys_mount_path_propagate("/tmp/a", MS_SHARED, true), 0);
    copy = sys_mount_copy_in_group(AT_FDCWD, "a", false);
    CHECK_EQUAL(sys_mount_attach(copy, AT_FDCWD, "copy"), 0);
    CHECK_EQUAL(sys_mount_path_new("tmpfs", "from-copy", "copy/b", 0, NULL), 0);
    CHECK(has_tag("/tmp/a/b", "from-copy"));
}

/* So the test above would fail without what sys_mount_copy does. */
static void a_copy_as_the_kernel_makes_it_reaches_the_original(void **state)
{
    (void) state;
    run_in_child(copy_in_group, NEEDS_MOUNTS);
}

/* One byte to the other end, and one from there. */
static void take_turns(int to, int from)
{
    char byte = 'x';

    CHECK_EQUAL(write(to, &byte, 1), 1);
    CHECK_EQUAL(read(from, &byte, 1), 1);
}

static void be_separate(int to, int from)
{
    CHECK_EQUAL(sys_mount_path_separate(), 0);
    CHECK_EQUAL(sys_mount_path_new("tmpfs", "ours", "a/b", 0, NULL), 0);
    take_turns(to, from);
    CHECK(has_tag("/tmp/a/c", "theirs"));
    CHECK(!has_tag("/tmp/a", "shared:"));
    _exit(0);
}

static void separate(void)
{
    int down[2], up[2], status;
    char byte;
    pid_t pid;

    enter_private_mounts();
    CHECK_EQUAL(mkdir("a", 0700), 0);
    CHECK_EQUAL(sys_mount_path_new("tmpfs", "x", "a", 0, NULL), 0);
    CHECK_EQUAL(mkdir("a/b", 0700) + mkdir("a/c", 0700), 0);
    CHECK_EQUAL(sys_mount_path_propagate("/", MS_SHARED, true), 0);
    CHECK_EQUAL(pipe(down) + pipe(up), 0);
    pid = fork();
    if (pid == 0)
        be_separate(up[1], down[0]);
    CHECK_EQUAL(read(up[0], &byte, 1), 1);
    CHECK(!has_tag("/tmp/a/b", "ours"));
    CHECK_EQUAL(sys_mount_path_new("tmpfs", "theirs", "a/c", 0, NULL), 0);
    CHECK_EQUAL(write(down[1], &byte, 1), 1);
    CHECK_EQUAL(waitpid(pid, &status, 0), pid);
    CHECK_EQUAL(status, 0);
}

static void who_is_separate_sees_the_hosts_mounts_and_shows_none(void **state)
{
    (void) state;
    run_in_every_mode(separate);
}

static void fall_back_fully(void)
{
    static const struct sys_mount_option comma[] = {{"size", "1M,mode=0777"}, {0}};
    static const struct sys_mount_option sneaky[] = {{"mode=0777,size", "1M"}, {0}};

    enter_private_mounts();
    CHECK_EQUAL(mkdir("a", 0700), 0);
    CHECK_EQUAL(sys_mount_path_new("tmpfs", "x", "a", 0, comma), -EINVAL);
    CHECK_EQUAL(sys_mount_path_new("tmpfs", "x", "a", 0, sneaky), -EINVAL);
    /* A bind of which a later step fails is taken away again: the calls are open_tree, mount, and
     * mount for making it private and for what it may not do. */
    CHECK_EQUAL(mkdir("source", 0700), 0);
    CHECK_EQUAL(mkdir("source/in", 0700), 0);
    for (unsigned int call = 3; call <= 4; call++) {
        fault_arm(FAULT_SYSTEM_CALL, call, EPERM);
        CHECK_EQUAL(sys_mount_path_bind("source", "a", MOUNT_ATTR_RDONLY, false), -EPERM);
        CHECK(fault_disarm(FAULT_SYSTEM_CALL));
        CHECK_EQUAL(access("a/in", F_OK), -1);
    }
}

static void the_fallback_never_leaves_something_weaker(void **state)
{
    (void) state;
    sys_feature_pretend(modes[2]);
    run_in_child(fall_back_fully, NEEDS_MOUNTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_filesystem_gets_its_options_and_attributes, reset),
        cmocka_unit_test_teardown(a_bind_mount_is_restricted_but_not_its_source, reset),
        cmocka_unit_test_teardown(a_tree_is_bound_with_or_without_its_mounts, reset),
        cmocka_unit_test_teardown(restrictions_add_up, reset),
        cmocka_unit_test_teardown(propagation_is_set_for_one_or_all, reset),
        cmocka_unit_test_teardown(a_copy_is_in_no_group_of_its_original, reset),
        cmocka_unit_test_teardown(a_copy_as_the_kernel_makes_it_reaches_the_original, reset),
        cmocka_unit_test_teardown(who_is_separate_sees_the_hosts_mounts_and_shows_none, reset),
        cmocka_unit_test_teardown(the_fallback_never_leaves_something_weaker, reset),
    };

    return cmocka_run_group_tests_name("sys_mount_path", tests, NULL, NULL);
}
