#include "keeper/layer/layer_test_kit.h"
#include "keeper/tree/file_compare.h"
#include "sys/file/sys_btrfs.h"
#include "sys/file/sys_btrfs_test_kit.h"

#define SIZE 700000

static void write_at(int folder, const char *name, const char *content, off_t at)
{
    AUTO(close) int fd = openat(folder, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    CHECK(fd >= 0);
    CHECK_EQUAL(sys_file_pwrite_full(fd, content, strlen(content), at), 0);
}

static void set_size(int folder, const char *name, off_t size)
{
    AUTO(close) int fd = openat(folder, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    CHECK(fd >= 0);
    CHECK_EQUAL(ftruncate(fd, size), 0);
}

static void a_byte_anywhere_makes_a_difference(void **state)
{
    static const off_t places[] = {0, 1, 4095, 4096, 262143, 262144, 524288, SIZE - 1};
    AUTO(free) char *bytes = calloc(1, SIZE);
    struct place_set set;

    (void) state;
    place_set_init(&set);
    for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
        AUTO(file_compare) struct file_compare compare = {0};

        file_compare_init(&compare, set.newer, set.older);
        assert_int_equal(sys_file_replace(set.newer, "a", bytes, SIZE, 0600), 0);
        assert_int_equal(sys_file_replace(set.older, "a", bytes, SIZE, 0600), 0);
        assert_int_equal(file_compare(&compare, set.newer, "a", set.older, "a", SIZE), 1);
        write_at(set.older, "a", "x", places[i]);
        assert_int_equal(file_compare(&compare, set.newer, "a", set.older, "a", SIZE), 0);
        assert_int_equal(file_compare(&compare, set.older, "a", set.newer, "a", SIZE), 0);
    }
    place_set_done(&set);
}

static void holes_and_zeros_are_the_same_and_giants_no_work(void **state)
{
    AUTO(free) char *bytes = calloc(1, SIZE);
    AUTO(file_compare) struct file_compare compare = {0};
    struct place_set set;

    (void) state;
    place_set_init(&set);
    file_compare_init(&compare, set.newer, set.older);
    assert_int_equal(sys_file_replace(set.newer, "a", bytes, SIZE, 0600), 0);
    set_size(set.older, "a", SIZE);
    assert_int_equal(file_compare(&compare, set.newer, "a", set.older, "a", SIZE), 1);
    set_size(set.newer, "giant", INT64_C(1) << 40);
    set_size(set.older, "giant", INT64_C(1) << 40);
    assert_int_equal(
        file_compare(&compare, set.newer, "giant", set.older, "giant", UINT64_C(1) << 40), 1);
    write_at(set.older, "giant", "x", INT64_C(1) << 39);
    assert_int_equal(
        file_compare(&compare, set.newer, "giant", set.older, "giant", UINT64_C(1) << 40), 0);
    place_set_done(&set);
}

static void what_is_no_file_of_that_size_is_stale(void **state)
{
    AUTO(file_compare) struct file_compare compare = {0};
    struct place_set set;

    (void) state;
    place_set_init(&set);
    file_compare_init(&compare, set.newer, set.older);
    make_content(set.newer, "a", "12");
    make_content(set.older, "a", "1");
    assert_int_equal(symlinkat("a", set.older, "link"), 0);
    assert_int_equal(file_compare(&compare, set.newer, "a", set.older, "a", 2), -ESTALE);
    assert_int_equal(file_compare(&compare, set.newer, "a", set.older, "link", 2), -ELOOP);
    assert_int_equal(file_compare(&compare, set.newer, "a", set.older, "absent", 2), -ENOENT);
    place_set_done(&set);
}

/* Snapshots of a disk, one after the other: each is the one before and a delta. */
static void go_by_snapshots(void)
{
    AUTO(close) int top = make_filesystem(), disk = -EBADF, target = -EBADF, older = -EBADF;

    CHECK_EQUAL(sys_btrfs_create(top, "disk", 0), 0);
    disk = open_place(top, "disk");
    target = make_place(top, "target");
    grow_tree(disk, 5, 100);
    for (int i = 0; i < 12; i++) {
        char id[LAYER_ID_SIZE], whole[LAYER_ID_SIZE], again[LAYER_ID_SIZE], name[TREE_NAME_MAX];
        AUTO(close) int layer = -EBADF, second = -EBADF, third = -EBADF, newer = -EBADF;

        (void) snprintf(name, sizeof(name), "snapshot%d", i);
        CHECK_EQUAL(sys_btrfs_snapshot(disk, top, name, true, 0), 0);
        newer = open_place(top, name);
        layer = pack_layer(newer, i == 0 ? -EBADF : older, id);
        unpack_layer(target, layer, id);
        second = pack_layer(newer, -EBADF, whole);
        third = pack_layer(target, -EBADF, again);
        CHECK(strcmp(whole, again) == 0);
        (void) fd_close(older);
        older = TAKE_FD(newer);
        change_tree(disk, (uint64_t) i + 1, 10);
    }
}

static void snapshots_of_a_disk_come_back(void **state)
{
    (void) state;
    run_in_child(go_by_snapshots, NEEDS_BTRFS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_byte_anywhere_makes_a_difference),
        cmocka_unit_test(holes_and_zeros_are_the_same_and_giants_no_work),
        cmocka_unit_test(what_is_no_file_of_that_size_is_stale),
        cmocka_unit_test(snapshots_of_a_disk_come_back),
    };

    return cmocka_run_group_tests_name("file_compare", tests, NULL, NULL);
}
