#include "agent/exec/shell_command.h"

#include <string.h>

#include "base/auto.h"

/* Bytes that mean themselves wherever they stand in a word. */
#define PLAIN                                                                                      \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"                               \
    "_./:@+,-"

/* And in a word that is not the first: "a=b" would be an assignment, "%1" a job. */
#define PLAIN_ARGUMENT PLAIN "=%"

#define BLANKS " \t"

/* Names that are not looked for in PATH: builtins and keywords of bash 3 to 5.2. */
static const char *const shell_words[] = {
    ".",       ":",      "alias",   "bg",       "bind",     "break",     "builtin",  "caller",
    "case",    "cd",     "command", "compgen",  "complete", "compopt",   "continue", "coproc",
    "declare", "dirs",   "disown",  "do",       "done",     "echo",      "elif",     "else",
    "enable",  "esac",   "eval",    "exec",     "exit",     "export",    "false",    "fc",
    "fg",      "fi",     "for",     "function", "getopts",  "hash",      "help",     "history",
    "if",      "in",     "jobs",    "kill",     "let",      "local",     "logout",   "mapfile",
    "popd",    "printf", "pushd",   "pwd",      "read",     "readarray", "readonly", "return",
    "select",  "set",    "shift",   "shopt",    "source",   "suspend",   "test",     "then",
    "time",    "times",  "trap",    "true",     "type",     "typeset",   "ulimit",   "umask",
    "unalias", "unset",  "until",   "wait",     "while",
};

static bool is_shell_word(const char *word)
{
    for (size_t i = 0; i < ARRAY_COUNT(shell_words); i++) {
        if (strcmp(word, shell_words[i]) == 0)
            return true;
    }
    return false;
}

/* BASH_ENV, exported functions, SHELLOPTS and their kin make bash do more than it was told. */
static bool changes_shells(const char *const *environment)
{
    for (; environment && *environment; environment++) {
        if (strncmp(*environment, "BASH", 4) == 0 || strncmp(*environment, "SHELLOPTS=", 10) == 0)
            return true;
    }
    return false;
}

/* Cut the first word off `*at`. NULL at the end, or when it is not plain (*ret_plain false). */
static char *next_word(char **at, const char *plain, bool *ret_plain)
{
    char *word = *at + strspn(*at, BLANKS);
    size_t length = strspn(word, plain);

    *ret_plain = !word[length] || strchr(BLANKS, word[length]);
    *at = word + length;
    if (**at)
        *(*at)++ = '\0';
    return length ? word : NULL;
}

const char *const *shell_command_split(const char *command, const char *const *environment,
                                       struct pool *pool)
{
    const char **words;
    char *at;
    bool plain;
    size_t count = 0;

    if (strlen(command) > SHELL_COMMAND_PLAIN_MAX || changes_shells(environment))
        return NULL;
    words = pool_alloc(pool, (SHELL_COMMAND_WORDS_MAX + 1) * sizeof(*words));
    at = pool_copy_text(pool, command);
    words[0] = next_word(&at, PLAIN, &plain);
    while (plain && words[count] && count + 1 < SHELL_COMMAND_WORDS_MAX)
        words[++count] = next_word(&at, PLAIN_ARGUMENT, &plain);
    if (!plain || !words[0] || words[count] || is_shell_word(words[0]))
        return NULL;
    return words;
}
