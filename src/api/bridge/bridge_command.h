/* A list of arguments as one line for bash, quoted so that bash reads the same arguments. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

void bridge_command_write(struct text *line, const char *const *arguments, size_t count);

/* Whether running `program` needs no shell to mean the same: a path is what bash would execute, a
 * bare name may be a builtin, and NAME=VALUE is an assignment. */
bool bridge_command_is_program(const char *program);
