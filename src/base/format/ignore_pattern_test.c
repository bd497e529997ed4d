#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/format/ignore_pattern.h"
/* After the headers it needs. */
#include <cmocka.h>

#define LONG 4000

static bool matches(enum ignore_dialect dialect, const char *pattern, const char *text)
{
    AUTO(ignore_pattern) struct ignore_pattern read = {.tokens = NULL};

    if (ignore_pattern_read(pattern, strlen(pattern), dialect, &read) < 0)
        return false;
    return ignore_pattern_matches(&read, text, strlen(text));
}

struct example {
    const char *pattern;
    const char *yes; /* texts between spaces */
    const char *no;
};

static void check_texts(enum ignore_dialect dialect, const char *pattern, const char *texts,
                        bool expected)
{
    char text[128];

    for (const char *at = texts; *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");

        memcpy(text, at, length);
        text[length] = '\0';
        if (matches(dialect, pattern, text) != expected)
            fail_msg("'%s' %s '%s'", pattern, expected ? "does not match" : "matches", text);
        at += length;
    }
}

static void check(enum ignore_dialect dialect, const struct example *examples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        check_texts(dialect, examples[i].pattern, examples[i].yes, true);
        check_texts(dialect, examples[i].pattern, examples[i].no, false);
    }
}

static void names_match_as_in_git(void **state)
{
    static const struct example examples[] = {
        {"a", "a", "b aa A"},
        {"*.log", "a.log .log", "log a.logs"},
        {"a*b*c", "abc axxbyyc abbc", "ab abcd acb"},
        {"**", "a .a", ""},
        {"a**b", "ab axb", "a"},
        {"?", "a .", "aa"},
        {"[abc]", "a c", "d ab"},
        {"[a-c]x", "ax bx", "dx"},
        {"[!a-c]", "d", "a b"},
        {"[^a-c]", "d", "a b"},
        {"[]]", "]", "["},
        {"[!]]", "a", "]"},
        {"[a-]", "a -", "b"},
        {"[\\]]", "]", "\\"},
        {"[a\\-c]", "a - c", "b"},
        {"[[:digit:]]x", "1x", "ax"},
        {"[[:upper:]_]", "A _", "a"},
        {"[c-a]", "c", "a b"},
        {"\\*", "*", "a"},
        {"\\#a", "#a", "\\#a"},
        {"a\\b", "ab", "a\\b"},
        {"[[:x", "", "x ["},
    };

    (void) state;
    check(IGNORE_GIT_NAME, examples, ARRAY_COUNT(examples));
}

static void paths_match_as_in_git(void **state)
{
    static const struct example examples[] = {
        {"a/b", "a/b", "a/b/c x/a/b"},
        {"a/*", "a/b a/.b", "a/b/c a"},
        {"**/a", "a x/a x/y/a", "xa a/x"},
        {"a/**", "a/b a/b/c", "a"},
        {"a/**/b", "a/b a/x/b a/x/y/b", "ab a/xb"},
        {"**/a/**/b", "a/b x/a/b x/a/y/z/b", "b a"},
        {"a**/b", "a/b ax/b", "a/x/b ax/y/b"},
        {"a/**b", "a/b a/xb", "a/x/b"},
        {"a?b/c", "axb/c", "a/b/c"},
        {"a[/]b", "", "a/b"},
        {"a[!x]b", "ayb", "a/b axb"},
        {"**/**/a", "a x/y/a", "b"},
        {"***/a", "a x/y/a", "xa"},
        {"*/a", "x/a", "a x/y/a"},
    };

    (void) state;
    check(IGNORE_GIT_PATH, examples, ARRAY_COUNT(examples));
}

static void names_match_as_in_a_shell(void **state)
{
    static const struct example examples[] = {
        {"*", "a", ".a"},  {"?a", "xa", ".a"}, {".*", ".a", "a"},    {"[.]a", "", ".a"},
        {"a[", "a[", "a"}, {"[a", "[a", "a"},  {"*.o", "a.o", ".o"}, {"\\.a", ".a", "xa"},
    };

    (void) state;
    check(IGNORE_SHELL, examples, ARRAY_COUNT(examples));
}

static void what_can_match_nothing_is_refused(void **state)
{
    static const char *const refused[] = {"",          "[", "[a", "[a-", "a\\", "[[:nothing:]]",
                                          "[[:alpha:]"};
    struct ignore_pattern pattern;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(refused); i++)
        assert_int_equal(
            ignore_pattern_read(refused[i], strlen(refused[i]), IGNORE_GIT_NAME, &pattern),
            -EINVAL);
}

static void a_pattern_that_would_take_for_ever_does_not(void **state)
{
    static char pattern[LONG + 1], text[LONG + 1];

    (void) state;
    for (size_t i = 0; i < LONG; i++) {
        pattern[i] = "a*"[i % 2];
        text[i] = 'a';
    }
    pattern[LONG - 1] = 'b';
    assert_false(matches(IGNORE_GIT_NAME, pattern, text));
    for (size_t i = 0; i + 4 < LONG; i += 4)
        memcpy(pattern + i, "**/a", 4); /* NOLINT: it goes on behind */
    for (size_t i = 1; i < LONG; i += 2)
        text[i] = '/';
    assert_false(matches(IGNORE_GIT_PATH, pattern, text));
}

static bool finds(const char *pattern, const char *path)
{
    AUTO(ignore_pattern) struct ignore_pattern read = {.tokens = NULL};
    char absolute[256];

    if (ignore_pattern_read(pattern, strlen(pattern), IGNORE_WATCH, &read) < 0)
        fail_msg("'%s' was refused", pattern);
    (void) snprintf(absolute, sizeof(absolute), "/workspace/%s", path);
    return ignore_pattern_finds(&read, path, absolute);
}

static const struct {
    const char *pattern;
    const char *path;
    bool found;
} parts[] = {
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

static void a_watch_finds_whole_names_anywhere(void **state)
{
    (void) state;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (finds(parts[i].pattern, parts[i].path) != parts[i].found)
            fail_msg("'%s' in '%s' should be %d", parts[i].pattern, parts[i].path, parts[i].found);
    }
}

static void a_watch_refuses_other_dialects_and_empty_patterns(void **state)
{
    static const char *const bad[] = {"", "/", "./", "//", "[a]", "a]", "{a,b}", "x}"};
    AUTO(ignore_pattern) struct ignore_pattern read = {.tokens = NULL};
    char text[IGNORE_WATCH_MAX + 2] = {0};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
        assert_int_equal(ignore_pattern_read(bad[i], strlen(bad[i]), IGNORE_WATCH, &read), -EINVAL);
    memset(text, 'a', IGNORE_WATCH_MAX + 1);
    assert_int_equal(ignore_pattern_read(text, IGNORE_WATCH_MAX + 1, IGNORE_WATCH, &read), -EINVAL);
    text[IGNORE_WATCH_MAX] = '\0';
    assert_int_equal(ignore_pattern_read(text, IGNORE_WATCH_MAX, IGNORE_WATCH, &read), 0);
    assert_true(ignore_pattern_finds(&read, text, "/"));
}

/* A matcher that tries all ways would not come back before the end of the world. */
static void many_stars_of_a_watch_are_no_burden(void **state)
{
    AUTO(ignore_pattern) struct ignore_pattern read = {.tokens = NULL};
    char pattern[513] = {0}, path[4096];

    (void) state;
    for (size_t i = 0; i < 512; i++)
        pattern[i] = "*a"[i % 2];
    pattern[511] = 'b';
    memset(path, 'a', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    assert_int_equal(ignore_pattern_read(pattern, 512, IGNORE_WATCH, &read), 0);
    assert_false(ignore_pattern_finds(&read, path, path));
    path[sizeof(path) - 2] = 'b';
    assert_true(ignore_pattern_finds(&read, path, path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_match_as_in_git),
        cmocka_unit_test(paths_match_as_in_git),
        cmocka_unit_test(names_match_as_in_a_shell),
        cmocka_unit_test(what_can_match_nothing_is_refused),
        cmocka_unit_test(a_pattern_that_would_take_for_ever_does_not),
        cmocka_unit_test(a_watch_finds_whole_names_anywhere),
        cmocka_unit_test(a_watch_refuses_other_dialects_and_empty_patterns),
        cmocka_unit_test(many_stars_of_a_watch_are_no_burden),
    };

    return cmocka_run_group_tests_name("ignore_pattern", tests, NULL, NULL);
}
