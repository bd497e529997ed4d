#include "api/native/event_cursor.h"

#include <string.h>

#include "api/http/api.h"
#include "base/encoding/hash.h"
#include "base/number.h"

/* A log with more events is not to be expected; larger numbers are how a wrong one is known. */
#define CURSOR_END (INT64_C(1) << 36)

struct permutation event_cursor_view(const struct api *api, const struct caller *caller)
{
    struct permutation view;
    uint8_t digest[SHA256_SIZE];

    hash_hmac(api->cursor_secret, sizeof(api->cursor_secret), caller->owner.text,
              strlen(caller->owner.text), digest);
    memcpy(view.key, digest, sizeof(view.key));
    return view;
}

/* One more than what comes out, because 0 is taken. */
int64_t event_cursor_show(const struct permutation *view, int64_t cursor)
{
    return cursor > 0 ? (int64_t) permutation_apply(view, (uint64_t) cursor) + 1 : cursor;
}

int event_cursor_read(const struct permutation *view, const char *name, const char *text,
                      int64_t minimum, int64_t *ret_cursor, struct error *err)
{
    int64_t shown, cursor;

    if (number_parse(text, minimum, INT64_C(1) << PERMUTATION_BITS, &shown) == 0) {
        cursor = shown > 0 ? (int64_t) permutation_undo(view, (uint64_t) shown - 1) : shown;
        if (cursor < CURSOR_END && (cursor > 0 || shown <= 0)) {
            *ret_cursor = cursor;
            return 0;
        }
    }
    return error_set(err, ERR_INVALID, 0,
                     "'%s' is no cursor of yours in this log; begin again without it", name);
}
