/* Globs: patterns for paths, as clients of file watches write them.
 *
 *     *      any characters of one name
 *     **     any characters, also of several folders; "a/" "**" "/b" finds a/b too
 *     ?      one character of a name
 *
 * All else stands for itself. A pattern names whole names of a path, anywhere in it: "src" finds
 * src, src/a.c and lib/src/a.c but not src2; "*.ts" finds x/a.ts. So whatever is below a folder
 * that is found is found too. A pattern that begins with '/' is one for absolute paths, from the
 * beginning. "./" in front and '/' behind mean nothing.
 *
 * The time to compare is at most the product of both lengths, whatever they hold. Characters are
 * UTF-8; a byte that is none counts as one. Not thread-safe while being made, afterwards it is. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"

/* Bytes of a pattern. */
#define GLOB_MAX ((size_t) 1024)

struct glob {
    const uint32_t *tokens; /* from the pool */
    size_t count;
    bool is_absolute;
};

/* Returns 0 with a glob that lives as long as `pool`, or -EINVAL: empty, too long, or with one of
 * the characters []{} that mean something in other dialects. */
int glob_read(const char *pattern, struct pool *pool, struct glob *ret_glob);

/* Whether the glob is found in `relative`, a path without '/' in front; or in `absolute`, when it
 * is for those. */
bool glob_finds(const struct glob *glob, const char *relative, const char *absolute);
