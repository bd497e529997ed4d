/* A path: what is resolved lies below the root and is plain, resolving it again changes nothing,
 * and a path without ".." that begins at the root is never refused. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/bridge/bridge_internal.h"

static void check(int promise)
{
    if (!promise)
        abort();
}

static void check_form(const char *path)
{
    size_t length = strlen(path), root = strlen(BRIDGE_ROOT);

    check(length >= root && memcmp(path, BRIDGE_ROOT, root) == 0);
    check(!path[root] || path[root] == '/');
    check(path[length - 1] != '/' && !strstr(path, "//"));
    for (const char *part = path; part; part = strchr(part, '/')) {
        part++;
        check(strcspn(part, "/") != 1 || part[0] != '.');
        check(strcspn(part, "/") != 2 || memcmp(part, "..", 2) != 0);
    }
}

/* The whole of it, counted instead of written: how many parts are left, and never fewer than none.
 */
static size_t depth(const char *path)
{
    size_t parts = path[0] == '/' ? 0 : 1;

    for (;;) {
        size_t length;

        path += strspn(path, "/");
        length = strcspn(path, "/");
        if (!length)
            return parts;
        if (length == 2 && memcmp(path, "..", 2) == 0)
            parts -= parts > 0;
        else if (length != 1 || path[0] != '.')
            parts++;
        path += length;
    }
}

static size_t slashes(const char *path)
{
    size_t count = 0;

    while ((path = strchr(path, '/'))) {
        path++;
        count++;
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    const char *path = pool_copy_bytes(&pool, data, size);
    const char *resolved = bridge_path_resolve(&pool, path);

    if (!resolved) {
        check(path[0] == '/' || strstr(path, ".."));
        return 0;
    }
    check_form(resolved);
    check(slashes(resolved) == depth(path));
    check(strcmp(bridge_path_resolve(&pool, resolved), resolved) == 0);
    return 0;
}
