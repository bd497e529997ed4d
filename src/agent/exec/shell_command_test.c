#include <string.h>

#include "agent/agent_test.h"
#include "agent/exec/shell_command.h"
#include "base/auto.h"

static const char *const no_environment[] = {"PATH=/bin", NULL};

static void plain_words_need_no_shell(void **state)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    const char *const *words =
        shell_command_split("  /bin/ls -la\t--color=never a,b@c:d+e %1 ", no_environment, &pool);
    static const char *const expected[] = {"/bin/ls", "-la", "--color=never", "a,b@c:d+e", "%1"};

    (void) state;
    assert_non_null(words);
    for (size_t i = 0; i < ARRAY_COUNT(expected); i++)
        assert_string_equal(words[i], expected[i]);
    assert_null(words[ARRAY_COUNT(expected)]);
}

static void whatever_a_shell_would_read_differently_needs_one(void **state)
{
    static const char *const commands[] = {
        "",        "   ",         "echo hi",   "true",   "cd /",     "a=b",       "a=b ls",
        "ls;ls",   "ls|cat",      "ls&",       "ls >x",  "ls <x",    "ls $HOME",  "ls `x`",
        "ls *",    "ls ?",        "ls [a]",    "ls ~",   "ls {a,b}", "ls 'a'",    "ls \"a\"",
        "ls \\a",  "ls #x",       "ls\nls",    "(ls)",   "! ls",     "%1",        "ls ^a",
        "if",      "time ls",     "exec ls",   ". file", ": x",      "[ a ]",     "ls a\rb",
        "ls \x7f", "ls \xc3\xa4", "kill -9 1", "{ ls",   "l\\s",     "test -f x", "printf x",
    };
    AUTO(pool) struct pool pool = POOL_INIT;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(commands); i++) {
        if (shell_command_split(commands[i], no_environment, &pool))
            fail_msg("'%s' was taken for plain words", commands[i]);
    }
}

/* Every byte that is not known to be harmless, in every place of a word. */
static void unknown_bytes_need_a_shell_wherever_they_stand(void **state)
{
    static const char harmless[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                   "0123456789_./:@+,-=% \t";
    AUTO(pool) struct pool pool = POOL_INIT;

    (void) state;
    for (int byte = 1; byte < 256; byte++) {
        char commands[3][8] = {"ls Xab", "ls aXb", "ls abX"};

        if (strchr(harmless, byte))
            continue;
        for (size_t i = 0; i < ARRAY_COUNT(commands); i++) {
            *strchr(commands[i], 'X') = (char) byte;
            assert_null(shell_command_split(commands[i], no_environment, &pool));
        }
    }
}

static void an_environment_that_changes_bash_needs_bash(void **state)
{
    static const char *const variables[] = {"BASH_ENV=/x", "BASH_FUNC_ls%%=() { :; }",
                                            "SHELLOPTS=errexit", "BASHOPTS=x"};
    AUTO(pool) struct pool pool = POOL_INIT;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(variables); i++) {
        const char *const environment[] = {"PATH=/bin", variables[i], NULL};

        assert_null(shell_command_split("ls", environment, &pool));
    }
}

static void long_lines_are_left_to_the_shell(void **state)
{
    char line[SHELL_COMMAND_PLAIN_MAX + 2] = "ls ";
    char many[SHELL_COMMAND_WORDS_MAX * 2 + 8] = "ls";
    AUTO(pool) struct pool pool = POOL_INIT;

    (void) state;
    memset(line + 3, 'a', SHELL_COMMAND_PLAIN_MAX - 3);
    assert_non_null(shell_command_split(line, no_environment, &pool));
    line[SHELL_COMMAND_PLAIN_MAX] = 'a';
    assert_null(shell_command_split(line, no_environment, &pool));
    for (size_t i = 0; i < SHELL_COMMAND_WORDS_MAX; i++)
        memcpy(many + 2 + 2 * i, " a", 3);
    assert_null(shell_command_split(many, no_environment, &pool));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_words_need_no_shell),
        cmocka_unit_test(whatever_a_shell_would_read_differently_needs_one),
        cmocka_unit_test(unknown_bytes_need_a_shell_wherever_they_stand),
        cmocka_unit_test(an_environment_that_changes_bash_needs_bash),
        cmocka_unit_test(long_lines_are_left_to_the_shell),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
