#include "base/rounds_testing.h"
#include "keeper/tree/tree_copy.h"
#include "keeper/tree/tree_copy_test_kit.h"

static void copies_of_hostile_trees_are_the_same(void **state)
{
    uint64_t first = rounds_seed(1);

    (void) state;
    for (uint64_t seed = first; seed < first + rounds_of(4, 12); seed++) {
        AUTO(text) struct text source = TEXT_INIT(SAID_MAX), target = TEXT_INIT(SAID_MAX);
        AUTO(free) char *said = NULL;
        struct error err = ERROR_INIT;
        struct pair pair;

        pair_init(&pair);
        grow_tree(pair.source, seed, 250);
        said = SAID(tree_copy(TREE_OF(pair.source), pair.target, output, &err));
        if (said_result < 0)
            print_error("seed %d: %s\n", (int) seed, err.message);
        assert_int_equal(said_result, 0);
        list_copied(pair.source, &source);
        list_copied(pair.target, &target);
        assert_true(source.length > 10000);
        assert_string_equal(text_string(&source), text_string(&target));
        check_same_content(&pair);
        pair_done(&pair);
    }
}

static void the_report_counts_exactly(void **state)
{
    AUTO(free) char *said = NULL;
    AUTO(close) int folder = -EBADF;
    struct error err = ERROR_INIT;
    struct pair pair;

    (void) state;
    pair_init(&pair);
    folder = make_place(pair.source, "folder");
    make_content(pair.source, "several", "12345");
    assert_int_equal(linkat(pair.source, "several", folder, "a", 0), 0);
    assert_int_equal(linkat(pair.source, "several", folder, "b", 0), 0);
    make_content(pair.source, "one", "1");
    assert_int_equal(symlinkat("x", folder, "link"), 0);
    assert_int_equal(mknodat(folder, "fifo", S_IFIFO | 0600, 0), 0);
    assert_int_equal(mknodat(folder, "socket", S_IFSOCK | 0600, 0), 0);
    assert_int_equal(mknodat(folder, "white", S_IFCHR, 0), 0);
    said = SAID(tree_copy(TREE_OF(pair.source), pair.target, output, &err));
    assert_int_equal(said_result, 0);
    assert_string_equal(said, "{\"folders\":2,\"files\":2,\"links\":1,\"fifos\":1,\"whiteouts\":1,"
                              "\"hard_links\":2,\"bytes\":6,\"sockets_skipped\":1,"
                              "\"devices_refused\":0,\"attributes_left_out\":0,"
                              "\"hard_links_split\":0}\n");
    pair_done(&pair);
}

static void devices_are_refused_and_counted(void **state)
{
    AUTO(free) char *said = NULL;
    struct error err = ERROR_INIT;
    struct pair pair;

    (void) state;
    pair_init(&pair);
    if (mknodat(pair.source, "null", S_IFCHR | 0666, makedev(1, 3)) < 0) {
        pair_done(&pair);
        skip_without("making device nodes (root)");
    }
    assert_int_equal(mknodat(pair.source, "disk", S_IFBLK | 0600, makedev(7, 999)), 0);
    said = SAID(tree_copy(TREE_OF(pair.source), pair.target, output, &err));
    assert_int_equal(said_result, 0);
    assert_non_null(strstr(said, "\"whiteouts\":0,"));
    assert_non_null(strstr(said, "\"devices_refused\":2,"));
    assert_int_equal(faccessat(pair.target, "null", F_OK, AT_SYMLINK_NOFOLLOW), -1);
    assert_int_equal(faccessat(pair.target, "disk", F_OK, AT_SYMLINK_NOFOLLOW), -1);
    pair_done(&pair);
}

static void a_target_with_something_in_it_is_refused(void **state)
{
    AUTO(free) char *said = NULL;
    struct error err = ERROR_INIT;
    struct pair pair;

    (void) state;
    pair_init(&pair);
    make_content(pair.target, "precious", "");
    said = SAID(tree_copy(TREE_OF(pair.source), pair.target, output, &err));
    assert_int_equal(said_result, -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_string_equal(said, "");
    assert_int_equal(faccessat(pair.target, "precious", F_OK, 0), 0);
    pair_done(&pair);
}

/* Enormous and empty: copied in an instant, without a block. */
static void copy_a_giant(void)
{
    AUTO(free) char *said = NULL;
    AUTO(close) int source = -EBADF, target = -EBADF, fd = -EBADF;
    struct error err = ERROR_INIT;
    struct stat status;

    enter_private_mounts();
    CHECK_EQUAL(mkdir("source", 0700) + mkdir("target", 0700), 0);
    source = open_place(AT_FDCWD, "source");
    target = open_place(AT_FDCWD, "target");
    fd = openat(source, "giant", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK_EQUAL(ftruncate(fd, INT64_C(1) << 62), 0);
    CHECK_EQUAL(sys_file_pwrite_full(fd, "middle", 6, INT64_C(1) << 61), 0);
    said = SAID(tree_copy(TREE_OF(source), target, output, &err));
    CHECK_EQUAL(said_result, 0);
    CHECK_EQUAL(fstatat(target, "giant", &status, 0), 0);
    CHECK_EQUAL(status.st_size, INT64_C(1) << 62);
    CHECK(status.st_blocks <= 16);
}

static void holes_of_any_size_are_no_work(void **state)
{
    (void) state;
    run_in_child(copy_a_giant, NEEDS_MOUNTS);
}

/* The target fills up in the middle: an error that says so, and the helper folder is gone. */
static void copy_too_much(void)
{
    AUTO(free) char *said = NULL, *block = calloc(1, 600000);
    AUTO(close) int source = -EBADF, target = -EBADF;
    struct error err = ERROR_INIT;

    enter_private_mounts();
    CHECK_EQUAL(mkdir("source", 0700) + mkdir("target", 0700), 0);
    source = open_place(AT_FDCWD, "source");
    target = open_place(AT_FDCWD, "target");
    make_content(source, "a", "1");
    CHECK_EQUAL(linkat(source, "a", source, "b", 0), 0);
    CHECK_EQUAL(sys_file_replace(source, "c", block, 600000, 0600), 0);
    said = SAID(tree_copy(TREE_OF(source), target, output, &err));
    CHECK_EQUAL(said_result, -1);
    CHECK_EQUAL(err.code, ERR_NO_SPACE);
    CHECK(strstr(err.message, "copy 'c'") != NULL);
    CHECK_EQUAL(unlinkat(target, "a", 0) + unlinkat(target, "b", 0) + unlinkat(target, "c", 0), 0);
    CHECK_EQUAL(rmdir("/tmp/target"), 0); /* copying changes the working directory */
}

static void a_full_target_is_told(void **state)
{
    (void) state;
    run_in_child(copy_too_much, NEEDS_MOUNTS);
}

/* Rights in files and the like: not ours to write, so they are counted. */
static void other_attributes_are_left_out_and_counted(void **state)
{
    /* vfs_cap_data of version 2: one capability, cap_net_raw. */
    static const unsigned char capability[20] = {1, 0, 0, 2, 0, 0x20};
    AUTO(free) char *said = NULL;
    struct error err = ERROR_INIT;
    struct pair pair;

    (void) state;
    pair_init(&pair);
    make_content(pair.source, "ping", "");
    assert_int_equal(fchdir(pair.source), 0);
    if (lsetxattr("ping", "security.capability", capability, sizeof(capability), 0) < 0) {
        pair_done(&pair);
        skip_without("file capabilities (root, a filesystem that has them)");
    }
    said = SAID(tree_copy(TREE_OF(pair.source), pair.target, output, &err));
    assert_int_equal(said_result, 0);
    assert_non_null(strstr(said, "\"attributes_left_out\":1,"));
    assert_int_equal(fchdir(pair.target), 0);
    assert_int_equal(lgetxattr("ping", "security.capability", NULL, 0), -1);
    pair_done(&pair);
}

/* As many names as the filesystem allows (ext4: 65,000): our helper name is one too many. */
static void more_names_than_fit_become_a_second_file(void **state)
{
    AUTO(free) char *said = NULL;
    AUTO(close) int folder = -EBADF;
    struct error err = ERROR_INIT;
    struct pair pair;
    bool is_full = false;

    (void) state;
    pair_init(&pair);
    folder = make_place(pair.source, "names");
    make_content(folder, "first", "1");
    for (int i = 0; i < 66000 && !is_full; i++) {
        char name[TREE_NAME_MAX];

        (void) snprintf(name, sizeof(name), "%d", i);
        is_full = linkat(folder, "first", folder, name, 0) < 0;
        if (is_full)
            assert_int_equal(errno, EMLINK);
    }
    said = SAID(tree_copy(TREE_OF(pair.source), pair.target, output, &err));
    assert_int_equal(said_result, 0);
    assert_non_null(strstr(said, is_full ? "\"files\":2," : "\"files\":1,"));
    assert_non_null(strstr(said, is_full ? "\"hard_links_split\":1}" : "\"hard_links_split\":0}"));
    pair_done(&pair);
}

static void copy_a_deep_chain(void)
{
    AUTO(free) char *said = NULL;
    AUTO(close) int source = -EBADF, target = -EBADF;
    struct error err = ERROR_INIT;
    int before;

    enter_private_mounts();
    CHECK_EQUAL(mkdir("source", 0700) + mkdir("target", 0700), 0);
    source = open_place(AT_FDCWD, "source");
    target = open_place(AT_FDCWD, "target");
    grow_chain(source, 30000);
    before = count_descriptors();
    said = SAID(tree_copy(TREE_OF(source), target, output, &err));
    CHECK_EQUAL(said_result, 0);
    CHECK(strstr(said, "{\"folders\":30001,") != NULL);
    CHECK_EQUAL(count_descriptors(), before);
}

static void deep_chains_are_copied(void **state)
{
    (void) state;
    run_in_child(copy_a_deep_chain, NEEDS_MOUNTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_of_hostile_trees_are_the_same),
        cmocka_unit_test(the_report_counts_exactly),
        cmocka_unit_test(devices_are_refused_and_counted),
        cmocka_unit_test(a_target_with_something_in_it_is_refused),
        cmocka_unit_test(holes_of_any_size_are_no_work),
        cmocka_unit_test(a_full_target_is_told),
        cmocka_unit_test(other_attributes_are_left_out_and_counted),
        cmocka_unit_test(more_names_than_fit_become_a_second_file),
        cmocka_unit_test(deep_chains_are_copied),
    };

    return cmocka_run_group_tests_name("tree_copy", tests, NULL, NULL);
}
