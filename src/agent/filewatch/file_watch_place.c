#include "agent/filewatch/file_watch_place.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/auto.h"
#include "base/memory.h"
#include "base/path.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_open_beneath.h"

/* The part of `real` below `base`, both without links. */
static const char *part_below(const char *base, const char *real)
{
    const char *rest = strcmp(base, "/") == 0 ? real : real + strlen(base);

    return *rest == '/' ? rest + 1 : rest;
}

/* What is there is a folder: 1; something else: 0; or -errno. */
static int watch_place_look(const char *base_path, const char *relative)
{
    AUTO(close) int base = sys_file_open(AT_FDCWD, base_path, O_PATH | O_DIRECTORY, 0);
    AUTO(close) int fd = -EBADF;
    struct stat status;

    if (base < 0)
        return base;
    fd = sys_open_beneath(base, *relative ? relative : ".", O_PATH | O_NOFOLLOW, 0);
    if (fd < 0)
        return fd == -ELOOP ? -EXDEV : fd;
    return fstat(fd, &status) < 0 ? -errno : S_ISDIR(status.st_mode);
}

int watch_place_find(const char *root, const char *path, struct watch_place *ret_place)
{
    AUTO(free) char *base = realpath(root, NULL);
    AUTO(free) char *real = base ? realpath(path, NULL) : NULL;
    const char *relative, *name;
    int r;

    if (!real)
        return -errno;
    if (!path_is_inside(real, base))
        return -EXDEV;
    relative = part_below(base, real);
    r = watch_place_look(base, relative);
    if (r < 0)
        return r;
    if (r > 0) {
        ret_place->relative = mem_copy_text(relative);
        ret_place->only = NULL;
    } else {
        name = strrchr(relative, '/');
        name = name ? name + 1 : relative;
        ret_place->relative =
            mem_copy_bytes(relative, name > relative ? (size_t) (name - relative - 1) : 0);
        ret_place->only = mem_copy_text(name);
    }
    ret_place->base = TAKE_PTR(base);
    return 0;
}
