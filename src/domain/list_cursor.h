/* Where a page of a list begins, which has the newest first: behind one that the last page ended
 * with. It is told by its time of creation and its id, so that a cursor stays good when that one,
 * or others, come and go. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/id.h"
#include "base/pool.h"

struct list_cursor {
    int64_t created_ms;
    char id[ID_SIZE];
};

/* Read one that a list gave out. 0, or -1 with ERR_INVALID. */
int list_cursor_read(struct list_cursor *ret_cursor, const char *text, struct error *err);

/* The cursor behind this one, as text. In `pool`. */
const char *list_cursor_write(int64_t created_ms, const struct id *id, struct pool *pool);

/* Whether this one comes behind the cursor: it is older, or as old and of a smaller id. */
bool list_cursor_precedes(const struct list_cursor *cursor, int64_t created_ms,
                          const struct id *id);
