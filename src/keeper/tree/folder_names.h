/* The names in a folder, in order, within a bound of memory.
 *
 * A folder may hold more names than memory: one reading keeps the smallest of those behind a given
 * name, and `more` says that there are others, for a next reading. So a folder of any size is gone
 * through in order, at the price of reading it several times. The order is that of the bytes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"

/* The smallest limit: one name of any length must fit. */
#define FOLDER_NAMES_MIN 512

struct folder_names {
    char *bytes;      /* owned: names with their NULs, one after the other */
    uint32_t *starts; /* owned: where they begin, in order of the names */
    size_t used, room;
    size_t count, capacity;
    size_t next; /* the one that comes next */
    bool more;   /* the folder has names behind the last of these */
};

#define FOLDER_NAMES_INIT                                                                          \
    {                                                                                              \
        .count = 0                                                                                 \
    }

/* Read the names of `folder` (open for reading; its position is not touched) behind `after` ("":
 * all), without "." and "..". At most `limit` bytes are kept, up to four times that while
 * reading.
 * Replaces what was there. 0 or -errno; may block. */
int folder_names_read(struct folder_names *names, int folder, const char *after, size_t limit);

/* The same for several folders together; a name that several have comes once. */
int folder_names_read_all(struct folder_names *names, const int *folders, size_t count,
                          const char *after, size_t limit);

/* The next name, NULL behind the last. Borrowed until the next reading. */
const char *folder_names_next(struct folder_names *names);

/* The memory they take. */
size_t folder_names_size(const struct folder_names *names);

/* Free everything; may be used again. */
void folder_names_done(struct folder_names *names);

AUTO_DEFINE(folder_names, struct folder_names, folder_names_done);
