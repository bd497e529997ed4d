/* Paths as text, in one spelling: no empty steps, no ".", no slash at the end. Pure: where links lead
 * is known by those alone who open a path. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/pool.h"

/* The steps of a relative path. */
#define PATH_STEPS_MAX 256

/* What ".." means. */
enum path_up {
    PATH_UP_BACK, /* the last step is taken back; at the root nothing is */
    PATH_UP_STEP, /* a step like others, since a link may be before it */
};

/* Append "/step" for every step of `path` that says something to the `length` bytes at `text`, which
 * has room for strlen(path) + 1 more. Returns the new length; there is no NUL. */
size_t path_append(char *text, size_t length, const char *path, enum path_up up);

/* Where `path` leads from `folder`, or from the root when it is absolute: absolute, ".." taken back,
 * "/" at least. In the pool. */
char *path_resolve(struct pool *pool, const char *folder, const char *path);

/* A path as one without a slash in front, "" for that of the folder itself, in `ret_path`, which has
 * room for all of `path` and may be it. 0, -EXDEV when ".." is in it, or -ENAMETOOLONG: a step, or so
 * many of them. */
int path_relative(const char *path, char *ret_path);

/* Whether every step says something and none leads up: a relative path in its one spelling. */
bool path_is_relative(const char *path);

/* Whether `path` is `folder` or below it. Both are in one spelling, absolute or relative. */
bool path_is_inside(const char *path, const char *folder);
