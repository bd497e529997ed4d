/* Nodes and their keys, the marks of files, and the blocks in memory. */
#include <sys/stat.h>

#include "mount/mount_cache.h"
#include "mount/mount_tree.h"
#include "net/net_testing.h"

static struct mount_node *make(struct mount_tree *tree, struct mount_node *folder, const char *name,
                               mode_t type)
{
    struct mount_node *node = mount_tree_add(tree, folder, name);

    node->marks.mode = type | 0644;
    node->lookups = 1;
    mount_node_release(tree, node);
    return node;
}

static void keys_are_the_way_from_the_root(void **state)
{
    struct mount_tree tree;
    struct mount_node *folder, *file;
    char key[MOUNT_KEY_SIZE];

    (void) state;
    mount_tree_init(&tree, "projects/7");
    assert_int_equal(tree.root->id, FUSE_ROOT_ID);
    tree.root->marks.mode = S_IFDIR;
    folder = make(&tree, tree.root, "src", S_IFDIR);
    file = make(&tree, folder, "main.c", S_IFREG);
    assert_int_equal(mount_node_key(&tree, tree.root, key), 0);
    assert_string_equal(key, "projects/7/");
    assert_int_equal(mount_node_key(&tree, folder, key), 0);
    assert_string_equal(key, "projects/7/src/");
    assert_int_equal(mount_node_key(&tree, file, key), 0);
    assert_string_equal(key, "projects/7/src/main.c");
    assert_int_equal(mount_tree_key(&tree, folder, "x", true, key), 0);
    assert_string_equal(key, "projects/7/src/x/");
    assert_ptr_equal(mount_tree_find(&tree, file->id), file);
    assert_ptr_equal(mount_tree_child(&tree, folder, "main.c"), file);
    assert_null(mount_tree_child(&tree, tree.root, "main.c"));
    mount_tree_done(&tree);
}

static void keys_end_where_the_store_ends_them(void **state)
{
    struct mount_tree tree;
    struct mount_node *node;
    char key[MOUNT_KEY_SIZE], name[201];
    int made = 0;

    (void) state;
    memset(name, 'n', sizeof(name) - 1);
    name[200] = '\0';
    mount_tree_init(&tree, "");
    node = tree.root;
    while (mount_tree_key(&tree, node, name, false, key) == 0) {
        node = make(&tree, node, name, S_IFDIR);
        made++;
    }
    assert_int_equal(made, 5);
    assert_int_equal(mount_tree_key(&tree, node, name, false, key), -ENAMETOOLONG);
    assert_int_equal(mount_tree_key(&tree, node, "123456789012345678", true, key), 0);
    assert_int_equal(strlen(key), OBJECTS_KEY_MAX);
    mount_tree_done(&tree);
}

static void nodes_that_nobody_holds_are_gone(void **state)
{
    struct mount_tree tree;
    struct mount_node *folder, *file;

    (void) state;
    mount_tree_init(&tree, "");
    folder = make(&tree, tree.root, "a", S_IFDIR);
    file = make(&tree, folder, "b", S_IFREG);
    assert_int_equal(tree.count, 3);
    mount_node_forget(&tree, folder, 1); /* its child holds it */
    assert_int_equal(tree.count, 3);
    mount_node_hold(file);
    mount_node_forget(&tree, file, 100);
    assert_int_equal(tree.count, 3);
    mount_node_release(&tree, file);
    assert_int_equal(tree.count, 1);
    mount_tree_done(&tree);
}

static void removed_nodes_have_no_key_and_moved_ones_another(void **state)
{
    struct mount_tree tree;
    struct mount_node *from, *to, *file;
    char key[MOUNT_KEY_SIZE];

    (void) state;
    mount_tree_init(&tree, "");
    from = make(&tree, tree.root, "from", S_IFDIR);
    to = make(&tree, tree.root, "to", S_IFDIR);
    file = make(&tree, from, "f", S_IFREG);
    mount_node_move(&tree, file, to, "g");
    assert_int_equal(mount_node_key(&tree, file, key), 0);
    assert_string_equal(key, "to/g");
    mount_node_move(&tree, to, from, "to");
    assert_int_equal(mount_node_key(&tree, file, key), 0);
    assert_string_equal(key, "from/to/g");
    mount_node_remove(&tree, from);
    assert_true(file->is_removed && to->is_removed);
    assert_int_equal(mount_node_key(&tree, file, key), -ENOENT);
    assert_int_equal(mount_node_key(&tree, from, key), -ENOENT);
    mount_node_forget(&tree, from, 1);
    mount_node_forget(&tree, to, 1);
    mount_node_forget(&tree, file, 1);
    assert_int_equal(tree.count, 1);
    mount_tree_done(&tree);
}

static void names_are_checked(void **state)
{
    char name[MOUNT_NAME_MAX + 2];

    (void) state;
    assert_int_equal(mount_name_check("plain"), 0);
    assert_int_equal(mount_name_check("sch\xc3\xb6n"), 0);
    assert_int_equal(mount_name_check("bad\xff"), -EILSEQ);
    assert_int_equal(mount_name_check(""), -EINVAL);
    assert_int_equal(mount_name_check(".."), -EINVAL);
    assert_int_equal(mount_name_check("a/b"), -EINVAL);
    memset(name, 'x', sizeof(name));
    name[MOUNT_NAME_MAX + 1] = '\0';
    assert_int_equal(mount_name_check(name), -ENAMETOOLONG);
}

/* --- marks ----------------------------------------------------------------------------------- */

static void expect_marks(const struct mount_marks *marks, const struct mount_marks *wanted)
{
    assert_int_equal(marks->mode, wanted->mode);
    assert_int_equal(marks->uid, wanted->uid);
    assert_int_equal(marks->gid, wanted->gid);
    assert_int_equal(marks->seconds, wanted->seconds);
    assert_int_equal(marks->nanoseconds, wanted->nanoseconds);
}

static void marks_go_out_and_come_back(void **state)
{
    struct mount_marks marks = {
        .mode = S_IFREG | 0750, .uid = 12, .gid = 65535, .seconds = 1234567890, .nanoseconds = 5};
    struct mount_marks back = {.mode = S_IFREG};
    struct mount_marks_text text;
    struct object_info info = {.metadata = text.pairs, .metadata_count = MOUNT_MARKS_COUNT};

    (void) state;
    mount_marks_write(&marks, &text);
    mount_marks_read(&back, &info);
    expect_marks(&back, &marks);
}

static void marks_that_make_no_sense_are_not_there(void **state)
{
    static const char *const values[][2] = {
        {"mode", "8630"},  {"mode", "-1"},        {"mode", "99999"},         {"mode", "x"},
        {"uid", "65536"},  {"uid", "4294967295"}, {"gid", "root"},           {"mtime", "-5"},
        {"mtime", "1.x"},  {"mtime", ".5"},       {"mtime", "1.1234567890"}, {"mtime", ""},
        {"other", "12345"}};
    struct mount_marks before = {.mode = S_IFREG | 0600, .uid = 1, .gid = 2, .seconds = 3};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(values); i++) {
        struct object_pair pair = {values[i][0], values[i][1]};
        struct object_info info = {.metadata = &pair, .metadata_count = 1};
        struct mount_marks marks = before;

        mount_marks_read(&marks, &info);
        expect_marks(&marks, &before);
    }
}

static void marks_of_s3fs_are_understood(void **state)
{
    const struct object_pair pairs[] = {
        {"mode", "33277"}, {"mtime", "1700000000.25"}, {"uid", "0"}, {"ctime", "1"}};
    struct object_info info = {.metadata = pairs, .metadata_count = ARRAY_COUNT(pairs)};
    struct mount_marks marks = {.mode = S_IFREG | 0644, .uid = 9};

    (void) state;
    mount_marks_read(&marks, &info);
    assert_int_equal(marks.mode, S_IFREG | 0775);
    assert_int_equal(marks.uid, 0);
    assert_int_equal(marks.seconds, 1700000000);
    assert_int_equal(marks.nanoseconds, 250000000);
}

/* --- blocks ---------------------------------------------------------------------------------- */

static void blocks_are_found_by_user_version_and_place(void **state)
{
    struct mount_cache cache;
    struct mount_cache_user one, two;
    size_t length;

    (void) state;
    mount_cache_init(&cache, 1000);
    mount_cache_user_init(&one, &cache, 500);
    mount_cache_user_init(&two, &cache, 500);
    mount_cache_add(&one, 1, 0, "abc", 3);
    assert_memory_equal(mount_cache_find(&one, 1, 0, &length), "abc", 3);
    assert_int_equal(length, 3);
    assert_null(mount_cache_find(&one, 1, 1, &length));
    assert_null(mount_cache_find(&one, 2, 0, &length));
    assert_null(mount_cache_find(&two, 1, 0, &length));
    assert_int_equal(one.hits, 1);
    assert_int_equal(one.misses, 2);
    mount_cache_user_done(&one);
    mount_cache_user_done(&two);
    assert_int_equal(cache.bytes, 0);
    mount_cache_done(&cache);
}

static void what_was_not_read_for_long_goes_first(void **state)
{
    struct mount_cache cache;
    struct mount_cache_user one, two;
    char bytes[100] = "";
    size_t length;

    (void) state;
    mount_cache_init(&cache, 500);
    mount_cache_user_init(&one, &cache, 300);
    mount_cache_user_init(&two, &cache, 1000);
    for (uint64_t i = 0; i < 3; i++)
        mount_cache_add(&one, 1, i, bytes, sizeof(bytes));
    assert_non_null(mount_cache_find(&one, 1, 0, &length));
    mount_cache_add(&one, 1, 3, bytes, sizeof(bytes));
    assert_false(mount_cache_has(&one, 1, 1)); /* not 0, which was read */
    assert_true(mount_cache_has(&one, 1, 0) && mount_cache_has(&one, 1, 2));
    assert_int_equal(one.bytes, 300);
    for (uint64_t i = 0; i < 3; i++)
        mount_cache_add(&two, 1, i, bytes, sizeof(bytes));
    assert_int_equal(cache.bytes, 500); /* one of the first user's went */
    assert_int_equal(one.bytes, 200);
    mount_cache_add(&one, 2, 0, bytes, 301);
    assert_false(mount_cache_has(&one, 2, 0));
    mount_cache_user_done(&one);
    mount_cache_user_done(&two);
    mount_cache_done(&cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_the_way_from_the_root),
        cmocka_unit_test(keys_end_where_the_store_ends_them),
        cmocka_unit_test(nodes_that_nobody_holds_are_gone),
        cmocka_unit_test(removed_nodes_have_no_key_and_moved_ones_another),
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test(marks_go_out_and_come_back),
        cmocka_unit_test(marks_that_make_no_sense_are_not_there),
        cmocka_unit_test(marks_of_s3fs_are_understood),
        cmocka_unit_test(blocks_are_found_by_user_version_and_place),
        cmocka_unit_test(what_was_not_read_for_long_goes_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
