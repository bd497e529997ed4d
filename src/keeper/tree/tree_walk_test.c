#include "base/rounds_testing.h"
#include "keeper/tree/tree_test_kit.h"
#include "keeper/tree/tree_walk.h"

static const char *const event_names[] = {"end", "enter", "entry", "leave"};

/* The steps of a walk as text. */
static void walk_to_text(struct tree_walk *walk, struct text *text)
{
    struct tree_step step;
    struct error err = ERROR_INIT;

    do {
        assert_int_equal(tree_walk_next(walk, &step, &err), 0);
        if (step.event != TREE_END)
            text_format(text, "%s %zu %s|%s\n", event_names[step.event], step.depth, step.path,
                        step.name);
    } while (step.event != TREE_END);
    assert_int_equal(tree_walk_next(walk, &step, &err), 0);
    assert_int_equal(step.event, TREE_END);
}

static void steps_come_in_order_and_links_are_not_followed(void **state)
{
    AUTO(text) struct text text = TEXT_INIT(4096);
    AUTO(tree_walk) struct tree_walk *walk = NULL;
    AUTO(close) int top = -EBADF, folder = -EBADF;
    char path[SCRATCH_SIZE];

    (void) state;
    make_scratch(path);
    top = open_place(AT_FDCWD, path);
    folder = make_place(top, "b");
    make_content(folder, "z", "");
    make_content(folder, "y", "");
    assert_int_equal(symlinkat("/", top, "a"), 0);
    (void) close(make_place(top, "c"));
    make_content(top, "d", "");
    walk = tree_walk_new(top);
    walk_to_text(walk, &text);
    assert_string_equal(text_string(&text), "enter 0 |\n"
                                            "entry 1 a|a\n"
                                            "enter 1 b|b\n"
                                            "entry 2 b/y|y\n"
                                            "entry 2 b/z|z\n"
                                            "leave 1 b|b\n"
                                            "enter 1 c|c\n"
                                            "leave 1 c|c\n"
                                            "entry 1 d|d\n"
                                            "leave 0 |\n");
    remove_scratch(path);
}

/* With hardly any memory for names every folder is read many times, and the walk is the same. */
static void little_memory_changes_nothing(void **state)
{
    (void) state;
    for (uint64_t seed = 1; seed < 6; seed++) {
        AUTO(text) struct text plenty = TEXT_INIT(1 << 20), little = TEXT_INIT(1 << 20);
        AUTO(tree_walk) struct tree_walk *first = NULL, *second = NULL;
        AUTO(close) int top = -EBADF;
        char path[SCRATCH_SIZE];

        make_scratch(path);
        top = open_place(AT_FDCWD, path);
        grow_tree(top, seed, 300);
        first = tree_walk_new(top);
        second = tree_walk_new_with(top, 512, 0);
        walk_to_text(first, &plenty);
        walk_to_text(second, &little);
        assert_true(plenty.length > 5000 && !plenty.overflowed);
        assert_string_equal(text_string(&plenty), text_string(&little));
        assert_int_equal(sys_tree_empty(top), 0);
        assert_int_equal(rmdir(path), 0);
    }
}

static void walk_a_deep_chain(void)
{
    AUTO(tree_walk) struct tree_walk *walk = NULL;
    AUTO(close) int top = -EBADF;
    struct error err = ERROR_INIT;
    struct tree_step step;
    size_t steps = 0, deepest = 0, levels = rounds_of(10000, 100000);
    int before;

    enter_private_mounts();
    top = open_place(AT_FDCWD, ".");
    grow_chain(top, (int) levels);
    before = count_descriptors();
    walk = tree_walk_new(top);
    do {
        CHECK_EQUAL(tree_walk_next(walk, &step, &err), 0);
        deepest = step.depth > deepest ? step.depth : deepest;
        if (++steps % 10000 == 0)
            CHECK_EQUAL(count_descriptors(), before + 1);
    } while (step.event != TREE_END);
    CHECK_EQUAL(steps, 2 * (levels + 1) + 1);
    CHECK_EQUAL(deepest, levels);
}

static void ten_thousand_levels_take_one_descriptor(void **state)
{
    (void) state;
    run_in_child(walk_a_deep_chain, NEEDS_MOUNTS);
}

/* Somebody moves the folder we are in: ".." is another one then, and must not be walked. */
static void a_tree_that_moves_ends_the_walk(void **state)
{
    AUTO(tree_walk) struct tree_walk *walk = NULL;
    AUTO(close) int top = -EBADF, a = -EBADF, b = -EBADF;
    struct error err = ERROR_INIT;
    struct tree_step step;
    char path[SCRATCH_SIZE];

    (void) state;
    make_scratch(path);
    top = open_place(AT_FDCWD, path);
    a = make_place(top, "a");
    b = make_place(a, "b");
    (void) close(make_place(b, "c"));
    (void) close(make_place(top, "elsewhere"));
    walk = tree_walk_new(top);
    do
        assert_int_equal(tree_walk_next(walk, &step, &err), 0);
    while (step.event != TREE_LEAVE);
    assert_string_equal(step.path, "a/b/c");
    assert_int_equal(renameat(b, "c", top, "elsewhere/c"), 0);
    assert_int_equal(tree_walk_next(walk, &step, &err), -1);
    assert_int_equal(abs(err.system), ESTALE);
    assert_non_null(strstr(err.message, "read 'a/b/c'"));
    remove_scratch(path);
}

static void a_folder_that_is_skipped_is_left_at_once(void **state)
{
    AUTO(tree_walk) struct tree_walk *walk = NULL;
    AUTO(text) struct text text = TEXT_INIT(4096);
    AUTO(close) int top = -EBADF, folder = -EBADF;
    struct error err = ERROR_INIT;
    struct tree_step step;
    char path[SCRATCH_SIZE];

    (void) state;
    make_scratch(path);
    top = open_place(AT_FDCWD, path);
    folder = make_place(top, "a");
    make_content(folder, "inside", "");
    make_content(top, "b", "");
    walk = tree_walk_new(top);
    do
        assert_int_equal(tree_walk_next(walk, &step, &err), 0);
    while (strcmp(step.path, "a") != 0);
    tree_walk_skip(walk);
    walk_to_text(walk, &text);
    assert_string_equal(text_string(&text), "leave 1 a|a\nentry 1 b|b\nleave 0 |\n");
    remove_scratch(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_come_in_order_and_links_are_not_followed),
        cmocka_unit_test(little_memory_changes_nothing),
        cmocka_unit_test(ten_thousand_levels_take_one_descriptor),
        cmocka_unit_test(a_tree_that_moves_ends_the_walk),
        cmocka_unit_test(a_folder_that_is_skipped_is_left_at_once),
    };

    return cmocka_run_group_tests_name("tree_walk", tests, NULL, NULL);
}
