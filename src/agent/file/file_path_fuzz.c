/* A directory and a path, split by a newline: what is joined is absolute and plain, and has the
 * components of both in their order. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/file/file_path.h"

static void check(int promise)
{
    if (!promise)
        abort();
}

/* The next component that says something, or NULL at the end. */
static const char *next(const char **path, size_t *ret_length)
{
    const char *component;

    do {
        component = *path += strspn(*path, "/");
        *ret_length = strcspn(component, "/");
        *path += *ret_length;
    } while (*ret_length == 1 && component[0] == '.');
    return *ret_length ? component : NULL;
}

static void check_components(const char **joined, const char *path)
{
    size_t length, joined_length;
    const char *component, *other;

    while ((component = next(&path, &length))) {
        other = next(joined, &joined_length);
        check(other && joined_length == length && memcmp(other, component, length) == 0);
    }
}

static void check_form(const char *joined)
{
    size_t length = strlen(joined);

    check(joined[0] == '/' && !strstr(joined, "//") && !strstr(joined, "/./"));
    check(length == 1 || joined[length - 1] != '/');
    check(length < 2 || strcmp(joined + length - 2, "/.") != 0);
    check(!strchr(file_path_name(joined), '/'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    char *directory = pool_copy_bytes(&pool, data, size);
    char *path = memchr(directory, '\n', size);
    size_t length;
    const char *joined;

    if (!path)
        return 0;
    *path++ = '\0';
    length = size - (size_t) (path - directory);
    if (file_path_check(path, length) < 0) {
        check(!length || length > FILE_PATH_MAX || strlen(path) < length);
        return 0;
    }
    joined = file_path_join(&pool, directory, path);
    check_form(joined);
    if (path[0] != '/')
        check_components(&joined, directory);
    check_components(&joined, path);
    check(!next(&joined, &length));
    return 0;
}
