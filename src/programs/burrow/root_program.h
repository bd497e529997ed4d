/* Handing over to a program of root's. `burrow` contains no code that needs root, so the verbs that
 * do become one of these. */
#pragma once

#include <limits.h>

#include "base/error.h"

/* The one that stays, and the one that does a verb and ends. */
#define LAUNCHER_PROGRAM "burrow-launcher"
#define ADMIN_PROGRAM    "burrow-admin"

/* Where `program` is: beside `self` (the path of this program; NULL: /proc/self/exe says), else in
 * `path` (as $PATH; may be NULL). Returns 0, or -1 with ERR_NOT_FOUND. */
int root_program_find(const char *program, const char *self, const char *path,
                      char ret_path[static PATH_MAX], struct error *err);

/* Become `program ARGUMENTS` (NULL at the end). Returns -1, and only when that failed. */
int root_program_exec(const char *program, const char *const *arguments, struct error *err);

/* Become ADMIN_PROGRAM with that verb and these words behind it; the exit status when it failed. */
int root_program_exec_verb(const char *verb, int argc, char **argv);
