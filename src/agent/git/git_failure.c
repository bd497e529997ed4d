#include "agent/git/git_failure.h"

#include <string.h>

#include "agent/tool.h"

#define EXIT_FATAL 128

/* In this order: a lost connection says more than the checkout that failed for it, and a server
 * that wants a password says more than "unable to access". */
static const struct {
    const char *words;
    enum api_code code;
} signs[] = {
    {"not found in upstream", API_GIT_BRANCH_NOT_FOUND},
    {"already exists and is not an empty directory", API_GIT_CLONE_FAILED},
    {"Authentication failed", API_GIT_AUTH_FAILED},
    {"could not read Username", API_GIT_AUTH_FAILED},
    {"could not read Password", API_GIT_AUTH_FAILED},
    {"terminal prompts disabled", API_GIT_AUTH_FAILED},
    {"requested URL returned error: 401", API_GIT_AUTH_FAILED},
    {"requested URL returned error: 403", API_GIT_AUTH_FAILED},
    {"Permission denied (", API_GIT_AUTH_FAILED},
    {"Host key verification failed", API_GIT_AUTH_FAILED},
    {"Repository not found", API_GIT_REPOSITORY_NOT_FOUND},
    {"repository not found", API_GIT_REPOSITORY_NOT_FOUND},
    {"' not found", API_GIT_REPOSITORY_NOT_FOUND}, /* fatal: repository 'URL' not found */
    {"does not appear to be a git repository", API_GIT_REPOSITORY_NOT_FOUND},
    {"requested URL returned error: 404", API_GIT_REPOSITORY_NOT_FOUND},
    {"No space left on device", API_NO_SPACE},
    {"Disk quota exceeded", API_NO_SPACE},
    {"Could not resolve host", API_GIT_NETWORK_ERROR},
    {"Failed to connect", API_GIT_NETWORK_ERROR},
    {"Couldn't connect", API_GIT_NETWORK_ERROR},
    {"Connection refused", API_GIT_NETWORK_ERROR},
    {"Connection timed out", API_GIT_NETWORK_ERROR},
    {"Connection reset", API_GIT_NETWORK_ERROR},
    {"Connection closed", API_GIT_NETWORK_ERROR},
    {"Operation too slow", API_GIT_NETWORK_ERROR},
    {"No route to host", API_GIT_NETWORK_ERROR},
    {"Network is unreachable", API_GIT_NETWORK_ERROR},
    {"hung up unexpectedly", API_GIT_NETWORK_ERROR},
    {"early EOF", API_GIT_NETWORK_ERROR},
    {"RPC failed", API_GIT_NETWORK_ERROR},
    {"unable to access '", API_GIT_NETWORK_ERROR},
    {"checkout failed", API_GIT_CHECKOUT_FAILED},
    {"unable to checkout working tree", API_GIT_CHECKOUT_FAILED},
};

enum api_code git_failure_code(int exit_code, const char *words)
{
    if (exit_code == TOOL_EXIT_TIMED_OUT)
        return API_GIT_NETWORK_ERROR;
    for (size_t i = 0; i < ARRAY_COUNT(signs); i++) {
        if (strstr(words, signs[i].words))
            return signs[i].code;
    }
    return exit_code == EXIT_FATAL || exit_code == TOOL_EXIT_MISSING ? API_GIT_OPERATION_FAILED
                                                                     : API_GIT_CLONE_FAILED;
}

const char *git_failure_line(const char *words, size_t *ret_length)
{
    const char *best = NULL;

    for (const char *line = words; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (*line == '\n')
            continue;
        best = line;
        if (strncmp(line, "fatal:", 6) == 0)
            break;
    }
    *ret_length = best ? strcspn(best, "\n") : 0;
    return best ? best : words;
}

const char *git_failure_suggestion(enum api_code code)
{
    switch (code) {
    case API_GIT_REPOSITORY_NOT_FOUND:
        return "Verify the repository URL is correct and accessible";
    case API_GIT_AUTH_FAILED:
        return "Check authentication credentials or use a public repository";
    case API_GIT_BRANCH_NOT_FOUND:
        return "Check the branch name or use the default branch";
    case API_NO_SPACE:
        return "Not enough disk space available. Consider cleaning up temporary files or "
               "increasing storage";
    default:
        return NULL;
    }
}
