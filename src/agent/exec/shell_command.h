/* Which commands need no shell.
 *
 * Starting bash takes longer than most commands run. A command line that is nothing but words, the
 * first of them a program, means the same with and without bash, so bash can be left out. Whatever
 * could be syntax, expansion, a builtin, a keyword or an assignment is not such a command. */
#pragma once

#include <stdbool.h>

#include "base/pool.h"

/* Longest command line that is looked at: those worth the look are short. */
#define SHELL_COMMAND_PLAIN_MAX 1024
#define SHELL_COMMAND_WORDS_MAX 64

/* The words of a plain command, NULL at the end, in the pool; NULL when a shell must run it, also
 * because `environment` changes what a shell would do with it. */
const char *const *shell_command_split(const char *command, const char *const *environment,
                                       struct pool *pool);
