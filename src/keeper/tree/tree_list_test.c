#include <signal.h>

#include "json/json_read.h"
#include "keeper/tree/tree_list.h"
#include "keeper/tree/tree_test_kit.h"

static void set_time(int folder, const char *name)
{
    struct timespec times[] = {{5, 6}, {1700000000, 123456789}};

    assert_int_equal(utimensat(folder, name, times, AT_SYMLINK_NOFOLLOW), 0);
}

static void check_line(const char *said, const char *line)
{
    if (strstr(said, line))
        return;
    print_error("not there: %s\nbut: %s\n", line, said);
    fail();
}

static void each_entry_is_one_line(void **state)
{
    AUTO(close) int top = -EBADF;
    AUTO(free) char *said = NULL;
    struct error err = ERROR_INIT;
    char path[SCRATCH_SIZE], expected[512];
    int uid = (int) geteuid(), gid = (int) getegid();

    (void) state;
    make_scratch(path);
    top = open_place(AT_FDCWD, path);
    make_content(top, "new\nline\xff", "12345");
    assert_int_equal(fchmodat(top, "new\nline\xff", 04751, 0), 0);
    set_time(top, "new\nline\xff");
    assert_int_equal(symlinkat("/to\\\xfe", top, "link"), 0);
    set_time(top, "link");
    assert_int_equal(mknodat(top, "white", S_IFCHR, 0), 0);
    said = SAID(tree_list(top, output, &err));
    assert_int_equal(said_result, 0);
    (void) snprintf(expected, sizeof(expected),
                    "{\"path\":\"new\\nline\\\\xff\",\"type\":\"file\",\"mode\":\"4751\","
                    "\"uid\":%d,\"gid\":%d,\"size\":5,\"links\":1,\"mtime\":1700000000,"
                    "\"mtime_ns\":123456789,\"attributes\":[",
                    uid, gid);
    check_line(said, expected);
    check_line(said, "{\"path\":\".\",\"type\":\"folder\",\"mode\":\"0700\"");
    check_line(said, "\"target\":\"/to\\\\\\\\\\\\xfe\"");
    check_line(said, "{\"path\":\"white\",\"type\":\"character\",\"mode\":\"0000\"");
    check_line(said, "\"device\":[0,0]");
    check_line(said, "\n{\"entries\":4}\n");
    remove_scratch(path);
}

static void attributes_are_named_in_order(void **state)
{
    AUTO(close) int top = -EBADF;
    AUTO(free) char *said = NULL;
    struct error err = ERROR_INIT;
    char path[SCRATCH_SIZE];

    (void) state;
    make_scratch(path);
    top = open_place(AT_FDCWD, path);
    make_content(top, "file", "");
    assert_int_equal(fchdir(top), 0);
    if (lsetxattr("file", "user.b", "1", 1, 0) < 0) {
        remove_scratch(path);
        skip_without("a temporary folder with extended attributes (tmpfs: Linux 6.6)");
    }
    assert_int_equal(lsetxattr("file", "user.a", "", 0, 0), 0);
    said = SAID(tree_list(top, output, &err));
    check_line(said, "\"user.a\",\"user.b\"");
    assert_int_equal(chdir("/"), 0);
    remove_scratch(path);
}

/* A chain of n folders has paths of n * n bytes in all: beyond a bound only names are told. */
static void list_a_deep_chain(void)
{
    AUTO(close) int top = -EBADF;
    AUTO(free) char *said = NULL;
    struct error err = ERROR_INIT;

    enter_private_mounts();
    CHECK_EQUAL(mkdir("tree", 0700), 0);
    top = open_place(AT_FDCWD, "tree");
    grow_chain(top, 20000);
    /* Room for the list, which the kit writes to /tmp. */
    CHECK_EQUAL(sys_mount_path_new("tmpfs", "tmpfs", "/tmp", 0, NULL), 0);
    said = SAID(tree_list(top, output, &err));
    CHECK_EQUAL(said_result, 0);
    CHECK(strstr(said, "\n{\"depth\":20000,\"name\":\"dddddddddd\",\"type\":\"folder\"") != NULL);
    CHECK(strstr(said, "\n{\"entries\":20001}\n") != NULL);
    CHECK(strlen(said) < 20001 * 200 + 400 * TREE_LIST_PATH_MAX);
}

static void deep_entries_are_told_by_depth_and_name(void **state)
{
    (void) state;
    run_in_child(list_a_deep_chain, NEEDS_MOUNTS);
}

/* Whatever is in it: every line is JSON. */
static void hostile_trees_make_valid_lines(void **state)
{
    AUTO(close) int top = -EBADF;
    AUTO(free) char *said = NULL;
    struct error err = ERROR_INIT;
    char path[SCRATCH_SIZE], *rest, *line;
    int lines = 0;

    (void) state;
    make_scratch(path);
    top = open_place(AT_FDCWD, path);
    grow_tree(top, 77, 400);
    rest = said = SAID(tree_list(top, output, &err));
    while ((line = strsep(&rest, "\n")) && *line) {
        AUTO(json) json_t *value = json_read(line, strlen(line), NULL, &err);

        assert_non_null(value);
        lines++;
    }
    assert_true(lines > 300);
    assert_int_equal(sys_tree_empty(top), 0);
    assert_int_equal(rmdir(path), 0);
}

static void ten_thousand_names_in_one_folder_come_in_order(void **state)
{
    AUTO(close) int top = -EBADF;
    AUTO(free) char *said = NULL;
    struct error err = ERROR_INIT;
    char path[SCRATCH_SIZE], name[TREE_NAME_MAX], expected[64], *at;
    size_t length;

    (void) state;
    make_scratch(path);
    top = open_place(AT_FDCWD, path);
    for (int i = 0; i < 10000; i++) {
        (void) snprintf(name, sizeof(name), "f%04d", i * 7919 % 10000);
        make_content(top, name, "");
    }
    at = said = SAID(tree_list(top, output, &err));
    length = strlen(said);
    for (int i = 0; i < 10000; i++) {
        (void) snprintf(expected, sizeof(expected), "\n{\"path\":\"f%04d\",", i);
        /* Not strstr: sanitizers measure all of the text each time. */
        at = memmem(at, length - (size_t) (at - said), expected, strlen(expected));
        assert_non_null(at);
    }
    assert_int_equal(sys_tree_empty(top), 0);
    assert_int_equal(rmdir(path), 0);
}

static void a_reader_that_is_gone_ends_the_list(void **state)
{
    AUTO(close) int top = -EBADF;
    AUTO(free) struct output *output = malloc(sizeof(*output));
    struct error err = ERROR_INIT;
    char path[SCRATCH_SIZE];
    int ends[2];

    (void) state;
    make_scratch(path);
    top = open_place(AT_FDCWD, path);
    grow_tree(top, 5, 1200);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    (void) close(ends[0]);
    output_init(output, ends[1]);
    assert_int_equal(tree_list(top, output, &err), -1);
    assert_int_equal(err.code, ERR_CANCELLED);
    (void) close(ends[1]);
    assert_int_equal(sys_tree_empty(top), 0);
    assert_int_equal(rmdir(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_entry_is_one_line),
        cmocka_unit_test(attributes_are_named_in_order),
        cmocka_unit_test(deep_entries_are_told_by_depth_and_name),
        cmocka_unit_test(hostile_trees_make_valid_lines),
        cmocka_unit_test(ten_thousand_names_in_one_folder_come_in_order),
        cmocka_unit_test(a_reader_that_is_gone_ends_the_list),
    };

    (void) signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests_name("tree_list", tests, NULL, NULL);
}
