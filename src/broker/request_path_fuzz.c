/* A path that is taken has no dots left, however often it is unescaped, and is taken again as it is;
 * a query keeps what it had but the parameter. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "broker/request_path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_segments(const char *path, struct pool *pool)
{
    char *copy = pool_copy_text(pool, path);

    for (int i = 0; i < 3; i++) {
        for (const char *at = copy; *at; at++) {
            size_t length = strcspn(at + 1, "/\\");

            must((*at != '/' && *at != '\\') ||
                 !((length == 1 && at[1] == '.') || (length == 2 && at[1] == '.' && at[2] == '.')));
        }
        if (url_decode(url_span(copy, strlen(copy)), URL_DECODE_PATH, copy, strlen(copy) + 1) < 0)
            return;
    }
}

static void check_path(struct url_span raw, struct pool *pool)
{
    const char *path, *again, *route, *rest;

    if (request_path_read(raw, pool, &path, NULL) < 0)
        return;
    must(path[0] == '/' && strlen(path) <= raw.length + 1);
    check_segments(path, pool);
    must(request_path_read(url_span(path, strlen(path)), pool, &again, NULL) == 0);
    must(strcmp(path, again) == 0);
    if (request_path_route(path, pool, &route, &rest, NULL) == 0)
        must(rest[0] == '/' && !strchr(route, '/') && *route);
}

static void check_query(struct url_span raw, struct pool *pool)
{
    const char *edited = request_query_edit(raw, "key", NULL, pool);
    struct url_span value;

    if (edited)
        must(url_query_find(url_span(edited, strlen(edited)), "key", &value) < 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    char *text;

    if (size > 2048 || memchr(data, '\0', size))
        return 0;
    text = pool_copy_bytes(&pool, data, size);
    check_path(url_span(text, size), &pool);
    check_query(url_span(text, size), &pool);
    return 0;
}
