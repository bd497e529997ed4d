#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/filewatch/glob.h"

static bool finds(const char *pattern, const char *path)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    struct glob glob;
    char absolute[256];

    if (glob_read(pattern, &pool, &glob) < 0)
        fail_msg("'%s' was refused", pattern);
    (void) snprintf(absolute, sizeof(absolute), "/workspace/%s", path);
    return glob_finds(&glob, path, absolute);
}

static const struct {
    const char *pattern;
    const char *path;
    bool found;
} rows[] = {
    /* Names are whole, anywhere in the path. */
    {"src", "src", true},
    {"src", "src/a.c", true},
    {"src", "lib/src", true},
    {"src", "lib/src/a.c", true},
    {"src", "src2", false},
    {"src", "asrc", false},
    {"src", "lib/src2/a.c", false},
    {"src/a.c", "lib/src/a.c", true},
    {"src/a.c", "src/b/a.c", false},
    {".git", ".git/HEAD", true},
    {".git", ".gitignore", false},
    {"node_modules", "a/node_modules/b/c", true},
    /* Stars stay within a name. */
    {"*.ts", "a.ts", true},
    {"*.ts", "x/y/a.ts", true},
    {"*.ts", "a.tsx", false},
    {"*.ts", "a.ts/b", true},
    {"*.ts", ".ts", true},
    {"a*c", "abbbc", true},
    {"a*c", "ab/c", false},
    {"a*b*c", "aXbYbc", true},
    {"a*b*c", "aXcYc", false},
    {"*", "anything", true},
    {"src/*.c", "src/a.c", true},
    {"src/*.c", "src/x/a.c", false},
    /* Two stars do not. */
    {"**", "a/b/c", true},
    {"src/**", "src/a/b", true},
    {"src/**/a.c", "src/x/y/a.c", true},
    {"src/**/a.c", "src/a.c", true},
    {"src/**/a.c", "src/xa.c", false},
    {"src/**/a.c", "srca.c", false},
    {"**/*.c", "a.c", true},
    {"**/*.c", "x/y/a.c", true},
    {"**/**/a", "a", true},
    {"**/**/a", "x/a", true},
    {"a**c", "a/b/c", true},
    {"a**c", "a/b/d", false},
    {"***.c", "x/a.c", true},
    {"x/**/y/**/z", "x/1/y/2/3/z", true},
    {"x/**/y/**/z", "x/y/z", true},
    {"x/**/y/**/z", "x/z/y", false},
    /* One character, which may be several bytes, and is no separator. */
    {"?.c", "a.c", true},
    {"?.c", "\xc3\xa4.c", true},
    {"?.c", "ab.c", false},
    {"a?b", "a/b", false},
    {"?", "\xff", true},
    {"??", "\xe2\x82\xac\xff", true},
    {"\xc3\xa4*", "\xc3\xa4rger", true},
    {"\xff", "\xff", true},
    {"\xff", "\xfe", false},
    /* What means something elsewhere stands for itself. */
    {"a.c", "abc", false},
    {"a+(b|c)$^\\", "a+(b|c)$^\\", true},
    /* Around the pattern. */
    {"src/", "src/a", true},
    {"./src", "src/a", true},
    {".//src", "lib/src", true},
    /* Absolute patterns begin at the beginning. */
    {"/workspace/src", "src/a", true},
    {"/workspace/src", "src2", false},
    {"/src", "src", false},
    {"/workspace/*.c", "a.c", true},
    {"/workspace/*.c", "x/a.c", false},
    {"/**/a.c", "x/a.c", true},
};

static void the_table_holds(void **state)
{
    (void) state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (finds(rows[i].pattern, rows[i].path) != rows[i].found)
            fail_msg("'%s' in '%s' should be %d", rows[i].pattern, rows[i].path, rows[i].found);
    }
}

static void other_dialects_and_empty_patterns_are_refused(void **state)
{
    static const char *const bad[] = {"", "/", "./", "//", "[a]", "a]", "{a,b}", "x}"};
    AUTO(pool) struct pool pool = POOL_INIT;
    char text[GLOB_MAX + 2] = {0};
    struct glob glob;

    (void) state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(glob_read(bad[i], &pool, &glob), -EINVAL);
    memset(text, 'a', GLOB_MAX + 1);
    assert_int_equal(glob_read(text, &pool, &glob), -EINVAL);
    text[GLOB_MAX] = '\0';
    assert_int_equal(glob_read(text, &pool, &glob), 0);
    assert_true(glob_finds(&glob, text, "/"));
}

/* A matcher that tries all ways would not come back before the end of the world. */
static void many_stars_are_no_burden(void **state)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    char pattern[513] = {0}, path[4096];
    struct glob glob;

    (void) state;
    for (size_t i = 0; i < 512; i++)
        pattern[i] = "*a"[i % 2];
    pattern[511] = 'b';
    memset(path, 'a', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    assert_int_equal(glob_read(pattern, &pool, &glob), 0);
    assert_false(glob_finds(&glob, path, path));
    path[sizeof(path) - 2] = 'b';
    assert_true(glob_finds(&glob, path, path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_holds),
        cmocka_unit_test(other_dialects_and_empty_patterns_are_refused),
        cmocka_unit_test(many_stars_are_no_burden),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
