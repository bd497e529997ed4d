#include "cli/copy/copy_place.h"

#include <string.h>

void copy_place_read(const char *word, struct pool *pool, struct copy_place *ret_place)
{
    size_t length = strcspn(word, ":/");

    *ret_place = (struct copy_place){.kind = COPY_HERE, .path = word};
    if (strcmp(word, "-") == 0) {
        ret_place->kind = COPY_STREAM;
    } else if (length && word[length] == ':') {
        ret_place->kind = COPY_THERE;
        ret_place->sandbox = pool_copy_bytes(pool, word, length);
        ret_place->path = word + length + 1;
    }
}

/* Without slashes at its end. */
static size_t length_of(const char *path)
{
    size_t length = strlen(path);

    while (length > 1 && path[length - 1] == '/')
        length--;
    return length;
}

const char *copy_place_join(const char *folder, const char *name, struct pool *pool)
{
    size_t length = length_of(folder);

    if (!*name)
        return pool_copy_bytes(pool, folder, length);
    if (length == 1 && folder[0] == '/')
        return pool_format(pool, "/%s", name);
    return pool_format(pool, "%.*s/%s", (int) length, folder, name);
}

const char *copy_place_resolve(const char *folder, const char *path, struct pool *pool)
{
    const char *whole = path[0] == '/' ? path : copy_place_join(folder, path, pool);
    size_t length = length_of(whole);

    if (length > 1 && strncmp(whole + length - 2, "/.", 2) == 0)
        length--;
    while (length > 1 && whole[length - 1] == '/')
        length--;
    return pool_copy_bytes(pool, whole, length);
}

static bool ends_with_name(const char *path, const char *name)
{
    size_t length = strlen(path), size = strlen(name);

    return length >= size && strcmp(path + length - size, name) == 0 &&
           (length == size || path[length - size - 1] == '/');
}

bool copy_place_is_folder(const char *path)
{
    size_t length = strlen(path);

    return !length || path[length - 1] == '/' || ends_with_name(path, ".") ||
           ends_with_name(path, "..");
}

bool copy_place_is_content(const char *path)
{
    return ends_with_name(path, ".");
}

const char *copy_place_name(const char *path, struct pool *pool)
{
    size_t end = length_of(path), start;

    if (end == 1 && path[0] == '/')
        return "";
    for (start = end; start > 0 && path[start - 1] != '/';)
        start--;
    path = pool_copy_bytes(pool, path + start, end - start);
    return strcmp(path, ".") == 0 || strcmp(path, "..") == 0 ? "" : path;
}
