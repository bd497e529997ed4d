/* Where copies are before they are whole. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/disk_pool_internal.h"
#include "sys/sys_file.h"
#include "sys/sys_lock.h"

AUTO_DEFINE_PTR(closedir, DIR, (void) closedir);

/* A second descriptor with a position of its own. */
static DIR *read_folder(int folder)
{
    int fd = sys_file_open(folder, ".", O_RDONLY | O_DIRECTORY, 0);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);

    if (!entries)
        (void) fd_close(fd);
    return entries;
}

/* One copy: in a plain pool a tree that may be large, else a subvolume in a folder. */
static void drop_copy(struct disk_pool *pool, int folder, const char *name)
{
    AUTO(close) int around = -EBADF;

    if (pool->kind == DISK_POOL_PLAIN) {
        (void) disk_pool_throw_away(pool, folder, name);
        return;
    }
    around = sys_file_open(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (around >= 0)
        (void) sys_btrfs_delete(around, DISK_COPY_NAME);
    (void) unlinkat(folder, name, AT_REMOVEDIR);
}

static void drop_folder(struct disk_pool *pool, int folder, const char *name)
{
    AUTO(closedir) DIR *entries = read_folder(folder);
    const struct dirent *entry;

    while (entries && (entry = readdir(entries))) {
        if (id_is_valid(entry->d_name))
            drop_copy(pool, folder, entry->d_name);
    }
    (void) unlinkat(pool->unfinished, name, AT_REMOVEDIR);
}

static void drop_dead(struct disk_pool *pool)
{
    AUTO(closedir) DIR *entries = read_folder(pool->unfinished);
    const struct dirent *entry;

    while (entries && (entry = readdir(entries))) {
        AUTO(close) int folder = -EBADF;

        if (!id_is_valid(entry->d_name))
            continue;
        folder =
            sys_file_open(pool->unfinished, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
        if (folder >= 0 && sys_lock_take(folder, SYS_LOCK_EXCLUSIVE, 0) == 0)
            drop_folder(pool, folder, entry->d_name);
    }
}

void disk_pool_open_unfinished(struct disk_pool *pool)
{
    AUTO(close) int folder = -EBADF;
    struct id name = id_new();

    drop_dead(pool);
    if (mkdirat(pool->unfinished, name.text, 0700) < 0)
        return;
    folder = sys_file_open(pool->unfinished, name.text, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (folder < 0 || sys_lock_take(folder, SYS_LOCK_EXCLUSIVE, 0) < 0) {
        (void) unlinkat(pool->unfinished, name.text, AT_REMOVEDIR);
        return;
    }
    pool->own = name;
    pool->sets[DISK_POOL_UNFINISHED] = TAKE_FD(folder);
}

void disk_pool_close_unfinished(struct disk_pool *pool)
{
    if (pool->sets[DISK_POOL_UNFINISHED] >= 0)
        (void) unlinkat(pool->unfinished, pool->own.text, AT_REMOVEDIR);
    pool->sets[DISK_POOL_UNFINISHED] = fd_close(pool->sets[DISK_POOL_UNFINISHED]);
}
