/* One end of `burrow cp`: a file or folder here, one in a sandbox ("demo:/etc/hosts"), or "-".
 *
 * What stands before the first ':' is a sandbox, unless a '/' comes before it: "./a:b" is a file
 * here. A path in a sandbox that is not absolute begins in its folder. Pure. */
#pragma once

#include <stdbool.h>

#include "base/pool.h"

enum copy_kind { COPY_HERE, COPY_THERE, COPY_STREAM };

struct copy_place {
    enum copy_kind kind;
    const char *sandbox; /* COPY_THERE: its name */
    const char *path;    /* as written; of COPY_THERE perhaps "" or relative */
};

/* Texts are borrowed from `word` or in the pool. */
void copy_place_read(const char *word, struct pool *pool, struct copy_place *ret_place);

/* `path` made absolute beneath `folder`, without a slash at its end (but "/" stays). */
const char *copy_place_resolve(const char *folder, const char *path, struct pool *pool);

/* Whether it says by itself that it is a folder: it ends in '/', or in "." or "..", or is empty. */
bool copy_place_is_folder(const char *path);

/* Whether it means what is in the folder and not the folder: "." or "/." at its end. */
bool copy_place_is_content(const char *path);

/* The last name of a path; "" when it has none ("/", "a/.."). In the pool. */
const char *copy_place_name(const char *path, struct pool *pool);

/* "folder/name", with one slash between them. */
const char *copy_place_join(const char *folder, const char *name, struct pool *pool);
