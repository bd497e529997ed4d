#include "mount/mount_spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/memory.h"
#include "sys/file/sys_file.h"

/* Where the file system knows no files without names, it loses its name at once. */
static int open_unnamed(int folder)
{
    char name[SYS_FILE_NAME_SIZE];
    int fd = sys_file_open(folder, ".", O_TMPFILE | O_RDWR, 0600);
    int r;

    if (fd != -EOPNOTSUPP && fd != -EISDIR && fd != -ENOENT)
        return fd;
    r = sys_file_temporary_name(name);
    if (r < 0)
        return r;
    fd = sys_file_open(folder, name, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW, 0600);
    if (fd >= 0)
        (void) unlinkat(folder, name, 0); /* what stays is removed at the next start */
    return fd;
}

struct mount_spool *mount_spool_new(struct mount_spool_room *room, int *ret_error)
{
    struct mount_spool *spool;
    int fd = open_unnamed(room->folder);

    if (fd < 0) {
        *ret_error = fd;
        return NULL;
    }
    spool = mem_alloc(sizeof(*spool));
    *spool = (struct mount_spool){.room = room, .fd = fd};
    return spool;
}

static int account(struct mount_spool *spool, uint64_t size)
{
    struct mount_spool_room *room = spool->room;

    for (; room && size > spool->size; room = room->outer) {
        if (size - spool->size > room->limit - room->used)
            return -ENOSPC;
    }
    for (room = spool->room; room; room = room->outer)
        room->used = room->used - spool->size + size;
    spool->size = size;
    return 0;
}

void mount_spool_free(struct mount_spool *spool)
{
    if (!spool)
        return;
    (void) account(spool, 0);
    (void) fd_close(spool->fd);
    free(spool);
}

int mount_spool_reserve(struct mount_spool *spool, uint64_t size)
{
    return size > spool->size ? account(spool, size) : 0;
}

int mount_spool_truncate(struct mount_spool *spool, uint64_t size)
{
    uint64_t before = spool->size;
    int r = size > INT64_MAX ? -EFBIG : account(spool, size);

    if (r < 0)
        return r;
    if (ftruncate(spool->fd, (off_t) size) == 0)
        return 0;
    r = -errno;
    (void) account(spool, before);
    return r;
}
