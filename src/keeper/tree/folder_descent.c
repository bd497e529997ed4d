#include "keeper/tree/folder_descent.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "sys/file/sys_file.h"

#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW)

static int remember_folder(struct folder_descent *descent)
{
    struct stat status;

    if (fstat(descent->folder, &status) < 0)
        return -errno;
    if (descent->depth == descent->capacity) {
        descent->capacity = descent->capacity ? descent->capacity * 2 : 64;
        descent->above = mem_resize(descent->above, descent->capacity * sizeof(*descent->above));
    }
    descent->above[descent->depth] = (struct folder_identity){status.st_dev, status.st_ino};
    return 0;
}

int folder_descent_begin(struct folder_descent *descent, int top)
{
    descent->folder = sys_file_open(top, ".", FOLDER_FLAGS, 0);
    return descent->folder < 0 ? descent->folder : 0;
}

int folder_descent_enter(struct folder_descent *descent, const char *name)
{
    int result = remember_folder(descent);
    int folder = result < 0 ? result : sys_file_open(descent->folder, name, FOLDER_FLAGS, 0);

    if (folder < 0)
        return folder;
    (void) fd_close(descent->folder);
    descent->folder = folder;
    descent->depth++;
    return 0;
}

int folder_descent_open_above(const struct folder_descent *descent)
{
    const struct folder_identity *wanted = &descent->above[descent->depth - 1];
    AUTO(close) int folder = sys_file_open(descent->folder, "..", FOLDER_FLAGS, 0);
    struct stat status;

    if (folder < 0)
        return folder;
    if (fstat(folder, &status) < 0)
        return -errno;
    if (status.st_dev != wanted->device || status.st_ino != wanted->inode)
        return -ESTALE;
    return TAKE_FD(folder);
}

void folder_descent_leave(struct folder_descent *descent, int above)
{
    (void) fd_close(descent->folder);
    descent->folder = above;
    descent->depth--;
}

void folder_descent_end(struct folder_descent *descent)
{
    descent->folder = fd_close(descent->folder);
    descent->depth = 0;
}

void folder_descent_done(struct folder_descent *descent)
{
    folder_descent_end(descent);
    free(descent->above);
    descent->above = NULL;
    descent->capacity = 0;
}
