#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include "base/auto.h"
#include "base/path.h"
/* After the headers it needs. */
#include <cmocka.h>

static void paths_are_resolved_by_their_text(void **state)
{
    static const struct {
        const char *path, *resolved;
    } rows[] = {
        {"/w/s", "/w/s"},
        {"/w/s/", "/w/s"},
        {"/w/s/../s2", "/w/s2"},
        {"/../w", "/w"},
        {"", "/w/s"},
        {".", "/w/s"},
        {"a", "/w/s/a"},
        {"./a//b/", "/w/s/a/b"},
        {"..", "/w"},
        {"../..", "/"},
        {"../../..", "/"},
        {"../../../a", "/a"},
        {"/", "/"},
        {"//", "/"},
        {"/a", "/a"},
        {"/a/./b/../c/", "/a/c"},
        {"a/../..", "/w"},
        {"...", "/w/s/..."},
        {"/..a", "/..a"},
        {"a/..b/.c", "/w/s/a/..b/.c"},
    };
    AUTO(pool) struct pool pool = POOL_INIT;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_string_equal(path_resolve(&pool, "/w//s/", rows[i].path), rows[i].resolved);
    assert_string_equal(path_resolve(&pool, "", ""), "/");
}

static void a_step_up_may_stay(void **state)
{
    char text[32];
    size_t length = path_append(text, 0, "a/./..//b", PATH_UP_STEP);

    (void) state;
    assert_int_equal(length, strlen("/a/../b"));
    assert_memory_equal(text, "/a/../b", length);
}

static void relative_paths_have_one_spelling(void **state)
{
    static const struct {
        const char *path, *relative;
        int result;
    } rows[] = {
        {"a", "a", 0},        {"./a//b/", "a/b", 0},  {"", "", 0},
        {"./", "", 0},        {"/a/b", "a/b", 0},     {"..", "", -EXDEV},
        {"a/..", "", -EXDEV}, {"a/../b", "", -EXDEV}, {"..a/b..", "..a/b..", 0},
    };
    char path[2 * PATH_STEPS_MAX + 3], out[sizeof(path)];

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        memcpy(path, rows[i].path, strlen(rows[i].path) + 1);
        assert_int_equal(path_relative(path, path), rows[i].result);
        if (rows[i].result == 0)
            assert_string_equal(path, rows[i].relative);
    }
    for (size_t i = 0; i <= PATH_STEPS_MAX; i++)
        memcpy(path + 2 * i, "a/", 3);
    assert_int_equal(path_relative(path, out), -ENAMETOOLONG);
    assert_int_equal(path_relative(path + 2, out), 0);
    memset(path, 'a', 256);
    path[256] = '\0';
    assert_int_equal(path_relative(path, out), -ENAMETOOLONG);
    assert_int_equal(path_relative(path + 1, out), 0);
}

static void a_spelling_is_known(void **state)
{
    static const char *const good[] = {"a", "a/b", "..a", "a/...", ".a"};
    static const char *const bad[] = {"",  "/",  "/a",    "a/",     "a//b",
                                      ".", "..", "a/./b", "a/../b", "a/.."};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(good); i++)
        assert_true(path_is_relative(good[i]));
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
        assert_false(path_is_relative(bad[i]));
}

static void inside_is_at_or_below(void **state)
{
    (void) state;
    assert_true(path_is_inside("/w", "/w"));
    assert_true(path_is_inside("/w/a", "/w"));
    assert_false(path_is_inside("/wide", "/w"));
    assert_false(path_is_inside("/", "/w"));
    assert_true(path_is_inside("/anything", "/"));
    assert_true(path_is_inside("/", "/"));
    assert_true(path_is_inside("a/b", "a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_resolved_by_their_text),
        cmocka_unit_test(a_step_up_may_stay),
        cmocka_unit_test(relative_paths_have_one_spelling),
        cmocka_unit_test(a_spelling_is_known),
        cmocka_unit_test(inside_is_at_or_below),
    };

    return cmocka_run_group_tests_name("path", tests, NULL, NULL);
}
