#include "keeper/layer/layer_test_kit.h"
#include "keeper/tree/tree_diff.h"

static char *say_diff(int newer, int older)
{
    struct error err = ERROR_INIT;
    char *said = SAID(tree_diff(TREE_OF(newer), TREE_OF(older), output, &err));

    if (said_result < 0)
        print_error("%s\n", err.message);
    assert_int_equal(said_result, 0);
    return said;
}

static void check_diff(int newer, int older, const char *expected)
{
    AUTO(free) char *said = say_diff(newer, older);

    assert_string_equal(said, expected);
}

static void set_mark(int folder, const char *name, const char *attribute)
{
    assert_int_equal(fchdir(folder), 0);
    assert_int_equal(lsetxattr(name, attribute, "y", 1, 0), 0);
}

static void equal_trees_have_no_differences(void **state)
{
    struct place_set set;

    (void) state;
    place_set_init(&set);
    grow_tree(set.copied, 3, 150);
    copy_tree(set.copied, set.older);
    copy_tree(set.older, set.newer);
    check_diff(set.newer, set.older, "{\"diff\":{\"added\":0,\"changed\":0,\"removed\":0}}\n");
    place_set_done(&set);
}

static void added_and_removed_folders_are_told_with_all_that_is_in_them(void **state)
{
    AUTO(close) int folder = -EBADF;
    struct place_set set;

    (void) state;
    place_set_init(&set);
    make_content(set.older, "same", "");
    copy_tree(set.older, set.newer);
    folder = make_place(set.newer, "folder");
    make_content(folder, "a\nb", "");
    make_content(folder, "\xff", "");
    make_content(set.newer, "last", "");
    check_diff(set.newer, set.older,
               "{\"added\":\"folder\"}\n{\"added\":\"folder/a\\nb\"}\n"
               "{\"added\":\"folder/\\\\xff\"}\n{\"added\":\"last\"}\n"
               "{\"diff\":{\"added\":4,\"changed\":0,\"removed\":0}}\n");
    check_diff(set.older, set.newer,
               "{\"removed\":\"folder\"}\n{\"removed\":\"folder/a\\nb\"}\n"
               "{\"removed\":\"folder/\\\\xff\"}\n{\"removed\":\"last\"}\n"
               "{\"diff\":{\"added\":0,\"changed\":0,\"removed\":4}}\n");
    place_set_done(&set);
}

static void set_time(int folder, const char *name, time_t seconds)
{
    struct timespec times[] = {{seconds, 0}, {seconds, 0}};

    assert_int_equal(utimensat(folder, name, times, AT_SYMLINK_NOFOLLOW), 0);
}

static void a_change_says_what_changed(void **state)
{
    struct place_set set;

    (void) state;
    place_set_init(&set);
    for (int i = 0; i < 2; i++) {
        int folder = i ? set.newer : set.older;

        make_content(folder, "content", i ? "two" : "one");
        make_content(folder, "mode", "");
        assert_int_equal(fchmodat(folder, "mode", i ? 0644 : 0600, 0), 0);
        make_content(folder, "time", "");
        make_content(folder, "xattrs", "");
        set_mark(folder, "xattrs", i ? "user.a" : "user.b");
        make_content(folder, "marks", "");
        set_mark(folder, "marks", i ? "user.overlay.impure" : "user.overlay.uuid");
        assert_int_equal(symlinkat(i ? "there" : "here", folder, "target"), 0);
        assert_int_equal(mkdirat(folder, "opaque", 0700), 0);
        assert_int_equal(i ? mkdirat(folder, "type", 0700) : symlinkat("x", folder, "type"), 0);
        for (const char *const *name =
                 (const char *const[]){"content", "mode", "xattrs", "marks", "target", NULL};
             *name; name++)
            set_time(folder, *name, 1000);
        set_time(folder, "time", 2000 + i);
        set_time(folder, "opaque", 3000 + i);
    }
    set_mark(set.newer, "opaque", "user.overlay.opaque");
    check_diff(set.newer, set.older,
               "{\"changed\":\"content\",\"what\":[\"content\"]}\n"
               "{\"changed\":\"mode\",\"what\":[\"mode\"]}\n"
               "{\"changed\":\"opaque\",\"what\":[\"opaque\"]}\n"
               "{\"changed\":\"target\",\"what\":[\"target\"]}\n"
               "{\"changed\":\"time\",\"what\":[\"time\"]}\n"
               "{\"changed\":\"type\",\"what\":[\"type\"]}\n"
               "{\"changed\":\"xattrs\",\"what\":[\"xattrs\"]}\n"
               "{\"diff\":{\"added\":0,\"changed\":7,\"removed\":0}}\n");
    place_set_done(&set);
}

static void a_whiteout_removes_and_its_end_adds(void **state)
{
    AUTO(close) int folder = -EBADF;
    struct place_set set;

    (void) state;
    place_set_init(&set);
    assert_int_equal(mknodat(set.newer, "a", S_IFCHR, 0), 0);
    assert_int_equal(mknodat(set.newer, "b", S_IFCHR, 0), 0);
    make_content(set.older, "b", "1");
    assert_int_equal(mknodat(set.older, "c", S_IFCHR, 0), 0);
    assert_int_equal(mknodat(set.newer, "c", S_IFCHR, 0), 0);
    make_content(set.newer, "d", "");
    set_mark(set.newer, "d", "user.overlay.whiteout");
    folder = make_place(set.older, "e");
    make_content(folder, "f", "");
    assert_int_equal(mknodat(folder, "g", S_IFCHR, 0), 0);
    assert_int_equal(mknodat(set.newer, "e", S_IFCHR, 0), 0);
    check_diff(
        set.newer, set.older,
        "{\"removed\":\"a\"}\n{\"removed\":\"b\"}\n{\"removed\":\"d\"}\n{\"removed\":\"e\"}\n"
        "{\"removed\":\"e/f\"}\n{\"diff\":{\"added\":0,\"changed\":0,\"removed\":5}}\n");
    check_diff(set.older, set.newer,
               "{\"added\":\"a\"}\n{\"added\":\"b\"}\n{\"added\":\"d\"}\n{\"added\":\"e\"}\n"
               "{\"added\":\"e/f\"}\n{\"diff\":{\"added\":5,\"changed\":0,\"removed\":0}}\n");
    place_set_done(&set);
}

static void copies_of_the_image_are_changes(void **state)
{
    AUTO(close) int folder = -EBADF, inner = -EBADF;
    struct place_set set;

    (void) state;
    place_set_init(&set);
    folder = make_place(set.newer, "etc");
    set_mark(set.newer, "etc", "user.overlay.origin");
    inner = make_place(folder, "a");
    make_content(inner, "moved", "");
    set_mark(inner, "moved", "user.overlay.origin");
    make_content(folder, "new", "");
    make_content(folder, "passwd", "");
    set_mark(folder, "passwd", "user.overlay.origin");
    assert_int_equal(mknodat(folder, "shadow", S_IFCHR, 0), 0);
    check_diff(set.newer, set.older,
               "{\"changed\":\"etc\",\"what\":[\"image\"]}\n{\"added\":\"etc/a\"}\n"
               "{\"added\":\"etc/a/moved\"}\n{\"added\":\"etc/new\"}\n"
               "{\"changed\":\"etc/passwd\",\"what\":[\"image\"]}\n{\"removed\":\"etc/shadow\"}\n"
               "{\"diff\":{\"added\":3,\"changed\":2,\"removed\":1}}\n");
    place_set_done(&set);
}

/* What a real overlay leaves. */
static void change_an_overlay(void)
{
    AUTO(free) char *said = NULL;
    AUTO(close) int newer = -EBADF, older = -EBADF, merged = -EBADF;
    struct error err = ERROR_INIT;

    enter_private_mounts();
    CHECK_EQUAL(mkdir("l", 0755) + mkdir("u", 0755) + mkdir("w", 0755) + mkdir("m", 0755) +
                    mkdir("o", 0755) + mkdir("l/etc", 0755),
                0);
    CHECK_EQUAL(sys_file_replace(AT_FDCWD, "l/etc/a", "1", 1, 0644), 0);
    CHECK_EQUAL(sys_file_replace(AT_FDCWD, "l/etc/b", "1", 1, 0644), 0);
    if (syscall(SYS_mount, "overlay", "m", "overlay", 0,
                "lowerdir=l,upperdir=u,workdir=w,userxattr") < 0)
        _exit(CHILD_UNABLE);
    CHECK_EQUAL(chmod("m/etc/a", 0600), 0);
    CHECK_EQUAL(unlink("m/etc/b"), 0);
    merged = open_place(AT_FDCWD, "m/etc");
    make_content(merged, "c", "1");
    newer = open_place(AT_FDCWD, "u");
    older = open_place(AT_FDCWD, "o");
    said = SAID(tree_diff(TREE_OF(newer), TREE_OF(older), output, &err));
    CHECK_EQUAL(said_result, 0);
    CHECK(strcmp(said, "{\"changed\":\"etc\",\"what\":[\"image\"]}\n"
                       "{\"changed\":\"etc/a\",\"what\":[\"image\"]}\n{\"removed\":\"etc/b\"}\n"
                       "{\"added\":\"etc/c\"}\n"
                       "{\"diff\":{\"added\":1,\"changed\":2,\"removed\":1}}\n") == 0);
}

static void an_overlay_is_told_as_people_see_it(void **state)
{
    (void) state;
    run_in_child(change_an_overlay, "overlay mounts with attributes (root)");
}

/* What was told leads from one list of paths to the other. */
static void check_counts(int newer, int older, uint64_t seed)
{
    AUTO(free) char *said = say_diff(newer, older), *back = say_diff(older, newer);
    struct paths left, right;
    int difference = 0;
    char *rest = said, *line;

    paths_read(&left, newer);
    paths_read(&right, older);
    while ((line = strsep(&rest, "\n")) && *line) {
        difference += strncmp(line, "{\"added\"", 8) == 0;
        difference -= strncmp(line, "{\"removed\"", 10) == 0;
    }
    if ((int) left.count - (int) right.count != difference)
        print_error("seed %d\n", (int) seed);
    assert_int_equal((int) left.count - (int) right.count, difference);
    assert_int_equal(strlen(said) > 0, strlen(back) > 0);
    paths_done(&left);
    paths_done(&right);
}

/* Without whiteouts and marks, so that a path is a file. */
static void strip(int top)
{
    struct paths paths;

    paths_read(&paths, top);
    for (size_t i = 0; i < paths.count; i++) {
        struct stat status;

        assert_int_equal(fchdir(top), 0);
        (void) lremovexattr(paths.items[i], "user.overlay.opaque");
        if (fstatat(top, paths.items[i], &status, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISCHR(status.st_mode))
            assert_int_equal(unlinkat(top, paths.items[i], 0), 0);
    }
    paths_done(&paths);
}

static void counts_lead_from_one_tree_to_the_other(void **state)
{
    (void) state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct place_set set;

        place_set_init(&set);
        grow_tree(set.older, seed, 60);
        strip(set.older);
        copy_tree(set.older, set.newer);
        change_tree(set.newer, seed, 15);
        strip(set.newer);
        check_counts(set.newer, set.older, seed);
        place_set_done(&set);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_trees_have_no_differences),
        cmocka_unit_test(added_and_removed_folders_are_told_with_all_that_is_in_them),
        cmocka_unit_test(a_change_says_what_changed),
        cmocka_unit_test(a_whiteout_removes_and_its_end_adds),
        cmocka_unit_test(copies_of_the_image_are_changes),
        cmocka_unit_test(an_overlay_is_told_as_people_see_it),
        cmocka_unit_test(counts_lead_from_one_tree_to_the_other),
    };

    return cmocka_run_group_tests_name("tree_diff", tests, NULL, NULL);
}
