#include <fcntl.h>
#include <string.h>

#include "agent/agent_test.h"
#include "agent/file/file_path.h"

static void paths_are_checked(void **state)
{
    char longest[FILE_PATH_MAX + 1];

    (void) state;
    memset(longest, 'a', sizeof(longest));
    assert_int_equal(file_path_check("a", 1), 0);
    assert_int_equal(file_path_check("", 0), -EINVAL);
    assert_int_equal(file_path_check("a\0b", 3), -EINVAL);
    assert_int_equal(file_path_check(longest, FILE_PATH_MAX), 0);
    assert_int_equal(file_path_check(longest, FILE_PATH_MAX + 1), -ENAMETOOLONG);
}

static void joined_paths_are_absolute_and_plain(void **state)
{
    static const struct {
        const char *directory, *path, *joined;
    } cases[] = {
        {"/workspace", "a", "/workspace/a"},
        {"/workspace", "/a", "/a"},
        {"/workspace/", "a//b/", "/workspace/a/b"},
        {"/", "a", "/a"},
        {"/w", ".", "/w"},
        {"/w", "./a/./b", "/w/a/b"},
        {"/w", "../a", "/w/../a"},
        {"/w", "/", "/"},
        {"/w", "//", "/"},
        {"/", ".", "/"},
        {"/w", "...", "/w/..."},
        {"/w", ".a", "/w/.a"},
    };
    AUTO(pool) struct pool pool = POOL_INIT;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        assert_string_equal(file_path_join(&pool, cases[i].directory, cases[i].path),
                            cases[i].joined);
}

static void the_name_is_what_is_behind_the_last_slash(void **state)
{
    (void) state;
    assert_string_equal(file_path_name("/a/b.txt"), "b.txt");
    assert_string_equal(file_path_name("/"), "");
}

static void only_relative_places_have_a_base(void **state)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    AUTO(file_place) struct file_place relative = FILE_PLACE_INIT;
    struct file_place absolute = FILE_PLACE_INIT;
    struct file_place missing = FILE_PLACE_INIT;

    (void) state;
    assert_int_equal(file_place_open(&absolute, "/no/such", "/etc", &pool), 0);
    assert_int_equal(absolute.base, AT_FDCWD);
    file_place_done(&absolute);
    assert_int_equal(file_place_open(&relative, "/etc", "passwd", &pool), 0);
    assert_true(relative.base >= 0);
    assert_string_equal(relative.absolute, "/etc/passwd");
    assert_int_equal(file_place_open(&missing, "/no/such", "a", &pool), -ENOENT);
    file_place_done(&missing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_checked),
        cmocka_unit_test(joined_paths_are_absolute_and_plain),
        cmocka_unit_test(the_name_is_what_is_behind_the_last_slash),
        cmocka_unit_test(only_relative_places_have_a_base),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
