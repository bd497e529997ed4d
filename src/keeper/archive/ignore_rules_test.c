#include <string.h>

#include "keeper/archive/ignore_rules.h"
#include "keeper/tree/tree_test_kit.h"

struct fixture {
    char path[SCRATCH_SIZE];
    int top; /* owned */
    struct ignore_rules *rules;
};

static void set_up(struct fixture *fixture, bool gitignore)
{
    make_scratch(fixture->path);
    fixture->top = open_place(AT_FDCWD, fixture->path);
    fixture->rules = ignore_rules_new(gitignore);
}

static void tear_down(struct fixture *fixture)
{
    ignore_rules_free(fixture->rules);
    (void) close(fixture->top);
    remove_scratch(fixture->path);
}

static void enter(struct fixture *fixture, int folder, const char *path)
{
    struct error err = ERROR_INIT;

    assert_int_equal(ignore_rules_enter(fixture->rules, folder, path, &err), 0);
    if (!path[0])
        ignore_rules_begin(fixture->rules);
}

static bool ignores(const struct fixture *fixture, const char *path)
{
    size_t length = strlen(path);
    char plain[256];

    (void) snprintf(plain, sizeof(plain), "%s", path);
    if (path[length - 1] == '/')
        plain[length - 1] = '\0';
    return ignore_rules_match(fixture->rules, plain, path[length - 1] == '/');
}

static void excludes_name_the_last_names_of_a_path(void **state)
{
    static const char *const excludes[] = {"node_modules", "*.log",  "a/b*",   "/./lead",
                                           "**/deep/**/x", "all/**", "we ird", "[x"};
    struct fixture fixture;
    struct error err = ERROR_INIT;

    (void) state;
    set_up(&fixture, false);
    for (size_t i = 0; i < ARRAY_COUNT(excludes); i++)
        assert_int_equal(ignore_rules_exclude(fixture.rules, excludes[i], &err), 0);
    make_content(fixture.top, ".gitignore", "kept\n");
    enter(&fixture, fixture.top, "");
    assert_true(ignores(&fixture, "node_modules/"));
    assert_true(ignores(&fixture, "x/y/node_modules"));
    assert_false(ignores(&fixture, "node_modules2"));
    assert_true(ignores(&fixture, "x/a.log"));
    assert_false(ignores(&fixture, "x/.log"));
    assert_true(ignores(&fixture, "a/b"));
    assert_true(ignores(&fixture, "x/a/bc"));
    assert_false(ignores(&fixture, "b"));
    assert_false(ignores(&fixture, "a/x/b"));
    assert_true(ignores(&fixture, "lead"));
    assert_true(ignores(&fixture, "deep/x"));
    assert_true(ignores(&fixture, "all/x"));
    assert_false(ignores(&fixture, "all/"));
    assert_true(ignores(&fixture, "we ird"));
    assert_true(ignores(&fixture, "[x"));
    assert_false(ignores(&fixture, "kept")); /* nobody asked for gitignore */
    tear_down(&fixture);
}

static void excludes_that_are_none_are_refused(void **state)
{
    static const char *const refused[] = {"",       "/",  "**/",  "a\nb", "@(a|b)",
                                          "x/!(a)", "/*", "**/*", "./**"};
    struct fixture fixture;

    (void) state;
    set_up(&fixture, false);
    for (size_t i = 0; i < ARRAY_COUNT(refused); i++) {
        struct error err = ERROR_INIT;

        assert_int_equal(ignore_rules_exclude(fixture.rules, refused[i], &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
    }
    tear_down(&fixture);
}

static void the_last_rule_of_the_innermost_file_counts(void **state)
{
    struct fixture fixture;
    int inner;

    (void) state;
    set_up(&fixture, true);
    make_content(fixture.top, ".gitignore",
                 "\xef\xbb\xbf*.o\r\n# no rule\n\n!keep.o\n/anchored\nfolder/\nx/*.c\nend \n"
                 "kept\\ \n!\n\\!bang\n");
    inner = make_place(fixture.top, "in");
    make_content(inner, ".gitignore", "!a.o\nkeep.o\n");
    enter(&fixture, fixture.top, "");
    assert_true(ignores(&fixture, "a.o"));
    assert_false(ignores(&fixture, "keep.o"));
    assert_true(ignores(&fixture, "anchored"));
    assert_false(ignores(&fixture, "folder"));
    assert_true(ignores(&fixture, "folder/"));
    assert_false(ignores(&fixture, "# no rule"));
    assert_true(ignores(&fixture, "end"));
    assert_false(ignores(&fixture, "end "));
    assert_true(ignores(&fixture, "kept "));
    assert_true(ignores(&fixture, "!bang"));
    enter(&fixture, inner, "in");
    assert_false(ignores(&fixture, "in/a.o"));
    assert_true(ignores(&fixture, "in/b.o"));
    assert_true(ignores(&fixture, "in/keep.o"));
    assert_false(ignores(&fixture, "in/anchored"));
    ignore_rules_leave(fixture.rules);
    assert_false(ignores(&fixture, "keep.o"));
    (void) close(inner);
    tear_down(&fixture);
}

static void another_work_tree_has_rules_of_its_own(void **state)
{
    struct fixture fixture;
    int inner, git, info;

    (void) state;
    set_up(&fixture, true);
    make_content(fixture.top, ".gitignore", "*.o\n.*\n");
    inner = make_place(fixture.top, "in");
    git = make_place(inner, ".git");
    info = make_place(git, "info");
    make_content(info, "exclude", "secret\n*.a\n");
    make_content(inner, ".gitignore", "!x.a\n");
    enter(&fixture, fixture.top, "");
    assert_true(ignores(&fixture, "a.o"));
    assert_true(ignores(&fixture, ".hidden"));
    assert_false(ignores(&fixture, ".git/"));
    assert_false(ignores(&fixture, ".git/x.o"));
    enter(&fixture, inner, "in");
    assert_false(ignores(&fixture, "in/a.o"));
    assert_true(ignores(&fixture, "in/secret"));
    assert_true(ignores(&fixture, "in/y.a"));
    assert_false(ignores(&fixture, "in/x.a"));
    (void) close(inner);
    (void) close(git);
    (void) close(info);
    tear_down(&fixture);
}

static void what_is_no_file_of_rules_is_none(void **state)
{
    struct fixture fixture;
    struct error err = ERROR_INIT;
    int one, two, three;

    (void) state;
    set_up(&fixture, true);
    make_content(fixture.top, "rules", "a\n");
    one = make_place(fixture.top, "one");
    two = make_place(fixture.top, "two");
    three = make_place(fixture.top, "three");
    assert_int_equal(symlinkat("../rules", one, ".gitignore"), 0);
    assert_int_equal(mkfifoat(two, ".gitignore", 0600), 0);
    make_content(three, ".gitignore", "");
    {
        AUTO(close) int file = openat(three, ".gitignore", O_WRONLY | O_CLOEXEC);

        assert_int_equal(ftruncate(file, IGNORE_FILE_MAX + 1), 0);
    }
    enter(&fixture, one, "");
    assert_false(ignores(&fixture, "a"));
    enter(&fixture, two, "");
    assert_int_equal(ignore_rules_enter(fixture.rules, three, "three", &err), -1);
    assert_non_null(strstr(err.message, "three/.gitignore"));
    (void) close(one);
    (void) close(two);
    (void) close(three);
    tear_down(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(excludes_name_the_last_names_of_a_path),
        cmocka_unit_test(excludes_that_are_none_are_refused),
        cmocka_unit_test(the_last_rule_of_the_innermost_file_counts),
        cmocka_unit_test(another_work_tree_has_rules_of_its_own),
        cmocka_unit_test(what_is_no_file_of_rules_is_none),
    };

    return cmocka_run_group_tests_name("ignore_rules", tests, NULL, NULL);
}
