#include "mount/mount_spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/log.h"
#include "base/memory.h"
#include "sys/file/sys_disk_room.h"
#include "sys/file/sys_file.h"

#define REFUSED_LOG_EVERY 1000 /* one that goes on trying does not fill the log */

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

/* Whoever is inside sees no more than an errno: the log says why. */
static int spool_refuse(struct mount_spool_room *room, const char *why, int r)
{
    if (room->refused++ % REFUSED_LOG_EVERY == 0)
        LOG_WARNING(room->log, "what is written to a mount was refused",
                    log_text("mount", room->text), log_text("owner", room->asker.owner.text),
                    log_text("why", why), log_number("refused", (int64_t) room->refused));
    return r;
}

struct mount_spool *mount_spool_new(struct mount_spool_room *room, int *ret_error)
{
    struct share_claim file = SHARE_CLAIM_NONE;
    struct mount_spool *spool;
    struct error err = ERROR_INIT;
    int fd;

    if (share_claim(room->shares, &room->asker, SHARE_SPOOL_FILES, 1, &file, &err) < 0) {
        *ret_error = spool_refuse(room, err.message, -EMFILE);
        return NULL;
    }
    fd = open_unnamed(room->folder);
    if (fd < 0) {
        share_release(&file);
        *ret_error = spool_refuse(room, "no file for it could be made", fd);
        return NULL;
    }
    spool = mem_alloc(sizeof(*spool));
    *spool = (struct mount_spool){.room = room, .fd = fd, .file = file};
    share_claim_anyway(room->shares, &room->asker, SHARE_SPOOL_BYTES, 0, &spool->bytes);
    return spool;
}

/* Whether there is room for a longer one. */
static int spool_check(struct mount_spool *spool, uint64_t size)
{
    struct mount_spool_room *room = spool->room;
    uint64_t more = size - spool->size;
    struct error err = ERROR_INIT;

    if (more > room->limit - room->used)
        return spool_refuse(room, "the mount has as much that is not stored yet as one may have",
                            -ENOSPC);
    if (room->outer && more > room->outer->limit - room->outer->used)
        return spool_refuse(room, "all mounts have as much that is not stored yet as they may have",
                            -ENOSPC);
    if (sys_disk_room_check(room->folder, room->floor, 0) < 0)
        return spool_refuse(room, "the disk of the daemon is full but for what is kept free",
                            -ENOSPC);
    if (share_claim_resize(&spool->bytes, size, &err) < 0)
        return spool_refuse(room, err.message, -ENOSPC);
    return 0;
}

static int account(struct mount_spool *spool, uint64_t size)
{
    struct mount_spool_room *room;
    int r = size > spool->size ? spool_check(spool, size) : 0;

    if (r < 0)
        return r;
    share_claim_set(&spool->bytes, size);
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
    share_release(&spool->bytes);
    share_release(&spool->file);
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
