#include "keeper/tree/tree_measure.h"
#include "keeper/tree/tree_test_kit.h"

static void check_says(const char *said, const char *words)
{
    if (strstr(said, words))
        return;
    print_error("'%s' is not in: %s\n", words, said);
    fail();
}

static void every_file_counts_once_whatever_its_names(void **state)
{
    AUTO(close) int top = -EBADF, folder = -EBADF;
    AUTO(free) char *said = NULL;
    struct error err = ERROR_INIT;
    char path[SCRATCH_SIZE];

    (void) state;
    make_scratch(path);
    top = open_place(AT_FDCWD, path);
    folder = make_place(top, "folder");
    make_content(top, "one", "12345");
    make_content(top, "several", "1234567");
    assert_int_equal(linkat(top, "several", folder, "again", 0), 0);
    assert_int_equal(linkat(top, "several", folder, "and again", 0), 0);
    assert_int_equal(symlinkat("abc", top, "link"), 0);
    assert_int_equal(linkat(top, "link", folder, "link", 0), 0);
    assert_int_equal(mknodat(top, "fifo", S_IFIFO | 0600, 0), 0);
    said = SAID(tree_measure(top, output, &err));
    assert_int_equal(said_result, 0);
    check_says(said, "{\"files\":2,\"folders\":2,\"links\":1,\"others\":1,\"bytes\":15,");
    check_says(said, "\"names\":9}\n");
    remove_scratch(path);
}

/* Files may claim to be longer than the sum of all can be. */
static void measure_giants(void)
{
    AUTO(close) int top = -EBADF;
    AUTO(free) char *said = NULL;
    struct error err = ERROR_INIT;

    enter_private_mounts();
    CHECK_EQUAL(mkdir("tree", 0700), 0);
    top = open_place(AT_FDCWD, "tree");
    for (int i = 0; i < 3; i++) {
        char name[TREE_NAME_MAX];
        int fd;

        (void) snprintf(name, sizeof(name), "giant%d", i);
        fd = openat(top, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        CHECK_EQUAL(ftruncate(fd, INT64_MAX - 4095), 0);
        (void) close(fd);
    }
    said = SAID(tree_measure(top, output, &err));
    CHECK_EQUAL(said_result, 0);
    CHECK(strstr(said, "\"files\":3,") != NULL);
    CHECK(strstr(said, "\"bytes\":9223372036854775807,\"allocated\":0,") != NULL);
}

static void sums_stop_where_numbers_end(void **state)
{
    (void) state;
    run_in_child(measure_giants, NEEDS_MOUNTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_file_counts_once_whatever_its_names),
        cmocka_unit_test(sums_stop_where_numbers_end),
    };

    return cmocka_run_group_tests_name("tree_measure", tests, NULL, NULL);
}
