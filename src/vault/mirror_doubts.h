/* Files of a mirror whose objects may be others than its list says: a sync puts them in place one
 * after the other, and one that is cut off leaves some of them new while the list is old.
 *
 * The paths that a sync is about to touch are kept beside the list before it begins, and go when it
 * is over. Who finds them there believes nothing of what the list says about these files: they are
 * put again, or deleted when the folder does not have them any more.
 *
 *     {"path":"src/a.c","type":"doubt"}        one line each, in any order, perhaps twice */
#pragma once

#include <stdbool.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/text.h"

/* Behind the key of the list. */
#define MIRROR_DOUBTS_SUFFIX ".doubts"

struct mirror_doubt {
    char *path; /* owned: as lists have it */
    bool is_seen;
};

struct mirror_doubts {
    struct text text; /* the lines */
    struct mirror_doubt *items;
    size_t count, room, next;
    bool is_bad; /* a line made no sense: everything is in doubt */
};

#define MIRROR_DOUBTS_INIT(maximum)                                                                \
    {                                                                                              \
        .text = TEXT_INIT(maximum)                                                                 \
    }

void mirror_doubts_done(struct mirror_doubts *doubts);

AUTO_DEFINE(mirror_doubts, struct mirror_doubts, mirror_doubts_done);

/* What `text` says. Lines that are added later are not looked at. */
void mirror_doubts_read(struct mirror_doubts *doubts);

/* Whether this file is in doubt; it counts as seen from now on. */
bool mirror_doubts_have(struct mirror_doubts *doubts, const char *path);

/* The next one that was never seen, borrowed; NULL: that was the last. */
const char *mirror_doubts_next_unseen(struct mirror_doubts *doubts);

/* One more line, unless that path was read: a sync that is cut off again and again must not make
 * them more each time. -1: there is no room for it. */
int mirror_doubts_add(struct mirror_doubts *doubts, const char *path);
