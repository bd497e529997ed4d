/* Which folder of a copy was made for which folder of its source, by their numbers in their
 * filesystems.
 *
 * A folder that was renamed keeps its number, and what is in it keeps its times: only by this can a
 * later look at a tree tell that another folder has the name now. 16 bytes a folder, at most
 * FOLDER_TWINS_MAX of them; of more nothing is known, which costs time and no truth. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/auto.h"

#define FOLDER_TWINS_MAX ((size_t) 4 << 20)

struct folder_twin {
    ino_t copy, source; /* 0: a free place */
};

struct folder_twins {
    struct folder_twin *places; /* owned; as many as a power of two */
    size_t count, room;
    size_t limit; /* of them; 0: FOLDER_TWINS_MAX */
};

#define FOLDER_TWINS_INIT                                                                          \
    {                                                                                              \
        .count = 0                                                                                 \
    }

/* Remember a pair, in place of an older one of this copy. */
void folder_twins_put(struct folder_twins *twins, ino_t copy, ino_t source);

/* Whether the copy is known to be of this source. */
bool folder_twins_match(const struct folder_twins *twins, ino_t copy, ino_t source);

void folder_twins_done(struct folder_twins *twins);

AUTO_DEFINE(folder_twins, struct folder_twins, folder_twins_done);
