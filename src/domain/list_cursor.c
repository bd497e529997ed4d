#include "domain/list_cursor.h"

#include <inttypes.h>
#include <string.h>

#include "base/number.h"

int list_cursor_read(struct list_cursor *ret_cursor, const char *text, struct error *err)
{
    const char *dot = strchr(text, '.');
    uint64_t created;

    if (!dot || !id_is_valid(dot + 1) ||
        number_parse_digits(text, (size_t) (dot - text), INT64_MAX, &created) < 0)
        return error_set(err, ERR_INVALID, 0,
                         "invalid cursor; use the nextCursor of the page before");
    ret_cursor->created_ms = (int64_t) created;
    memcpy(ret_cursor->id, dot + 1, ID_SIZE);
    return 0;
}

const char *list_cursor_write(int64_t created_ms, const struct id *id, struct pool *pool)
{
    return pool_format(pool, "%" PRId64 ".%s", created_ms, id->text);
}

bool list_cursor_precedes(const struct list_cursor *cursor, int64_t created_ms, const struct id *id)
{
    if (created_ms != cursor->created_ms)
        return created_ms < cursor->created_ms;
    return strcmp(id->text, cursor->id) < 0;
}
