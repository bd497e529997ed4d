#include <setjmp.h>
#include <stdarg.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_match_as_in_git),
        cmocka_unit_test(paths_match_as_in_git),
        cmocka_unit_test(names_match_as_in_a_shell),
        cmocka_unit_test(what_can_match_nothing_is_refused),
        cmocka_unit_test(a_pattern_that_would_take_for_ever_does_not),
    };

    return cmocka_run_group_tests_name("ignore_pattern", tests, NULL, NULL);
}
