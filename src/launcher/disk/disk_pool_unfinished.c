/* Where copies are before they are whole. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/disk/disk_pool_internal.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_lock.h"

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

/* Make it the disk of that name, if it can be a fork: snapshots are read-only, and what a roll back
 * leaves here has a disk of its name. -EEXIST: it is none. */
static int place_fork(struct disk_pool *pool, int around, const char *name)
{
    AUTO(close)
    int copy = sys_file_open(around, DISK_COPY_NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    int disks = pool->sets[DISK_POOL_DISKS];
    struct sys_btrfs_subvolume subvolume;
    int r = copy < 0 ? copy : sys_btrfs_inspect(copy, &subvolume);

    if (r < 0)
        return r == -ENOENT ? -EEXIST : r;
    if (subvolume.read_only || faccessat(disks, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return -EEXIST;
    r = disk_pool_renew_work(around);
    if (r == 0 && renameat2(around, DISK_COPY_NAME, disks, name, RENAME_NOREPLACE) < 0)
        r = -errno;
    return r;
}

/* One copy: in a plain pool a tree that may be large, else a subvolume in a folder. False: it can
 * be a fork and could not be placed, on a pool that takes no writes. */
static bool settle_copy(struct disk_pool *pool, int folder, const char *name)
{
    AUTO(close) int around = -EBADF;
    int r;

    if (pool->kind == DISK_POOL_PLAIN) {
        (void) disk_pool_throw_away(pool, folder, name);
        return true;
    }
    around = sys_file_open(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    r = around >= 0 && pool->is_fresh ? place_fork(pool, around, name) : -EEXIST;
    if (around >= 0 && r == -EEXIST)
        (void) sys_btrfs_delete(around, DISK_COPY_NAME);
    (void) unlinkat(folder, name, AT_REMOVEDIR);
    return r == 0 || r == -EEXIST;
}

static bool settle_folder(struct disk_pool *pool, int folder, const char *name)
{
    AUTO(closedir) DIR *entries = read_folder(folder);
    const struct dirent *entry;
    bool is_settled = true;

    while (entries && (entry = readdir(entries))) {
        if (id_is_valid(entry->d_name))
            is_settled &= settle_copy(pool, folder, entry->d_name);
    }
    (void) unlinkat(pool->unfinished, name, AT_REMOVEDIR);
    return is_settled;
}

static void settle_dead(struct disk_pool *pool)
{
    AUTO(closedir) DIR *entries = read_folder(pool->unfinished);
    const struct dirent *entry;

    while (entries && (entry = readdir(entries))) {
        AUTO(close) int folder = -EBADF;

        if (!id_is_valid(entry->d_name))
            continue;
        folder =
            sys_file_open(pool->unfinished, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
        if (folder < 0 || sys_lock_take(folder, SYS_LOCK_EXCLUSIVE, 0) < 0)
            continue;
        /* What is left is not deleted by others while we hold its lock. */
        if (!settle_folder(pool, folder, entry->d_name) && pool->left < 0)
            pool->left = TAKE_FD(folder);
    }
}

void disk_pool_open_unfinished(struct disk_pool *pool)
{
    AUTO(close) int folder = -EBADF;
    struct id name = id_new();

    settle_dead(pool);
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
