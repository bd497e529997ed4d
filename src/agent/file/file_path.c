#include "agent/file/file_path.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#include "agent/file_open.h"
#include "base/path.h"
#include "sys/file/sys_file.h"

int file_path_check(const char *path, size_t length)
{
    if (!length || memchr(path, '\0', length))
        return -EINVAL;
    return length > FILE_PATH_MAX ? -ENAMETOOLONG : 0;
}

char *file_path_join(struct pool *pool, const char *directory, const char *path)
{
    /* A slash before each of the two, one more for the root, and the NUL. */
    char *absolute = pool_alloc_raw(pool, strlen(directory) + strlen(path) + 4);
    size_t length = path[0] == '/' ? 0 : path_append(absolute, 0, directory, PATH_UP_STEP);

    length = path_append(absolute, length, path, PATH_UP_STEP);
    if (length == 0)
        absolute[length++] = '/';
    absolute[length] = '\0';
    return absolute;
}

const char *file_path_name(const char *absolute)
{
    const char *slash = strrchr(absolute, '/');

    return slash ? slash + 1 : absolute;
}

int file_place_open(struct file_place *place, const char *directory, const char *path,
                    struct pool *pool)
{
    int base = AT_FDCWD;

    if (path[0] != '/') {
        base = file_open(AT_FDCWD, directory, O_PATH | O_DIRECTORY, 0);
        if (base < 0)
            return base;
    }
    *place = (struct file_place){
        .base = base,
        .path = path,
        .absolute = file_path_join(pool, directory, path),
    };
    return 0;
}

void file_place_done(struct file_place *place)
{
    place->base = fd_close(place->base);
}
