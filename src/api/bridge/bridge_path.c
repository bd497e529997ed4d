#include <stdbool.h>
#include <string.h>

#include "api/bridge/bridge_internal.h"

static bool is_step(const char *part, size_t length, const char *step)
{
    return length == strlen(step) && memcmp(part, step, length) == 0;
}

/* Cut "/last" off the end; the root of all has none. */
static size_t without_last(const char *path, size_t length)
{
    while (length && path[length - 1] != '/')
        length--;
    return length ? length - 1 : 0;
}

/* Walk `path` from the end of what is in `at`, which has room for all of it. Returns the new end.
 */
static size_t bridge_path_walk(char *at, size_t end, const char *path)
{
    while (*path) {
        size_t length = strcspn(path, "/");

        if (is_step(path, length, "..")) {
            end = without_last(at, end);
        } else if (length && !is_step(path, length, ".")) {
            at[end++] = '/';
            memcpy(at + end, path, length);
            end += length;
        }
        path += length + (path[length] == '/');
    }
    return end;
}

static bool is_inside(const char *path)
{
    size_t root = strlen(BRIDGE_ROOT);

    return strncmp(path, BRIDGE_ROOT, root) == 0 && (!path[root] || path[root] == '/');
}

const char *bridge_path_resolve(struct pool *pool, const char *path)
{
    char *resolved = pool_alloc_raw(pool, strlen(BRIDGE_ROOT) + strlen(path) + 2);
    size_t end = path[0] == '/' ? 0 : bridge_path_walk(resolved, 0, BRIDGE_ROOT);

    end = bridge_path_walk(resolved, end, path);
    resolved[end] = '\0';
    return is_inside(resolved) ? resolved : NULL;
}
