#include "keeper/tree/folder_descent.h"
#include "keeper/tree/tree_test_kit.h"

static int open_top(char ret_path[static SCRATCH_SIZE])
{
    make_scratch(ret_path);
    return open_place(AT_FDCWD, ret_path);
}

static ino_t number_of(int folder)
{
    struct stat status;

    assert_int_equal(fstat(folder, &status), 0);
    return status.st_ino;
}

static void every_level_is_left_again(void **state)
{
    AUTO(folder_descent) struct folder_descent descent = FOLDER_DESCENT_INIT;
    char path[SCRATCH_SIZE];
    AUTO(close) int top = open_top(path);
    int before = count_descriptors();

    (void) state;
    assert_int_equal(folder_descent_begin(&descent, top), 0);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(mkdirat(descent.folder, "down", 0700), 0);
        assert_int_equal(folder_descent_enter(&descent, "down"), 0);
    }
    assert_int_equal(count_descriptors(), before + 1);
    for (int i = 0; i < 200; i++) {
        int above = folder_descent_open_above(&descent);

        assert_true(above >= 0);
        folder_descent_leave(&descent, above);
    }
    assert_int_equal(descent.depth, 0);
    assert_int_equal(number_of(descent.folder), number_of(top));
    remove_scratch(path);
}

static void a_link_is_not_entered(void **state)
{
    AUTO(folder_descent) struct folder_descent descent = FOLDER_DESCENT_INIT;
    char path[SCRATCH_SIZE];
    AUTO(close) int top = open_top(path);

    (void) state;
    assert_int_equal(symlinkat("/", top, "link"), 0);
    assert_int_equal(folder_descent_begin(&descent, top), 0);
    assert_true(folder_descent_enter(&descent, "link") < 0);
    assert_int_equal(folder_descent_enter(&descent, "nothing"), -ENOENT);
    assert_int_equal(descent.depth, 0);
    assert_int_equal(number_of(descent.folder), number_of(top));
    remove_scratch(path);
}

/* Somebody moves the folder that we are in: its ".." leads where we have not been. */
static void a_way_up_that_changed_is_not_taken(void **state)
{
    AUTO(folder_descent) struct folder_descent descent = FOLDER_DESCENT_INIT;
    char path[SCRATCH_SIZE];
    AUTO(close) int top = open_top(path);
    AUTO(close) int one = make_place(top, "one");
    AUTO(close) int other = make_place(top, "other");
    AUTO(close) int inner = make_place(one, "inner");

    (void) state;
    assert_int_equal(folder_descent_begin(&descent, top), 0);
    assert_int_equal(folder_descent_enter(&descent, "one"), 0);
    assert_int_equal(folder_descent_enter(&descent, "inner"), 0);
    assert_int_equal(renameat(one, "inner", other, "inner"), 0);
    assert_int_equal(folder_descent_open_above(&descent), -ESTALE);
    assert_int_equal(number_of(descent.folder), number_of(inner));
    remove_scratch(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_level_is_left_again),
        cmocka_unit_test(a_link_is_not_entered),
        cmocka_unit_test(a_way_up_that_changed_is_not_taken),
    };

    return cmocka_run_group_tests_name("folder_descent", tests, NULL, NULL);
}
