/* One level of a folder store: the names of one folder, sorted as keys are. Included by
 * objects_folder*.c only.
 *
 * A level may have millions of names: no more than LEVEL_MAX are held, the first ones behind a
 * mark; whoever wants more reads it again behind the last of those. */
#pragma once

#include "base/auto.h"
#include "objects/folder/objects_folder_internal.h"

#define LEVEL_MAX 1024

/* A segment; that of a folder ends with "/", and so it is sorted: "a-b", "a/", "ab". */
struct level {
    char **names; /* owned, sorted by bytes */
    size_t count;
    bool is_cut;     /* there are more behind the last */
    bool has_object; /* not folders alone */
};

/* Whether a name shall be in the level. */
typedef bool level_wants(void *context, const char *name);

/* Read the folder of keys that begin with `prefix`, which is "" or ends with "/". A folder that is
 * gone is empty. `wants` NULL: nothing but whether there is an object, and else the folders.
 * Returns 0 or -errno. */
int level_read(struct folder *folder, const char *prefix, level_wants *wants, void *context,
               struct level *ret_level);

void level_done(struct level *level);
AUTO_DEFINE(level, struct level, level_done);
