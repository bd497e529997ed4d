#include "base/path.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

static bool is_here(const char *step, size_t length)
{
    return length == 0 || (length == 1 && step[0] == '.');
}

static bool is_up(const char *step, size_t length)
{
    return length == 2 && step[0] == '.' && step[1] == '.';
}

size_t path_append(char *text, size_t length, const char *path, enum path_up up)
{
    while (*path) {
        size_t step = strcspn(path, "/");

        if (up == PATH_UP_BACK && is_up(path, step)) {
            while (length > 0 && text[--length] != '/')
                ;
        } else if (!is_here(path, step)) {
            text[length++] = '/';
            memcpy(text + length, path, step);
            length += step;
        }
        path += step + (path[step] == '/');
    }
    return length;
}

char *path_resolve(struct pool *pool, const char *folder, const char *path)
{
    char *text = pool_alloc_raw(pool, strlen(folder) + strlen(path) + 4);
    size_t length = path[0] == '/' ? 0 : path_append(text, 0, folder, PATH_UP_BACK);

    length = path_append(text, length, path, PATH_UP_BACK);
    if (length == 0)
        text[length++] = '/';
    text[length] = '\0';
    return text;
}

int path_relative(const char *path, char *ret_path)
{
    size_t length = 0, count = 0;

    for (size_t step; *path; path += step + (path[step] == '/')) {
        step = strcspn(path, "/");
        if (is_up(path, step))
            return -EXDEV;
        if (is_here(path, step))
            continue;
        if (step > NAME_MAX || ++count > PATH_STEPS_MAX)
            return -ENAMETOOLONG;
        if (length)
            ret_path[length++] = '/';
        memmove(ret_path + length, path, step);
        length += step;
    }
    ret_path[length] = '\0';
    return 0;
}

bool path_is_relative(const char *path)
{
    for (;;) {
        size_t step = strcspn(path, "/");

        if (is_here(path, step) || is_up(path, step))
            return false;
        if (!path[step])
            return true;
        path += step + 1;
    }
}

bool path_is_inside(const char *path, const char *folder)
{
    size_t length = strcmp(folder, "/") == 0 ? 0 : strlen(folder);

    return strncmp(path, folder, length) == 0 && (path[length] == '\0' || path[length] == '/');
}
