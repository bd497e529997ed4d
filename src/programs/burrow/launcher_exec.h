/* Handing over to burrow-launcher, the program with everything that needs root. `burrow` contains
 * none of that code, so the verbs that need it become that program. */
#pragma once

#include <limits.h>

#include "base/error.h"

#define LAUNCHER_PROGRAM "burrow-launcher"

/* Where the launcher is: beside `self` (the path of this program; NULL: /proc/self/exe says), else
 * in `path` (as $PATH; may be NULL). Returns 0, or -1 with ERR_NOT_FOUND. */
int launcher_find(const char *self, const char *path, char ret_path[static PATH_MAX],
                  struct error *err);

/* Become `burrow-launcher ARGUMENTS` (NULL at the end). Returns -1, and only when that failed. */
int launcher_exec(const char *const *arguments, struct error *err);

/* The verb of that name with these words behind it; the exit status when it failed. */
int launcher_exec_verb(const char *verb, int argc, char **argv);
