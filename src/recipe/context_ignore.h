/* .dockerignore: what of a context is never copied.
 *
 * A line is a pattern for a path from the top of the context on (ignore_pattern.h: '*' and '?' do
 * not match '/', "**" as a step matches any number of folders); '/' in front or behind means
 * nothing. What is in a folder that is named is left out with it. A line that begins with '!' takes
 * back: the last line that names a path, or a folder it is in, decides. '#' begins a comment. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/auto.h"
#include "base/error.h"

#define CONTEXT_IGNORE_SIZE_MAX  ((size_t) 1 << 20)
#define CONTEXT_IGNORE_RULES_MAX ((size_t) 4096)

struct context_ignore;

/* NULL with ERR_INVALID ("line 3: ...") or ERR_TOO_LARGE. */
struct context_ignore *context_ignore_read(const char *bytes, size_t length, struct error *err);

/* Accepts NULL. */
void context_ignore_free(struct context_ignore *ignore);
AUTO_DEFINE_PTR(context_ignore, struct context_ignore, context_ignore_free);

/* Whether to leave out what is at `path` ("a/b", no '/' in front). Of NULL: nothing is. */
bool context_ignore_matches(const struct context_ignore *ignore, const char *path);

/* Whether something in a folder that is left out may be taken all the same. */
bool context_ignore_has_exceptions(const struct context_ignore *ignore);
