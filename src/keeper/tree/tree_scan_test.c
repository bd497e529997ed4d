#include "base/encoding/encode.h"
#include "base/encoding/sha256.h"
#include "json/name_escape.h"
#include "keeper/layer/layer_test_kit.h"
#include "keeper/tree/tree_scan.h"

static int make_options(const char *text)
{
    int fd = make_memory();

    assert_int_equal(sys_file_write_full(fd, text, strlen(text)), 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static char *say_scan(int view, const char *options, struct error *err)
{
    AUTO(close) int input = make_options(options);

    return SAID(tree_scan(view, input, output, err));
}

static void check_scan(int view, const char *options, const char *expected)
{
    struct error err = ERROR_INIT;
    AUTO(free) char *said = say_scan(view, options, &err);

    if (said_result < 0)
        print_error("%s\n", err.message);
    assert_int_equal(said_result, 0);
    assert_string_equal(said, expected);
}

static void check_refused(int view, const char *options, enum err_code code)
{
    struct error err = ERROR_INIT;
    AUTO(free) char *said = say_scan(view, options, &err);

    assert_null(strstr(said, "\"scanned\""));
    assert_int_equal(said_result, -1);
    if (err.code != code)
        print_error("%s: %s\n", options, err.message);
    assert_int_equal(err.code, code);
}

static void set_status(int folder, const char *name, mode_t mode)
{
    struct timespec times[] = {{1000, 0}, {1700000000, 5}};

    if (mode)
        assert_int_equal(fchmodat(folder, name, mode, 0), 0);
    assert_int_equal(utimensat(folder, name, times, AT_SYMLINK_NOFOLLOW), 0);
}

static void every_entry_is_told_with_its_sum(void **state)
{
    AUTO(close) int folder = -EBADF, inner = -EBADF;
    struct place_set set;

    (void) state;
    place_set_init(&set);
    folder = make_place(set.newer, "work");
    inner = make_place(folder, "src");
    make_content(inner, "a\xff", "abc");
    make_content(inner, "empty", "");
    assert_int_equal(symlinkat("src", folder, "now"), 0);
    assert_int_equal(mknodat(folder, "fifo", S_IFIFO | 0600, 0), 0);
    set_status(inner, "a\xff", 0644);
    set_status(inner, "empty", 0600);
    set_status(folder, "now", 0);
    set_status(folder, "fifo", 0600);
    set_status(folder, "src", 0700);
    set_status(set.newer, "work", 0755);
#define TIME "\"mtime\":1700000000,\"mtime_ns\":5"
    check_scan(set.newer, "{\"folder\":\"/work\"}",
               "{\"path\":\".\",\"type\":\"folder\",\"mode\":\"0755\"," TIME "}\n"
               "{\"path\":\"fifo\",\"type\":\"fifo\",\"mode\":\"0600\"," TIME "}\n"
               "{\"path\":\"now\",\"type\":\"link\",\"mode\":\"0777\"," TIME
               ",\"target\":\"src\"}\n"
               "{\"path\":\"src\",\"type\":\"folder\",\"mode\":\"0700\"," TIME "}\n"
               "{\"path\":\"src/a\\\\xff\",\"type\":\"file\",\"mode\":\"0644\"," TIME ",\"size\":3,"
               "\"sha256\":\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"}\n"
               "{\"path\":\"src/empty\",\"type\":\"file\",\"mode\":\"0600\"," TIME ",\"size\":0,"
               "\"sha256\":\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"}\n"
               "{\"scanned\":{\"files\":2,\"folders\":2,\"links\":1,\"others\":1,\"bytes\":3,"
               "\"skipped\":0,\"too_long\":0}}\n");
#undef TIME
    place_set_done(&set);
}

static void excludes_are_whole_names_and_counted(void **state)
{
    struct error err = ERROR_INIT;
    AUTO(free) char *said = NULL;
    AUTO(close) int modules = -EBADF, deeper = -EBADF, inner = -EBADF;
    struct place_set set;

    (void) state;
    place_set_init(&set);
    modules = make_place(set.newer, "node_modules");
    make_content(modules, "a", "1");
    deeper = make_place(set.newer, "deeper");
    inner = make_place(deeper, "node_modules");
    make_content(inner, "b", "1");
    make_content(deeper, "node_modules2", "1");
    make_content(deeper, ".c\\", "1");
    said = say_scan(set.newer, "{\"folder\":\"/\",\"excludes\":[\"node_modules\",\".c\\\\\\\\\"]}",
                    &err);
    assert_int_equal(said_result, 0);
    assert_non_null(strstr(said, "\"path\":\"deeper/node_modules2\""));
    assert_null(strstr(said, "node_modules\""));
    assert_null(strstr(said, "/a\""));
    assert_null(strstr(said, "/b\""));
    assert_non_null(strstr(said, "{\"scanned\":{\"files\":1,\"folders\":2,\"links\":0,\"others\":0,"
                                 "\"bytes\":1,\"skipped\":3,\"too_long\":0}}"));
    place_set_done(&set);
}

static void limits_fail_with_a_code_of_their_own(void **state)
{
    struct place_set set;

    (void) state;
    place_set_init(&set);
    make_content(set.newer, "a", "12345");
    check_refused(set.newer, "{\"folder\":\"/\",\"limitFiles\":1}", ERR_TOO_LARGE);
    check_refused(set.newer, "{\"folder\":\"/\",\"limitBytes\":4}", ERR_TOO_LARGE);
    place_set_done(&set);
}

static void bad_options_are_refused(void **state)
{
    struct place_set set;

    (void) state;
    place_set_init(&set);
    make_content(set.newer, "file", "");
    assert_int_equal(symlinkat("../../../../../../../tmp", set.newer, "out"), 0);
    check_refused(set.newer, "", ERR_INVALID);
    check_refused(set.newer, "{}", ERR_INVALID);
    check_refused(set.newer, "{\"folder\":\"\"}", ERR_INVALID);
    check_refused(set.newer, "{\"folder\":\"relative\"}", ERR_INVALID);
    check_refused(set.newer, "{\"folder\":\"/\\\\x\"}", ERR_INVALID);
    check_refused(set.newer, "{\"folder\":\"/file\"}", ERR_INVALID);
    check_refused(set.newer, "{\"folder\":\"/absent\"}", ERR_NOT_FOUND);
    check_refused(set.newer, "{\"folder\":\"/out\"}", ERR_NOT_FOUND); /* inside there is no /tmp */
    check_refused(set.newer, "{\"folder\":\"/\",\"excludes\":[1]}", ERR_INVALID);
    check_refused(set.newer, "{\"folder\":\"/\",\"excludes\":[\"\"]}", ERR_INVALID);
    check_refused(set.newer, "{\"folder\":\"/\",\"limitFiles\":-1}", ERR_INVALID);
    check_refused(set.newer, "{\"folder\":\"/\",\"what\":1}", ERR_INVALID);
    place_set_done(&set);
}

static void a_link_to_the_folder_is_followed_inside(void **state)
{
    struct error err = ERROR_INIT;
    AUTO(free) char *said = NULL;
    AUTO(close) int folder = -EBADF;
    struct place_set set;

    (void) state;
    place_set_init(&set);
    folder = make_place(set.newer, "data");
    make_content(folder, "here", "");
    assert_int_equal(symlinkat("/data", set.newer, "workspace"), 0);
    said = say_scan(set.newer, "{\"folder\":\"/workspace\"}", &err);
    assert_int_equal(said_result, 0);
    assert_non_null(strstr(said, "\"path\":\"here\""));
    place_set_done(&set);
}

static void paths_that_are_too_long_are_counted(void **state)
{
    struct error err = ERROR_INIT;
    AUTO(free) char *said = NULL;
    struct place_set set;

    (void) state;
    place_set_init(&set);
    grow_chain(set.newer, 1000);
    said = say_scan(set.newer, "{\"folder\":\"/\"}", &err);
    assert_int_equal(said_result, 0);
    assert_non_null(strstr(said, "\"folders\":373,"));
    assert_non_null(strstr(said, "\"too_long\":1}"));
    place_set_done(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_entry_is_told_with_its_sum),
        cmocka_unit_test(excludes_are_whole_names_and_counted),
        cmocka_unit_test(limits_fail_with_a_code_of_their_own),
        cmocka_unit_test(bad_options_are_refused),
        cmocka_unit_test(a_link_to_the_folder_is_followed_inside),
        cmocka_unit_test(paths_that_are_too_long_are_counted),
    };

    return cmocka_run_group_tests_name("tree_scan", tests, NULL, NULL);
}
