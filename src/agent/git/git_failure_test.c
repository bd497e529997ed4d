#include <string.h>

#include "agent/agent_test.h"
#include "agent/git/git_failure.h"

static void words_of_git_become_codes(void **state)
{
    static const struct {
        int exit_code;
        const char *words;
        enum api_code code;
    } rows[] = {
        {128, "Cloning into 'x'...\nfatal: repository 'https://h/x/' not found\n",
         API_GIT_REPOSITORY_NOT_FOUND},
        {128, "remote: Repository not found.\nfatal: repository 'https://h/x/' not found\n",
         API_GIT_REPOSITORY_NOT_FOUND},
        {128,
         "fatal: '/x' does not appear to be a git repository\nfatal: Could not read from "
         "remote repository.\n",
         API_GIT_REPOSITORY_NOT_FOUND},
        {128,
         "warning: Could not find remote branch b to clone.\nfatal: Remote branch b not found "
         "in upstream origin\n",
         API_GIT_BRANCH_NOT_FOUND},
        {128, "fatal: Authentication failed for 'https://h/x/'\n", API_GIT_AUTH_FAILED},
        {128, "fatal: could not read Username for 'https://h': terminal prompts disabled\n",
         API_GIT_AUTH_FAILED},
        {128, "fatal: unable to access 'https://h/': The requested URL returned error: 403\n",
         API_GIT_AUTH_FAILED},
        {128,
         "git@h: Permission denied (publickey).\nfatal: Could not read from remote "
         "repository.\n",
         API_GIT_AUTH_FAILED},
        {128, "fatal: unable to access 'https://h/': Could not resolve host: h\n",
         API_GIT_NETWORK_ERROR},
        {128, "fatal: unable to access 'https://h/': The requested URL returned error: 500\n",
         API_GIT_NETWORK_ERROR},
        {128, "fatal: early EOF\nwarning: Clone succeeded, but checkout failed.\n",
         API_GIT_NETWORK_ERROR},
        {128, "fatal: unable to write: No space left on device\n", API_NO_SPACE},
        {128, "warning: Clone succeeded, but checkout failed.\n", API_GIT_CHECKOUT_FAILED},
        {128, "fatal: destination path 'x' already exists and is not an empty directory.\n",
         API_GIT_CLONE_FAILED},
        {128, "fatal: something else\n", API_GIT_OPERATION_FAILED},
        {127, "", API_GIT_OPERATION_FAILED},
        {124, "", API_GIT_NETWORK_ERROR},
        {1, "", API_GIT_CLONE_FAILED},
        {-1, "", API_GIT_CLONE_FAILED},
    };

    (void) state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (git_failure_code(rows[i].exit_code, rows[i].words) != rows[i].code)
            fail_msg("row %zu: %s", i,
                     api_code_text(git_failure_code(rows[i].exit_code, rows[i].words)));
    }
}

static void the_fatal_line_is_the_message(void **state)
{
    static const struct {
        const char *words, *line;
    } rows[] = {
        {"Cloning into 'x'...\nfatal: no\nmore\n", "fatal: no"},
        {"one\ntwo", "two"},
        {"one\n\n\n", "one"},
        {"", ""},
        {"\n", ""},
    };

    (void) state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t length;
        const char *line = git_failure_line(rows[i].words, &length);

        assert_int_equal(length, strlen(rows[i].line));
        assert_memory_equal(line, rows[i].line, length);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_git_become_codes),
        cmocka_unit_test(the_fatal_line_is_the_message),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
